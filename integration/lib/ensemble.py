"""Several members as one ensemble, configured as operators of ZooKeeper do it: zoo.cfg with a line for every server,
and a myid file in each data directory.

    with Ensemble(folder) as ensemble:                       # three members on 127.0.0.1
        ensemble.leader().kill9()
        ensemble.wait_leader()

    Ensemble(folder, members=5, network=Namespaces())        # each in a network namespace, so that it can be cut off

TARGET chooses Quenda or a genuine ZooKeeper, see integration/lib/target.py.
"""

import concurrent.futures
import pathlib
import signal
import time

from integration.lib.network import Loopback
from integration.lib.process import ServerError, four_letter_word
from integration.lib.target import TARGET, build_server
from integration.lib.zkwire import Closed, Conn

START_SECONDS = 60.0
ENSEMBLE_CFG = {"tickTime": "500", "initLimit": "20", "syncLimit": "6", "maxSessionTimeout": "60000"}


class Member:
    """One server of an ensemble."""

    def __init__(self, ensemble, number, folder, cfg):
        self.ensemble = ensemble
        self.number = number
        self.host = ensemble.network.address(number)
        self.port, self.quorum_port, self.election_port = ensemble.network.ports(number)
        self.folder = pathlib.Path(folder)
        self.server = build_server(self.folder, cfg, port=self.port, heap=ensemble.heap, target=ensemble.target)
        self.server.host = self.host
        self.server.prefix = ensemble.network.prefix(number)
        self.server.keeps_cfg = True
        self.stopped = False  # by SIGSTOP
        ensemble._made.append(self)

    def __repr__(self):
        return f"member {self.number}"

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def data(self):
        return self.folder / "data"

    @property
    def pid(self):
        return self.server.pid

    def line(self, role="participant", client=True):
        """Its `server.N` line, without the key."""
        peer = f"{self.host}:{self.quorum_port}:{self.election_port}:{role}"
        return f"{peer};{self.host}:{self.port}" if client else peer

    def write_myid(self):
        self.data.mkdir(parents=True, exist_ok=True)
        (self.data / "myid").write_text(f"{self.number}\n")

    def spawn(self):
        """Starts the process and does not wait."""
        if self.server.alive():
            raise ServerError(f"{self} is already running")
        self.stopped = False
        self.write_myid()
        self.server.spawn()

    def start(self, timeout=START_SECONDS):
        """Starts it and waits until it serves, which needs a majority."""
        self.spawn()
        return self.wait_serving(timeout)

    def stop(self, timeout=30.0):
        return self.server.stop(timeout)

    def kill9(self):
        self.server.kill9()
        self.stopped = False

    def restart(self, hard=False, timeout=START_SECONDS):
        if hard:
            self.kill9()
        else:
            self.stop()
        return self.start(timeout)

    def pause(self):
        """SIGSTOP: the process is there, the kernel keeps its sockets, and it does nothing."""
        self.server.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        self.server.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def wipe(self):
        """A new, empty disk. myid is the operator's and is written again at the next start."""
        self.server.wipe()

    def alive(self):
        return self.server.alive()

    def srvr(self, timeout=2.0):
        """The fields of `srvr` by name; empty while it does not serve or does not answer."""
        if not self.alive() or self.stopped:
            return {}
        try:
            answer = four_letter_word(self.port, "srvr", timeout, self.host)
        except OSError:
            return {}
        return dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)

    def mode(self):
        """leader, follower, observer, standalone or read-only; None while it does not serve."""
        return self.srvr().get("Mode")

    def zxid(self):
        return int(self.srvr().get("Zxid", "0x0"), 16)

    def serving(self):
        return self.mode() in ("leader", "follower", "observer", "standalone")

    def wait_serving(self, timeout=START_SECONDS):
        deadline = time.monotonic() + timeout
        while not self.serving():
            if not self.alive():
                raise ServerError(f"{self} ended (status {self.server.process.poll()}):\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerError(f"{self} does not serve after {timeout} s:\n{self.log_tail()}")
            time.sleep(0.02)
        return self

    def connect(self, **options):
        """A raw connection to this member, see integration/lib/zkwire.py."""
        return Conn(self.port, host=self.host, **options)

    def connect_soon(self, seconds=20.0, **options):
        """The same, tried again while the member finds out where the ensemble stands."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self.connect(**options)
            except (Closed, OSError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def take_over(self, conn, **options):
        """A connection to this member that goes on with the session of `conn`."""
        keep = {"session": conn.session, "passwd": conn.passwd, "timeout": conn.timeout, "last_zxid": conn.last_zxid}
        return self.connect(**{**keep, **options})

    def log_tail(self, size=4000):
        return self.server.log_tail(size)


class Ensemble:
    """`members` is their number, ids from 1; `observers` are the ids among them that do not vote. `cfg` entries go
    into every zoo.cfg, `member_cfg` maps an id to entries of its own. `heap` is for the genuine server, `target` is
    one of integration/lib/target.py's."""

    def __init__(self, folder, members=3, network=None, observers=(), cfg=None, member_cfg=None, heap="200m",
                 target=TARGET):
        self.folder = pathlib.Path(folder)
        self.network = network or Loopback()
        self.heap = heap
        self.target = target
        self.observers = set(observers)
        self.cfg = {**ENSEMBLE_CFG, "clientPort": None, "clientPortAddress": None, **(cfg or {})}
        self.members = {}
        self._made = []  # those that a test has taken out of `members` as well
        for number in range(1, members + 1):
            own = (member_cfg or {}).get(number, {})
            self.members[number] = Member(self, number, self.folder / f"member-{number}", {**self.cfg, **own})
        lines = self.server_lines()
        for member in self:
            member.server.extra_cfg.update(lines)
            if member.number in self.observers:
                member.server.extra_cfg["peerType"] = "observer"

    def server_lines(self):
        lines = {}
        for member in self:
            role = "observer" if member.number in self.observers else "participant"
            lines[f"server.{member.number}"] = member.line(role)
        return lines

    def add(self, number, cfg=None, observer=False):
        """A further member that knows the others; how it gets into the membership is the test's affair."""
        member = Member(self, number, self.folder / f"member-{number}", {**self.cfg, **(cfg or {})})
        self.members[number] = member
        if observer:
            self.observers.add(number)
        member.server.extra_cfg.update(self.server_lines())
        return member

    def __iter__(self):
        return iter(list(self.members.values()))

    def __getitem__(self, number):
        return self.members[number]

    def __len__(self):
        return len(self.members)

    @property
    def hosts(self):
        """Connection string of all members."""
        return ",".join(member.address for member in self)

    @property
    def addresses(self):
        return [(member.host, member.port) for member in self]

    def spawn(self):
        for member in self:
            member.spawn()

    def start(self, timeout=START_SECONDS):
        self.spawn()
        self.wait_serving(timeout=timeout)
        return self

    def wait_serving(self, members=None, timeout=START_SECONDS):
        """Until all of them (default: all that run) serve and one leads."""
        deadline = time.monotonic() + timeout
        for member in members or [member for member in self if member.alive() and not member.stopped]:
            member.wait_serving(max(deadline - time.monotonic(), 0.0))
        self.wait_leader(max(deadline - time.monotonic(), 0.0))

    def modes(self):
        """Member → mode of those that serve, asked all at once."""
        with concurrent.futures.ThreadPoolExecutor(len(self)) as pool:
            found = pool.map(lambda member: (member, member.mode()), self)
            return {member: mode for member, mode in found if mode}

    def find_leader(self):
        """The member that says it leads; None when there is none. Of two, which one is real is not known: None."""
        leaders = [member for member, mode in self.modes().items() if mode == "leader"]
        return leaders[0] if len(leaders) == 1 else None

    def wait_leader(self, timeout=START_SECONDS):
        deadline = time.monotonic() + timeout
        while True:
            leader = self.find_leader()
            if leader:
                return leader
            if time.monotonic() >= deadline:
                raise ServerError(f"no leader after {timeout} s:\n{self.log_tails()}")
            time.sleep(0.02)

    leader = wait_leader

    def followers(self):
        """Voting members that serve and do not lead."""
        return [member for member, mode in self.modes().items() if mode == "follower"]

    def stop(self):
        for member in self:
            member.stop()

    def kill9(self):
        """All at once, as a power cut would."""
        for member in self:
            if member.alive():
                member.server.process.kill()
        for member in self:
            member.kill9()

    def heal(self):
        """Takes back cuts and pauses; starts nothing."""
        self.network.heal()
        for member in self:
            if member.stopped:
                member.resume()

    def log_tails(self, size=1500):
        return "\n".join(f"--- {member}\n{member.log_tail(size)}" for member in self)

    def close(self):
        try:
            self.kill9()
            for member in self._made:
                member.kill9()
        finally:
            self.network.close()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()
