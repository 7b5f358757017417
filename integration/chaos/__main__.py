"""Breaks an ensemble of real processes in every way while real clients use it, and checks what they have seen.

  integration/chaos/run                          the long form: three and five members, twenty minutes each
  integration/chaos/run --bounded                each fault once or twice, some four minutes
  integration/chaos/run --seed 7                 the same choices again
  integration/chaos/run --only isolate_leader    that fault again and again (--minutes, --members)
  TARGET=genuine integration/chaos/run           against ZooKeeper 3.9.5, to check the checks

Each member runs in a network namespace on a small disk of its own; needs root.
"""

import argparse
import math
import pathlib
import random
import shutil
import sys
import tempfile
import time

from kazoo.client import KazooClient

from integration.chaos import nemesis as faults_of
from integration.chaos.ephemerals import Ephemerals
from integration.chaos.locks import Locks
from integration.chaos.nemesis import Nemesis
from integration.chaos.probes import Probes
from integration.chaos.queues import Queues
from integration.chaos.registers import Registers
from integration.chaos.shells import CClient, JavaClient
from integration.chaos.watches import Watches
from integration.chaos.workload import Progress
from integration.lib.process import ServerError
from integration.lib.target import IS_QUENDA, TARGET
from integration.lib.trees import differences

WORKLOADS = (Registers, Locks, Queues, Ephemerals, Watches, CClient, JavaClient)
# With a majority left, or everything healed, the ensemble takes writes again within that time.
WRITES_AGAIN_SECONDS = 5.0 if IS_QUENDA else 20.0
SERVING_AGAIN_SECONDS = 60.0
ROOM_AGAIN_SECONDS = 10.0
BALLAST_NODES, BALLAST_NODE_BYTES = 2000, 10_000


class Run:
    """One ensemble, its clients, and a series of faults."""

    def __init__(self, members, seed, folder):
        self.members = members
        self.seed = seed
        self.choose = random.Random(f"{seed}/{members}")
        self.folder = pathlib.Path(folder)
        self.progress = Progress()
        self.violations = []
        self.pauses = {}

    def violated(self, text):
        print(f"  VIOLATION: {text}", flush=True)
        self.violations.append(text)

    def go(self, series, hold):
        """`series` yields names of faults; `hold` are the shortest and the longest time that one lasts."""
        self.nemesis = Nemesis(self.folder, self.members, self.choose)
        workloads = []
        try:
            addresses = self.nemesis.ensemble.addresses
            probes = Probes(addresses, self.seed, self.progress)
            self.service = probes.service
            workloads = [probes, *(kind(addresses, self.seed, self.progress) for kind in WORKLOADS)]
            self._setup(workloads)
            for workload in workloads:
                workload.start()
            for fault in series:
                self._one(fault, hold)
            self._finish(workloads)
        except ServerError as error:
            self.violated(str(error))
        finally:
            for workload in workloads:
                workload.end()
            if self.violations:
                kept = faults_of.keep_logs(self.nemesis, self.folder.with_name(self.folder.name + "-logs"))
                print(f"  logs kept in {kept}", flush=True)
            for workload in workloads:
                workload.join(30.0)
            self.nemesis.close()
        return workloads

    def _setup(self, workloads):
        admin = KazooClient(self.nemesis.ensemble.hosts, timeout=20.0)
        admin.start(timeout=60)
        try:
            admin.ensure_path("/chaos")
            _ballast(admin)
            for workload in workloads:
                workload.setup(admin)
        finally:
            admin.stop()
            admin.close()

    def _one(self, fault, hold):
        seconds = self.choose.uniform(*hold)
        self.service.take_longest()
        start, before = time.monotonic(), self.progress.count
        if fault.startswith("full_disk"):
            self.progress.may_refuse_until = math.inf
        hit = getattr(self.nemesis, fault)()
        if fault in faults_of.MAJORITY_LEFT:
            self._wait_progress(f"{fault} ({hit})")
        time.sleep(max(start + seconds - time.monotonic(), 0.0))
        for text in self.nemesis.heal():
            self.violated(f"{fault}: {text}")
        self.progress.may_refuse_until = min(self.progress.may_refuse_until, time.monotonic() + ROOM_AGAIN_SECONDS)
        self.nemesis.wait_serving(SERVING_AGAIN_SECONDS)
        self._wait_progress(f"the end of {fault} ({hit})")
        pause = self.service.take_longest()
        self.pauses.setdefault(fault, []).append(pause)
        writes = self.progress.count - before
        hit = str(hit)
        print(f"  {fault:22} {hit:22} {seconds:4.1f} s: {writes:5} writes, longest pause {pause:.2f} s", flush=True)

    def _wait_progress(self, what):
        """Until some writes that began later are acknowledged."""
        wanted, start = self.service.count + 20, time.monotonic()
        while self.service.count < wanted:
            if time.monotonic() - start > WRITES_AGAIN_SECONDS:
                self.violated(f"no writes within {WRITES_AGAIN_SECONDS:.0f} s of {what}")
                return
            time.sleep(0.02)

    def _finish(self, workloads):
        for workload in workloads:
            workload.end()
        for workload in workloads:
            workload.join(60.0)
        for workload in workloads:
            workload.check(self.nemesis.ensemble)
            for text in workload.violations:
                self.violated(f"{workload.name}: {text}")
            if workload.lost_sessions:
                self.violated(f"{workload.name}: {workload.lost_sessions} sessions were ended by the servers")
        for text in differences(self.nemesis.ensemble)[:10]:
            self.violated(f"members differ: {text}")
        for workload in workloads:
            workload.close()
        with self.nemesis.ensemble.leader().connect_soon() as conn:
            conn.sync("/")
            left = [path for path in _below(conn, "/chaos") if conn.exists(path).ephemeral_owner]
            if left:
                self.violated(f"ephemerals of closed sessions: {left[:5]}")


def _ballast(admin):
    """Enough that filling an empty member takes a while."""
    admin.ensure_path("/chaos/ballast")
    data = bytes(BALLAST_NODE_BYTES)
    for first in range(0, BALLAST_NODES, 500):
        made = [admin.create_async(f"/chaos/ballast/{number}", data) for number in range(first, first + 500)]
        for one in made:
            one.get(60)


def _below(conn, path):
    for name in conn.children(path):
        yield f"{path}/{name}"
        if name in ("ephemerals", "lock"):
            yield from _below(conn, f"{path}/{name}")


def endless(choose, names, minutes):
    """Every fault in a random order, again and again until the time is over."""
    deadline = time.monotonic() + minutes * 60
    while True:
        round_of_names = list(names)
        choose.shuffle(round_of_names)
        for name in round_of_names:
            if time.monotonic() > deadline:
                return
            yield name


BOUNDED = {
    3: None,  # every fault
    5: ("kill_minority", "split", "mute_leader", "pause_leader", "kill_all", "broken_ring"),
}


def series(options, members, choose):
    names = [name for name in faults_of.faults() if not options.only or name in options.only]
    if not options.bounded:
        return endless(choose, names, options.minutes)
    names = [name for name in names if BOUNDED.get(members) is None or name in BOUNDED[members]]
    choose.shuffle(names)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bounded", action="store_true", help="each fault once on three members, some on five")
    parser.add_argument("--members", type=lambda text: [int(part) for part in text.split(",")], default=[3, 5])
    parser.add_argument("--minutes", type=float, default=20.0, help="for each size, without --bounded")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these faults")
    parser.add_argument("--hold", type=float, help="longest time that a fault lasts, in seconds")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(faults_of.FAULTS)
    if unknown:
        parser.error(f"unknown faults {sorted(unknown)}; there are {', '.join(faults_of.FAULTS)}")
    hold = (1.0, options.hold or (2.0 if options.bounded else 8.0))
    failed = 0
    for members in options.members:
        print(f"target {TARGET}, {members} members, seed {options.seed}", flush=True)
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"quenda-chaos-{members}-"))
        start, run = time.monotonic(), Run(members, options.seed, folder)
        try:
            workloads = run.go(series(options, members, run.choose), hold)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        for workload in workloads:
            counts = ", ".join(f"{name} {count}" for name, count in sorted(workload.counts.items()))
            errors = ", ".join(f"{name} {count}" for name, count in sorted(workload.errors.items()))
            print(f"  {workload.name}: {counts}" + (f"; unknown fate: {errors}" if errors else ""))
        faults = sum(len(pauses) for pauses in run.pauses.values())
        print(f"{faults} faults, {run.progress.count} writes acknowledged, {len(run.violations)} violations, "
              f"{time.monotonic() - start:.0f} s", flush=True)
        failed += bool(run.violations) or not faults
    print(f"{len(options.members) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if not IS_QUENDA and TARGET != "genuine":
        sys.exit("TARGET is quenda or genuine here")
    sys.exit(main())
