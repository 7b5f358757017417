"""Restarts every member of an ensemble in turn while it is used, as an upgrade does it.

  integration/rolling/run                        three rounds: restart, changed configuration, changed program
  integration/rolling/run --rounds 1             the bounded form: each of the three once
  QUENDA_OTHER_BIN=path integration/rolling/run  the program that the last round changes to and back from
  TARGET=genuine integration/rolling/run         a genuine ZooKeeper, to check the check

The order is the operator's usual one: followers first, the leader last, each stopped with SIGTERM and waited for until
it serves again. Writers, readers, watchers and idle sessions are kazoo's and never stop. No session may expire, no
acknowledged write may be lost; the longest time without an acknowledged write is printed.
"""

import argparse
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

from integration.chaos.workload import UNKNOWN_FATE, Client, Progress
from integration.lib.ensemble import Ensemble
from integration.lib.process import ServerError
from integration.lib.quenda_server import quenda_binary
from integration.lib.target import IS_QUENDA, TARGET
from integration.lib.trees import differences

WRITERS, IDLE = 4, 10
SESSION_SECONDS = 10.0
ANSWER_SECONDS = 15.0


class Writer:
    """Creates numbered nodes and sets a counter; remembers what was acknowledged."""

    def __init__(self, client, number, progress):
        self.client, self.number, self.progress = client, number, progress
        self.created, self.counter, self.unknown = set(), 0, 0
        self.error = None
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def stop(self):
        self._ended.set()
        self.thread.join()

    def _run(self):
        kazoo, base, count = self.client.kazoo, f"/rolling/{self.number}", 0
        try:
            while not self._ended.is_set():
                count += 1
                try:
                    kazoo.create_async(f"{base}/{count:06}", b"x" * 200).get(timeout=ANSWER_SECONDS)
                    self.created.add(f"{count:06}")
                    stat = kazoo.set_async(base, b"%d" % count).get(timeout=ANSWER_SECONDS)
                    assert stat.version > self.counter, f"version {stat.version} behind {self.counter}"
                    self.counter = stat.version
                    self.progress.acknowledged()
                except UNKNOWN_FATE:
                    self.unknown += 1
                self._ended.wait(0.01)
        except Exception as error:
            self.error = error

    def check(self, conn):
        names = set(conn.children(f"/rolling/{self.number}"))
        problems = []
        if self.error:
            problems.append(f"writer {self.number}: {type(self.error).__name__}: {self.error}")
        if self.created - names:
            problems.append(f"writer {self.number}: {len(self.created - names)} acknowledged nodes are lost")
        if conn.exists(f"/rolling/{self.number}").version < self.counter:
            problems.append(f"writer {self.number}: acknowledged sets are lost")
        return problems


def wait_for_writes(progress):
    """Each step is under load: some hundred writes go by before the next one."""
    wanted, deadline = progress.count + 100, time.monotonic() + 30.0
    while progress.count < wanted:
        if time.monotonic() > deadline:
            raise ServerError("no writes for half a minute")
        time.sleep(0.02)


def rolling(ensemble, change, progress):
    """Followers first, the leader last."""
    leader = ensemble.leader()
    for member in [member for member in ensemble if member is not leader] + [leader]:
        member.stop()
        change(member)
        member.start()
        ensemble.wait_leader()
        wait_for_writes(progress)


def change_configuration(member):
    """What an operator changes now and then, by editing the file."""
    text = member.server.cfg_path.read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("snapCount", "maxClientCnxns"))]
    step = 1000 if "snapCount=2000" in text else 2000
    member.server.cfg_path.write_text("\n".join([*lines, f"snapCount={step}", "maxClientCnxns=500", ""]))


def other_program(folder):
    """A function that changes a member to another binary and back: the given one, else a copy at another path."""
    given = os.environ.get("QUENDA_OTHER_BIN")
    other = pathlib.Path(given) if given else folder / "quenda-next"
    if not given:
        shutil.copy2(quenda_binary(), other)

    def change(member):
        member.server.binary = None if member.server.binary else other

    return change


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of each kind of change")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = parser.parse_args()
    print(f"target {TARGET}, {options.members} members, {options.rounds} rounds, seed {options.seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-rolling-"))
    kinds = {"restart": lambda member: None, "configuration": change_configuration}
    if IS_QUENDA:
        kinds["program"] = other_program(folder)
    progress, problems, passed, worst = Progress(), [], 0, 0.0
    clients = []
    try:
        with Ensemble(folder, options.members, cfg={"snapCount": "2000"}) as ensemble:
            def client():
                clients.append(Client(ensemble.addresses, len(clients), SESSION_SECONDS))
                return clients[-1].start()

            admin = client()
            for number in range(WRITERS):
                admin.kazoo.ensure_path(f"/rolling/{number}")
            events = []
            idle = [client() for _ in range(IDLE)]
            for one in idle:
                one.kazoo.create(f"/rolling/idle-{one.session:x}", ephemeral=True)
                one.kazoo.DataWatch("/rolling/0", lambda data, stat: events.append(stat.version if stat else None))
            writers = [Writer(client(), number, progress) for number in range(WRITERS)]
            for writer in writers:
                writer.thread.start()
            for _ in range(options.rounds):
                for kind, change in kinds.items():
                    progress.take_longest()
                    start, before = time.monotonic(), progress.count
                    rolling(ensemble, change, progress)
                    pause = progress.take_longest()
                    worst = max(worst, pause)
                    print(f"  {kind:14} {time.monotonic() - start:5.1f} s, {progress.count - before:5} writes, "
                          f"longest pause {pause:.2f} s", flush=True)
                    passed += 1
            for writer in writers:
                writer.stop()
            with ensemble.leader().connect_soon() as conn:
                conn.sync("/")
                for writer in writers:
                    problems += writer.check(conn)
                for one in idle:
                    stat = conn.exists(f"/rolling/idle-{one.session:x}")
                    if stat is None or stat.ephemeral_owner != one.session:
                        problems.append(f"an ephemeral of session {one.session:#x} is gone")
                final = conn.exists("/rolling/0").version
            deadline = time.monotonic() + 15
            while events.count(final) < IDLE and time.monotonic() < deadline:
                time.sleep(0.05)
            if events.count(final) != IDLE:
                problems.append(f"{events.count(final)} of {IDLE} watchers heard of the last change")
            problems += differences(ensemble)[:5]
            lost = sum(one.lost for one in clients)
            if lost:
                problems.append(f"{lost} sessions expired")
            unknown = sum(writer.unknown for writer in writers)
            print(f"{progress.count} writes acknowledged, {unknown} of unknown fate, sessions expired {lost}, "
                  f"longest pause {worst:.2f} s")
            for one in clients:
                one.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        print(problem)
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
