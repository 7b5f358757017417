"""One client for every member, which never goes elsewhere and gives up soon: together they tell when the ensemble takes
writes, whatever the client libraries of the other workloads make of it."""

import itertools

from integration.chaos.workload import Progress, Workload
from integration.lib.zkwire import Closed, Conn, Refused, ZkError

PATIENCE_SECONDS = 1.0
SYSTEM_ERROR = -1


class Probes(Workload):
    name = "probes"
    root = "/chaos/probe"
    pause = 0.02

    def __init__(self, addresses, seed, progress):
        super().__init__(addresses, seed, progress)
        self.service = Progress()
        self._conns = {}

    def setup(self, admin):
        admin.ensure_path(self.root)
        for number in range(len(self.addresses)):
            admin.create(f"{self.root}/{number}", b"0")

    def workers(self):
        return [self._probe(number, *address) for number, address in enumerate(self.addresses)]

    def _probe(self, number, host, port):
        values = itertools.count(1)

        def step(_choose):
            conn = self._conns.get(number)
            try:
                if conn is None:
                    conn = self._conns[number] = Conn(port, host=host, timeout=8000, wait=PATIENCE_SECONDS)
                conn.set(f"{self.root}/{number}", b"%d" % next(values))
                self.service.acknowledged()
                self.counts[f"by {number + 1}"] += 1
            except (Closed, Refused, OSError):
                if conn is not None:
                    conn.drop()
                self._conns[number] = None
            except ZkError as error:
                if error.code != SYSTEM_ERROR:
                    raise
                self.refused(error.code)

        return step

    def close(self):
        super().close()
        for conn in self._conns.values():
            if conn is not None:
                conn.close()
