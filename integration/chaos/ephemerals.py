"""Ephemeral nodes: there as long as their session, gone with it, everywhere and at once.

Some sessions live all the time, some are closed right away, some are abandoned without a word.
"""

import itertools
import threading
import time

from integration.chaos.workload import ANSWER_SECONDS, Workload
from integration.lib.zkwire import FLAG, Closed, Conn, Refused, ZkError

LASTING = 4
ABANDONED_TIMEOUT_MS = 4000
# Expiry of the abandoned ones may wait for an election, whose new leader grants everybody a full timeout.
ABANDONED_SECONDS = 40.0


class Ephemerals(Workload):
    name = "ephemerals"
    root = "/chaos/ephemerals"
    pause = 0.15

    def __init__(self, addresses, seed, progress):
        super().__init__(addresses, seed, progress)
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self.lasting = {}
        self.abandoned = []
        self.closed = []

    def setup(self, admin):
        admin.ensure_path(self.root)

    def workers(self):
        for _ in range(LASTING):
            client = self.client()
            path = f"{self.root}/lasting-{client.session:x}"
            client.kazoo.create(path, b"", ephemeral=True)
            self.lasting[path] = client
        return [self._look(), self._open_and_close, self._open_and_abandon]

    def _look(self):
        reader = self.client()

        def step(_choose):
            """Ephemerals of living sessions are there, those of closed ones are not."""
            with self._lock:
                closed = list(self.closed[-20:])
            before = reader.interruptions
            reader.kazoo.sync_async(self.root).get(timeout=ANSWER_SECONDS)
            names = set(reader.kazoo.get_children_async(self.root).get(timeout=ANSWER_SECONDS))
            if reader.interruptions != before:
                return  # the two may have gone to two members
            for path, client in self.lasting.items():
                if path.rsplit("/", 1)[1] not in names and not client.lost:
                    self.violations.append(f"{path} is gone although its session lives")
            left = names & {path.rsplit("/", 1)[1] for path in closed}
            if left:
                self.violations.append(f"still there after their sessions were closed: {sorted(left)}")
            self.counts["looks"] += 1

        return step

    def _session(self, choose, timeout):
        """A fresh session at some member with an ephemeral node; None when there is no service now."""
        host, port = choose.choice(self.addresses)
        path = f"{self.root}/short-{next(self._numbers)}"
        conn = None
        try:
            conn = Conn(port, host=host, timeout=timeout, wait=ANSWER_SECONDS)
            conn.create(path, flags=FLAG.EPHEMERAL)
            return conn, path
        except (Closed, Refused, OSError):
            if conn is not None:
                conn.drop()  # whether the node is there nobody knows; the session will expire
                with self._lock:
                    self.abandoned.append(path)
            return None, path
        except ZkError as error:
            conn.drop()
            self.errors[f"error {error.code}"] += 1
            return None, path

    def _open_and_close(self, choose):
        conn, path = self._session(choose, 20_000)
        if conn is None:
            return
        try:
            conn.call(-11)
        except (Closed, OSError):
            with self._lock:
                self.abandoned.append(path)
            return
        finally:
            conn.drop()
        self.progress.acknowledged()
        with self._lock:
            self.closed.append(path)
            self.counts["closed"] += 1

    def _open_and_abandon(self, choose):
        conn, path = self._session(choose, ABANDONED_TIMEOUT_MS)
        if conn is None:
            return
        conn.drop()
        with self._lock:
            self.abandoned.append(path)
            self.counts["abandoned"] += 1
        time.sleep(choose.random() * 0.3)

    def check(self, ensemble):
        deadline = time.monotonic() + ABANDONED_SECONDS
        expected = {path.rsplit("/", 1)[1] for path in self.lasting}
        for member in ensemble:
            while True:
                with member.connect_soon() as conn:
                    conn.sync("/")
                    names = set(conn.children(self.root))
                if names == expected or time.monotonic() > deadline:
                    break
                time.sleep(0.2)
            if names != expected:
                missing, left = sorted(expected - names)[:3], sorted(names - expected)[:3]
                self.violations.append(f"{member}: missing {missing}, should have expired {left}")
        for path, client in self.lasting.items():
            with ensemble.leader().connect_soon() as conn:
                stat = conn.exists(path)
                if stat is not None and stat.ephemeral_owner != client.session:
                    self.violations.append(f"{path} belongs to {stat.ephemeral_owner:#x}")
