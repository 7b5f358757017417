"""Registers: reads behind a sync, writes, and conditional writes by several clients, each register's history checked
for linearizability."""

import math
import threading
import time

from kazoo.exceptions import BadVersionError

from integration.chaos.linearizable import CAS, OK, READ, REFUSED, UNKNOWN, WRITE, Operation, TooManyWays, explain
from integration.chaos.workload import ANSWER_SECONDS, UNKNOWN_FATE, Workload

CLIENTS = 4
SHARED_AT_A_TIME = 2
# A history beyond that is checked slowly; a new register begins a new one.
OPERATIONS_EACH = 150


class Registers(Workload):
    name = "registers"
    root = "/chaos/registers"

    def __init__(self, addresses, seed, progress, registers=400):
        super().__init__(addresses, seed, progress)
        self.count = registers
        self._lock = threading.Lock()
        self._used = {number: 0 for number in range(SHARED_AT_A_TIME)}
        self._next = SHARED_AT_A_TIME
        self._last_seen = {}
        self.histories = {}

    def setup(self, admin):
        admin.ensure_path(self.root)
        for made in [admin.create_async(f"{self.root}/{number}", b"") for number in range(self.count)]:
            made.get(ANSWER_SECONDS)

    def workers(self):
        return [self._worker(self.client().kazoo, f"c{number}") for number in range(CLIENTS)]

    def _pick(self, choose):
        with self._lock:
            number = choose.choice(sorted(self._used))
            self._used[number] += 1
            if self._used[number] >= OPERATIONS_EACH and self._next < self.count:
                del self._used[number]
                self._used[self._next] = 0
                self._next += 1
            return number

    def _worker(self, kazoo, name):
        numbers = iter(range(1 << 62))

        def step(choose):
            register = self._pick(choose)
            path = f"{self.root}/{register}"
            kind = choose.choices((READ, WRITE, CAS), (5, 3, 2))[0]
            value = None if kind == READ else f"{name}.{next(numbers)}".encode()
            wanted = self._last_seen.get(register, 0) if kind == CAS else None
            start = time.monotonic()
            try:
                outcome, value, version = self._do(kazoo, path, kind, value, wanted)
            except UNKNOWN_FATE:
                self._note(register, Operation(name, kind, UNKNOWN, start, math.inf, value, wanted))
                raise
            self._note(register, Operation(name, kind, outcome, start, time.monotonic(), value, version))
            if kind != READ and outcome == OK:
                self.progress.acknowledged()

        return step

    def _do(self, kazoo, path, kind, value, wanted):
        """Outcome, value and version."""
        if kind == READ:
            barrier, answer = kazoo.sync_async(path), kazoo.get_async(path)
            barrier.get(timeout=ANSWER_SECONDS)
            value, stat = answer.get(timeout=ANSWER_SECONDS)
            self._last_seen[int(path.rsplit("/", 1)[1])] = stat.version
            return OK, value, stat.version
        if kind == WRITE:
            return OK, value, kazoo.set_async(path, value).get(timeout=ANSWER_SECONDS).version
        try:
            kazoo.set_async(path, value, wanted).get(timeout=ANSWER_SECONDS)
        except BadVersionError:
            return REFUSED, value, wanted
        return OK, value, wanted

    def _note(self, register, operation):
        with self._lock:
            self.histories.setdefault(register, []).append(operation)
            self.counts[f"{operation.kind} {operation.outcome}"] += 1

    def check(self, ensemble):
        for register, history in sorted(self.histories.items()):
            for member in ensemble:
                with member.connect_soon() as conn:
                    start = time.monotonic()
                    conn.sync("/")
                    value, stat = conn.get(f"{self.root}/{register}")
                    history.append(Operation(str(member), READ, OK, start, time.monotonic(), value, stat.version))
            try:
                wrong = explain(history)
            except TooManyWays:
                wrong = "too much is open to decide it"
            if wrong:
                self.violations.append(f"register {register} is not linearizable: {wrong}")
        self.counts["registers"] = len(self.histories)
