"""What is done to the members, and how it is taken back."""

import contextlib
import os
import pathlib
import subprocess
import time

from integration.lib.ensemble import Ensemble
from integration.lib.network import Namespaces
from integration.lib.process import ServerError
from integration.lib.tamper import Tamper
from integration.lib.target import IS_QUENDA

DISK_MEGABYTES = 512
SLOW_SYNC_SECONDS = 0.4
JAVA_TERMINATED = 143  # how a Java process says that it was ended by SIGTERM


class Nemesis:
    """An ensemble in network namespaces, with small disks and with clocks and disks under control."""

    def __init__(self, folder, members, choose):
        self.choose = choose
        self.folder = pathlib.Path(folder)
        self._mounts = []
        self._fillers = []
        self.network = Namespaces()
        self.ensemble = Ensemble(self.folder, members, self.network, cfg={"snapCount": "2000"}, heap="160m")
        self.tampers = {}
        try:
            for member in self.ensemble:
                self._mount(member.folder)
                self.tampers[member] = Tamper(member.folder)
                member.server.env.update(self.tampers[member].environment())
            self.ensemble.start()
        except BaseException:
            self.close()
            raise
        blind = [member for member, tamper in self.tampers.items() if not tamper.syncs]
        if blind:
            raise ServerError(f"the syncs of {blind} are not under control")

    def _mount(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "quenda-chaos", str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerError(f"cannot mount a small disk: {done.stderr.strip()}")
        self._mounts.append(folder)

    def close(self):
        self.ensemble.close()
        for folder in self._mounts:
            subprocess.run(["umount", "-l", str(folder)], check=False)

    # --- who

    @property
    def numbers(self):
        return [member.number for member in self.ensemble]

    def leader(self):
        return self.ensemble.wait_leader(30.0)

    def follower(self):
        leader = self.leader()
        return self.choose.choice([member for member in self.ensemble if member is not leader])

    def minority(self):
        """As many members as may be missed, the leader among them or not."""
        return self.choose.sample(list(self.ensemble), (len(self.ensemble) - 1) // 2)

    # --- faults; each returns what it has hit

    def kill_leader(self):
        leader = self.leader()
        leader.kill9()
        return leader

    def kill_follower(self):
        follower = self.follower()
        follower.kill9()
        return follower

    def kill_minority(self):
        hit = self.minority()
        for member in hit:
            member.kill9()
        return hit

    def kill_all(self):
        self.ensemble.kill9()
        return "all"

    def stop_leader(self):
        leader = self.leader()
        leader.stop()
        return leader

    def pause_leader(self):
        leader = self.leader()
        leader.pause()
        return leader

    def pause_follower(self):
        follower = self.follower()
        follower.pause()
        return follower

    def isolate_leader(self):
        leader = self.leader()
        self.network.isolate(leader.number, self.numbers)
        return leader

    def isolate_follower(self):
        follower = self.follower()
        self.network.isolate(follower.number, self.numbers)
        return follower

    def split(self):
        """A minority on one side, the majority on the other."""
        few = self.minority()
        for one in few:
            for other in self.ensemble:
                if other not in few:
                    self.network.cut(one.number, other.number)
        return few

    def deaf_leader(self):
        """Nothing that the others send arrives at the leader; they hear it."""
        leader = self.leader()
        for number in self.numbers:
            if number != leader.number:
                self.network.drop(number, leader.number)
        return leader

    def mute_leader(self):
        """Nothing that the leader sends arrives; it hears the others."""
        leader = self.leader()
        for number in self.numbers:
            if number != leader.number:
                self.network.drop(leader.number, number)
        return leader

    def one_way(self):
        """One of the two directions between two members."""
        source, target = self.choose.sample(self.numbers, 2)
        self.network.drop(source, target)
        return f"{source} to {target}"

    def broken_ring(self):
        """Two members do not see each other, the others see all."""
        one, other = self.choose.sample(self.numbers, 2)
        self.network.cut(one, other)
        return f"{one} and {other}"

    def slow_disk_of_leader(self):
        leader = self.leader()
        self.tampers[leader].slow_disk(SLOW_SYNC_SECONDS)
        return leader

    def slow_disk_of_follower(self):
        follower = self.follower()
        self.tampers[follower].slow_disk(SLOW_SYNC_SECONDS)
        return follower

    def full_disk(self, member):
        path = member.folder / "filler"
        self._fillers.append(path)
        with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4 << 20))
        with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        return member

    def full_disk_of_leader(self):
        return self.full_disk(self.leader())

    def full_disk_of_follower(self):
        return self.full_disk(self.follower())

    def jump_of_a_clock(self):
        member = self.choose.choice(list(self.ensemble))
        self.tampers[member].clock(self.choose.choice((-120, -5, 5, 120)))
        return member

    def wipe_follower(self):
        """A new, empty disk; it starts again at once and must be filled by the others."""
        follower = self.follower()
        follower.kill9()
        follower.wipe()
        follower.spawn()
        return follower

    def interrupted_fill(self):
        """The same, and killed again and again while it is filled."""
        follower = self.follower()
        follower.kill9()
        follower.wipe()
        for _ in range(4):
            follower.spawn()
            time.sleep(self.choose.uniform(0.0, 0.8))
            follower.kill9()
        follower.spawn()
        return follower

    def flapping(self):
        """Members are cut off for moments, one after the other."""
        for _ in range(8):
            number = self.choose.choice(self.numbers)
            self.network.isolate(number, self.numbers)
            time.sleep(self.choose.uniform(0.05, 0.5))
            self.network.heal()
            time.sleep(self.choose.uniform(0.0, 0.2))
        return "in turn"

    def kill_in_turn(self):
        """Every member is killed and started again, before the one before it has come back."""
        for member in self.choose.sample(list(self.ensemble), len(self.ensemble)):
            member.kill9()
            time.sleep(self.choose.uniform(0.0, 0.3))
            member.spawn()
        return "in turn"

    def kill_leader_behind_a_cut(self):
        """A leader with writes that nobody has is killed while its log is being corrected."""
        leader = self.leader()
        self.network.isolate(leader.number, self.numbers)
        time.sleep(self.choose.uniform(0.5, 1.5))
        self.network.heal()
        time.sleep(self.choose.uniform(0.0, 0.3))
        leader.kill9()
        return leader

    # --- and back

    def heal(self):
        """Takes everything back and starts what was killed; what has ended by itself is told."""
        for path in self._fillers:
            path.unlink(missing_ok=True)
        self._fillers.clear()
        for tamper in self.tampers.values():
            tamper.slow_disk(0)
        self.ensemble.heal()
        ended = []
        for member in self.ensemble:
            status = member.server.process.poll()
            if status is not None:
                if status not in (-9, 0, JAVA_TERMINATED):
                    ended.append(f"{member} ended by itself with {status}: {member.log_tail(600)}")
                member.spawn()
        return ended

    def wait_serving(self, seconds):
        deadline = time.monotonic() + seconds
        for member in self.ensemble:
            member.wait_serving(max(deadline - time.monotonic(), 0.1))
        self.ensemble.wait_leader(max(deadline - time.monotonic(), 0.1))


# Faults under which a majority is left that can write: then writes must go on within this many seconds.
MAJORITY_LEFT = (
    "kill_leader", "kill_follower", "kill_minority", "stop_leader", "pause_leader", "pause_follower", "isolate_leader",
    "isolate_follower", "split", "deaf_leader", "mute_leader", "slow_disk_of_leader", "slow_disk_of_follower",
    "full_disk_of_follower", "jump_of_a_clock", "one_way", "broken_ring",
)
OTHERS = (
    "kill_all", "full_disk_of_leader", "wipe_follower", "interrupted_fill", "flapping", "kill_in_turn",
    "kill_leader_behind_a_cut",
)
FAULTS = MAJORITY_LEFT + OTHERS
# A genuine server ends when its disk is full, counts a wiped member's vote, and its timers follow the wall clock.
NOT_FOR_GENUINE = (
    "wipe_follower", "interrupted_fill", "full_disk_of_leader", "full_disk_of_follower", "jump_of_a_clock",
)


def faults():
    return [fault for fault in FAULTS if IS_QUENDA or fault not in NOT_FOR_GENUINE]


def keep_logs(nemesis, target):
    """Copies the members' logs; the disks they are on go away."""
    target.mkdir(parents=True, exist_ok=True)
    for member in nemesis.ensemble:
        if member.server.log_path.exists():
            (target / f"member-{member.number}.log").write_bytes(member.server.log_path.read_bytes())
    return os.fspath(target)
