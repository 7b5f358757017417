"""Watches over a counter, by raw connections that move between members: no change is missed, no event comes behind a
reply that shows what it tells, and nobody travels back in time."""

import bisect
import itertools

from integration.chaos.workload import ANSWER_SECONDS, UNKNOWN_FATE, Workload
from integration.lib.zkwire import EV, OP, Closed, Conn, Event, Refused, add_watch, read

WATCHERS = 3
LISTENERS = 2


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


class Heard:
    """What a recursive watch told on one connection."""

    def __init__(self, set_at):
        self.set_at = set_at  # zxid of the reply that confirmed it
        self.zxids = []  # of the events
        self.replies = []  # (zxid of a reply, number of the events before it)

    def wrong(self, acknowledged):
        """The first thing that is wrong with it; `acknowledged` are the zxids of changes, sorted."""
        for before, after in itertools.pairwise([self.set_at, *self.zxids]):
            if after <= before:
                return f"told of {after:#x} behind {before:#x}"
        for zxid, count in self.replies:
            if count < len(self.zxids) and self.zxids[count] <= zxid:
                return f"told of {self.zxids[count]:#x} behind a reply of {zxid:#x}"
            wanted = acknowledged[bisect.bisect_right(acknowledged, self.set_at) : bisect.bisect_right(acknowledged, zxid)]
            missed = set(wanted) - set(self.zxids[:count])
            if missed:
                return f"a reply of {zxid:#x}, but {min(missed):#x} was not told, set at {self.set_at:#x}"
        return None


class Listener:
    """A session with a recursive watch, which is set again on every connection."""

    def __init__(self, workload, number):
        self.workload = workload
        self.number = number
        self.conn = None
        self.heard = []
        self.is_set = False
        self.lost = 0

    def step(self, choose):
        try:
            if self.conn is None or self.conn.sock.fileno() < 0:
                self._connect(choose)
            elif choose.random() < 0.02:
                self.conn.drop()
            else:
                self.look(self.conn.call(OP.GET_DATA, read(self.workload.path)).zxid)
        except Refused:
            self.lost += 1
            self.conn, self.is_set = None, False
        except (Closed, OSError):
            self.workload.errors["connection"] += 1
            if self.conn is not None:
                self.conn.drop()

    def _connect(self, choose):
        host, port = choose.choice(self.workload.addresses)
        keep, old = {}, self.conn
        if old is not None:
            keep = {"session": old.session, "passwd": old.passwd, "last_zxid": old.last_zxid}
        self.conn = Conn(port, host=host, timeout=20_000, wait=ANSWER_SECONDS, **keep)
        if self.is_set:
            reply = self.conn.set_watches(self.conn.last_zxid, recursive=[self.workload.path])
        else:
            reply = self.conn.call(OP.ADD_WATCH, add_watch(self.workload.path, 1)).ok()
            self.is_set = True
        if self.conn.events:
            self.workload.violations.append(f"listener {self.number}: told before it is set: {self.conn.events}")
        self.heard.append(Heard(reply.zxid))

    def look(self, zxid):
        """Takes the events before a reply of this zxid."""
        heard, known = self.heard[-1], (self.workload.path, self.workload.below)
        while self.conn.events:
            event = self.conn.events.popleft()
            if event.type != EV.CHANGED or event.path not in known:
                self.workload.violations.append(f"listener {self.number}: unexpected {event}")
            heard.zxids.append(event.zxid)
            self.workload.counts["told"] += 1
        heard.replies.append((zxid, len(heard.zxids)))

    def settle(self, choose, final):
        """Until a reply shows the last change."""
        for _ in range(200):
            if self.heard and any(zxid >= final for zxid, _ in self.heard[-1].replies[-1:]):
                return True
            self.step(choose)
        return False


class Watches(Workload):
    name = "watches"
    path = "/chaos/watched"
    below = "/chaos/watched/one/two"

    def __init__(self, addresses, seed, progress):
        super().__init__(addresses, seed, progress)
        self.watchers = [Watcher(self, number) for number in range(WATCHERS)]
        self.listeners = [Listener(self, number) for number in range(LISTENERS)]
        self.acknowledged = 0
        self.changes = []  # zxids of all that was acknowledged

    def setup(self, admin):
        for path in (self.path, f"{self.path}/one", self.below):
            admin.create(path, b"")

    def workers(self):
        readers = [*self.watchers, *self.listeners]
        return [self._writer(self.client().kazoo), *(reader.step for reader in readers)]

    def _writer(self, kazoo):
        numbers = itertools.count()

        def step(_choose):
            number = next(numbers)
            try:
                if number % 4 == 3:
                    below = kazoo.set_async(self.below, b"%d" % number).get(timeout=ANSWER_SECONDS)
                    self.changes.append(below.mzxid)
                stat = kazoo.set_async(self.path, b"%d" % number).get(timeout=ANSWER_SECONDS)
            except UNKNOWN_FATE:
                self.counts["unknown"] += 1
                raise
            if stat.mzxid <= self.acknowledged:
                self.violations.append(f"zxid {stat.mzxid:#x} was given out behind {self.acknowledged:#x}")
            self.acknowledged = stat.mzxid
            self.changes.append(stat.mzxid)
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
        for listener in self.listeners:
            if not listener.settle(self.choose, final):
                self.violations.append(f"listener {listener.number} is not shown the last change")
            wrong = filter(None, (heard.wrong(self.changes) for heard in listener.heard))
            self.violations += [f"listener {listener.number}: {text}" for text in wrong]

    @property
    def lost_sessions(self):
        return super().lost_sessions + sum(reader.lost for reader in (*self.watchers, *self.listeners))

    def close(self):
        super().close()
        for reader in (*self.watchers, *self.listeners):
            if reader.conn is not None:
                reader.conn.close()
