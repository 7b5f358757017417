"""Locks: kazoo's recipe, with the lock node's czxid as a fencing token. What is written under the lock is written
together with a check that the lock node is still there, so tokens must never go back from one version to the next."""

import contextlib
import threading
import time

from kazoo.exceptions import LockTimeout, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.retry import KazooRetry

from integration.chaos.workload import ANSWER_SECONDS, UNKNOWN_FATE, Workload

CLIENTS = 3
GIVING_UP_SECONDS = 30.0


class Locks(Workload):
    name = "locks"
    root = "/chaos/lock"
    fenced = "/chaos/fenced"

    def __init__(self, addresses, seed, progress):
        super().__init__(addresses, seed, progress)
        self._lock = threading.Lock()
        self.writes = []  # (version, token)
        self.holds = []  # (from, to, client) of holds under a connection that stood all the time

    def setup(self, admin):
        admin.ensure_path(self.root)
        admin.create(self.fenced, b"0")

    def workers(self):
        return [self._worker(self.client(), number) for number in range(CLIENTS)]

    def _worker(self, client, number):
        def step(choose):
            lock = client.kazoo.Lock(self.root, str(number))
            try:
                got = lock.acquire(timeout=ANSWER_SECONDS)
            except LockTimeout:
                got = False
            except UNKNOWN_FATE:
                self._give_up(client.kazoo, lock)
                raise
            if not got:
                self.counts["not in time"] += 1
                self._give_up(client.kazoo, lock)
                return
            acquired, before = time.monotonic(), (client.lost, client.interruptions)
            self.counts["acquired"] += 1
            try:
                self._write_fenced(client.kazoo, f"{self.root}/{lock.node}")
                time.sleep(choose.random() * 0.02)
            finally:
                released = time.monotonic()
                if (client.lost, client.interruptions) == before:
                    with self._lock:
                        self.holds.append((acquired, released, number))
                self._release(client, lock)

        return step

    def _write_fenced(self, kazoo, node):
        stat = kazoo.exists_async(node).get(timeout=ANSWER_SECONDS)
        if stat is None:
            return  # the session is gone and the lock with it
        transaction = kazoo.transaction()
        transaction.check(node, stat.version)
        transaction.set_data(self.fenced, b"%d" % stat.czxid)
        checked, written = transaction.commit_async().get(timeout=ANSWER_SECONDS)
        if isinstance(checked, NoNodeError):
            self.counts["fenced off"] += 1
            return
        if isinstance(written, (RolledBackError, RuntimeInconsistency)) or checked is not True:
            self.violations.append(f"a write under the lock came to {checked}, {written}")
            return
        with self._lock:
            self.writes.append((written.version, stat.czxid))
        self.progress.acknowledged()

    def _give_up(self, kazoo, lock):
        """Takes the node away that a create of unknown fate may have left: it would be in everybody's way as long as
        the session lives, and the recipe does not insist."""
        patience = KazooRetry(max_tries=-1, delay=0.1, max_delay=0.5, deadline=GIVING_UP_SECONDS)
        for name in patience(kazoo.get_children, self.root):
            if name.startswith(lock.prefix):
                with contextlib.suppress(NoNodeError):
                    patience(kazoo.delete, f"{self.root}/{name}")

    def _release(self, client, lock):
        try:
            lock.release()
        except UNKNOWN_FATE:
            self.errors["release"] += 1
            self._give_up(client.kazoo, lock)
            raise

    def check(self, ensemble):
        writes = sorted(self.writes)
        for (version, token), (next_version, next_token) in zip(writes, writes[1:], strict=False):
            if version == next_version:
                self.violations.append(f"version {version} of {self.fenced} was given twice")
            if token >= next_token:
                self.violations.append(f"token {token:#x} of version {version} against {next_token:#x} behind it")
        holds = sorted(self.holds)
        for (_, to, one), (start, _, other) in zip(holds, holds[1:], strict=False):
            if one != other and start < to:
                self.violations.append(f"clients {one} and {other} held the lock together for {to - start:.3f} s")
        if writes:
            with ensemble.leader().connect_soon() as conn:
                conn.sync("/")
                data, stat = conn.get(self.fenced)
                if stat.version < writes[-1][0] or int(data) < writes[-1][1]:
                    self.violations.append(f"the last write under the lock is lost: {data} version {stat.version}")
