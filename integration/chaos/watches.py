"""Watches over a counter, by raw connections that move between members: no change is missed, no event comes behind a
reply that shows what it tells, and nobody travels back in time."""

import itertools

from integration.chaos.workload import ANSWER_SECONDS, UNKNOWN_FATE, Workload
from integration.lib.zkwire import EV, OP, Closed, Conn, Event, Refused, read

WATCHERS = 3


class Watcher:
    """A session that reads the counter with a watch again and again."""

    def __init__(self, workload, number):
        self.workload = workload
        self.number = number
        self.conn = None
        self.mzxid = 0  # of the newest state it was shown
        self.armed = None  # mzxid of the state that the watch was set on; None without a watch
        self.lost = 0

    def step(self, choose):
        if self.conn is None or self.conn.sock.fileno() < 0:
            self._connect(choose)
            return
        try:
            self._read(watch=self.armed is None)
            if choose.random() < 0.5 and self.armed is not None:
                self._wait_for_event(choose.random() * 0.3)
        except (Closed, OSError):
            self.workload.errors["connection"] += 1
            self.conn.drop()
            self._connect(choose)

    def _connect(self, choose):
        host, port = choose.choice(self.workload.addresses)
        old = self.conn
        try:
            keep = {}
            if old is not None:
                keep = {"session": old.session, "passwd": old.passwd, "last_zxid": max(old.last_zxid, self.mzxid)}
            self.conn = Conn(port, host=host, timeout=20_000, wait=ANSWER_SECONDS, **keep)
            if self.armed is not None:
                self.conn.set_watches(self.armed, data=[self.workload.path])
                self._take_events()
        except Refused:
            self.lost += 1
            self.conn, self.armed = None, None
        except (Closed, OSError):
            pass

    def _read(self, watch):
        conn, before = self.conn, self.armed
        xid = conn.send(OP.GET_DATA, read(self.workload.path, watch))
        while True:
            message = conn.message()
            if isinstance(message, Event):
                self._event(message)
                continue
            assert message.xid == xid, f"asked {xid}, answered {message.xid}"
            reader = message.reader()
            reader.buffer()
            stat = reader.stat()
            if stat.mzxid < self.mzxid:
                self.workload.violations.append(
                    f"watcher {self.number} was shown {stat.mzxid:#x} behind {self.mzxid:#x}"
                )
            if before is not None and self.armed is not None and stat.mzxid > before:
                self.workload.violations.append(
                    f"watcher {self.number} was shown {stat.mzxid:#x} before the event for its watch on {before:#x}"
                )
            self.mzxid = max(self.mzxid, stat.mzxid)
            if watch:
                self.armed = stat.mzxid
            return

    def _wait_for_event(self, seconds):
        try:
            message = self.conn.message(seconds)
        except TimeoutError:
            return
        assert isinstance(message, Event), message
        self._event(message)

    def _event(self, event):
        if (event.type, event.path) != (EV.CHANGED, self.workload.path):
            self.workload.violations.append(f"watcher {self.number}: unexpected {event}")
        if self.armed is None:
            self.workload.violations.append(f"watcher {self.number}: a one-shot watch fired twice")
        self.armed = None
        self.workload.counts["events"] += 1

    def _take_events(self):
        """The events that came before the reply to something else."""
        while self.conn.events:
            self._event(self.conn.events.popleft())

    def settle(self, choose, final):
        """Whether the watcher hears of the last change, by event or by its own read."""
        for _ in range(200):
            if self.conn is None or self.conn.sock.fileno() < 0:
                self._connect(choose)
                continue
            try:
                if self.armed is None:
                    self._read(watch=True)
                if self.armed is not None and self.armed >= final:
                    return True
                self._wait_for_event(0.5)
                self.conn.sync("/")
                self._take_events()
                if self.armed is not None and self.armed < final:
                    return False  # a sync has passed and the event for an older state has not come
            except (Closed, OSError):
                self.conn.drop()
        return False


class Watches(Workload):
    name = "watches"
    path = "/chaos/watched"

    def __init__(self, addresses, seed, progress):
        super().__init__(addresses, seed, progress)
        self.watchers = [Watcher(self, number) for number in range(WATCHERS)]
        self.acknowledged = 0

    def setup(self, admin):
        admin.create(self.path, b"")

    def workers(self):
        return [self._writer(self.client().kazoo), *(watcher.step for watcher in self.watchers)]

    def _writer(self, kazoo):
        numbers = itertools.count()

        def step(_choose):
            try:
                stat = kazoo.set_async(self.path, b"%d" % next(numbers)).get(timeout=ANSWER_SECONDS)
            except UNKNOWN_FATE:
                self.counts["unknown"] += 1
                raise
            if stat.mzxid <= self.acknowledged:
                self.violations.append(f"zxid {stat.mzxid:#x} was given out behind {self.acknowledged:#x}")
            self.acknowledged = stat.mzxid
            self.counts["changes"] += 1
            self.progress.acknowledged()

        return step

    def check(self, ensemble):
        with ensemble.leader().connect_soon() as conn:
            conn.sync("/")
            final = conn.get(self.path)[1].mzxid
        if final < self.acknowledged:
            self.violations.append(f"the last acknowledged change {self.acknowledged:#x} is lost: {final:#x}")
        for watcher in self.watchers:
            if not watcher.settle(self.choose, final):
                self.violations.append(f"watcher {watcher.number} missed the last change: watch on {watcher.armed}")

    @property
    def lost_sessions(self):
        return super().lost_sessions + sum(watcher.lost for watcher in self.watchers)

    def close(self):
        super().close()
        for watcher in self.watchers:
            if watcher.conn is not None:
                watcher.conn.close()
