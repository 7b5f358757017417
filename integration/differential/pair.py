"""Two servers in lock step: a step goes to both, both come to rest, everything seen is compared."""

import collections

from integration.differential import client, compare, ops, wanted
from integration.differential.side import Side


class Difference(Exception):
    """The servers disagree. `texts` say how, `left` and `right` are the packets of the slot concerned."""

    def __init__(self, step, slot, at, texts, left, right):
        super().__init__("; ".join(texts))
        self.step, self.slot, self.at, self.texts, self.left, self.right = step, slot, at, texts, left, right

    def packets(self):
        """The two packets that differ; None where one side has no more."""
        return tuple(side[self.at] if self.at < len(side) else None for side in (self.left, self.right))


class Pair:
    """`rules` are the wanted differences in force (see `wanted`); `hits` counts what they let pass."""

    def __init__(self, left_server, right_server, rules=()):
        self.servers = (left_server, right_server)
        self.rules = rules
        self.hits = {}
        self.answers = collections.Counter()
        self.names = None
        self.sides = ()
        self.admins = ()

    def start(self):
        for server in self.servers:
            server.start()
        self.names = compare.Renaming()
        self.sides = tuple(
            Side(server.name, server, lambda back, at=at: self.names.recent(at, back))
            for at, server in enumerate(self.servers)
        )
        self.admins = tuple(self._admin(server) for server in self.servers)

    def stop(self):
        for admin in self.admins:
            admin.close()
        for server in self.servers:
            server.kill9()

    @staticmethod
    def _admin(server):
        connection, _ = client.open_session(server.port, timeout_ms=60000)
        client.authenticate(connection)
        return connection

    def begin(self, root):
        """A fresh folder for the next stream. Its child keeps it from being deleted."""
        for side, admin in zip(self.sides, self.admins):
            side.begin(root)
            for path in (b"/" + root, b"/" + root + b"/~"):
                admin.call(ops.CREATE, {"path": path, "data": b"", "acl": OPEN_ACL, "flags": 0})

    # One step.

    def run(self, step):
        """Runs a step on both servers; returns the left server's packets a slot, or raises Difference."""
        actor = step["slot"]
        seen = [self._act(step, actor)]
        seen += self._barrier(-1 if actor is None else actor)
        loose = loose_zxids(step, seen)
        for number, left, right in seen:
            self._compare(step, number, left, right, loose)
        return {number: left for number, left, _ in seen}

    def _act(self, step, actor):
        kind = step["kind"]
        left, right = self.sides
        if kind == "requests":
            if any(side.slot(actor).connection is None for side in self.sides):
                return actor, [], []  # the step lost its ground when a trace was shortened
            left.start_requests(step)
            right.start_requests(step)
            return actor, left.finish_requests(step), right.finish_requests(step)
        if kind == "connect":
            left.start_connect(step)
            right.start_connect(step)
            return actor, left.finish_connect(step), right.finish_connect(step)
        if kind == "bytes":
            return actor, left.raw_bytes(step), right.raw_bytes(step)
        if kind == "drop":
            return actor, left.drop(step), right.drop(step)
        if kind == "await":
            return actor, left.await_events(step), right.await_events(step)
        if kind == "expire":
            return actor, *self._expire(step)
        raise ValueError(kind)

    def _expire(self, step):
        for side in self.sides:
            side.start_connect(step)
        before = [side.finish_connect(step) for side in self.sides]
        if any(side.slot(step["slot"]).connection is None for side in self.sides):
            return before
        return [first + side.wait_expired(step, admin)
                for first, side, admin in zip(before, self.sides, self.admins)]

    def _barrier(self, actor):
        left, right = self.sides
        live = [number for number in sorted(left.slots)
                if number != actor and left.slots[number].connection and right.slot(number).connection]
        for number in live:
            left.start_barrier(number)
            right.start_barrier(number)
        return [(number, left.finish_barrier(number), right.finish_barrier(number)) for number in live]

    def _compare(self, step, number, left, right, loose):
        left = compare.in_comparable_order(left, lambda zxid: loose(0, zxid))
        right = compare.in_comparable_order(right, lambda zxid: loose(1, zxid))
        for at, (one, other) in enumerate(zip(left, right)):
            self.answers[describe(one)] += 1
            texts = compare.compare_packets(self.names, one, other)
            if texts and not self._is_wanted(step, one, other):
                raise Difference(step, number, at, texts, left, right)
        if len(left) != len(right):
            at = min(len(left), len(right))
            longer = "left" if len(left) > at else "right"
            raise Difference(step, number, at, [f"one more packet on the {longer}"], left, right)

    def _is_wanted(self, step, left, right):
        for rule in self.rules:
            if rule.applies(step, left, right):
                self.hits[rule.name] = self.hits.get(rule.name, 0) + 1
                return True
        return False

    # The end of a seed.

    def finish(self):
        """Compares what is left of the seed's nodes, ends its sessions, and removes every trace."""
        self._compare_trees()
        self._end_sessions()
        for side, admin in zip(self.sides, self.admins):
            clean(admin)

    def _compare_trees(self):
        root = self.sides[0].root.decode()
        todo = ["/", "/zookeeper"]
        while todo:
            path = todo.pop()
            replies = [look(admin, path) for admin in self.admins]
            step = {"kind": "final state", "slot": None, "path": path}
            for at, (left, right) in enumerate(zip(*replies)):
                texts = compare.compare_packets(self.names, left, right)
                if texts:
                    raise Difference(step, None, at, texts, *replies)
            children = replies[0][1]["body"]["children"] if replies[0][1]["err"] == 0 else []
            base = "" if path == "/" else path
            todo += [f"{base}/{child}" for child in sorted(children)]
            if len(todo) > 100_000:
                raise RuntimeError(f"the tree of {root} does not end")

    def _end_sessions(self):
        """Every session of the seed must be resumable on both servers or on neither."""
        for side in self.sides:
            for slot in side.slots.values():
                if slot.connection:
                    slot.connection.leave()
        pairs = [(left, self.names.sessions[0].get(left)) for left in self.sides[0].sessions]
        for ids in pairs:
            granted = [end_session(side, number) for side, number in zip(self.sides, ids)]
            if granted[0] != granted[1]:
                texts = [f"session {ids} can be resumed: {granted[0]} | {granted[1]}"]
                raise Difference({"kind": "final sessions", "slot": None}, None, 0, texts, [], [])


def describe(packet):
    """The class a packet counts under in the statistics."""
    if packet["kind"] == "reply":
        return "?" if packet["op"] is None else ops.name(packet["op"]), packet["err"]
    if packet["kind"] == "event":
        return "event " + ops.EVENTS.get(packet["body"]["type"], "?"), packet["err"]
    return packet["kind"], 0


def loose_zxids(step, seen):
    """Which event zxids come in no particular order: those of the end of a session, per side."""
    if step["kind"] == "expire":
        return lambda side, zxid: zxid > 0
    closing = [set(), set()]
    for _, *sides in seen[:1]:
        for at, packets in enumerate(sides):
            closing[at] = {p["zxid"] for p in packets if p["kind"] == "reply" and p["op"] == ops.CLOSE_SESSION}
    return lambda side, zxid: zxid in closing[side]


def look(admin, path):
    """Everything a client can see of one node."""
    packets = []
    for op in (ops.GET_DATA, ops.GET_CHILDREN2, ops.GET_ACL):
        fields = {"path": path} if op == ops.GET_ACL else {"path": path, "watch": False}
        _, reply = admin.call(op, fields)
        packets.append({"kind": "reply", "op": op, **reply})
    return packets


def end_session(side, session_id):
    """Whether the session could be resumed; it is closed then."""
    if session_id is None:
        return False
    connection, response = client.open_session(
        side.server.port, session_id=session_id, passwd=side.sessions.get(session_id, client.ZERO_PASSWD))
    granted = response["sessionId"] == session_id
    if granted:
        connection.call(ops.CLOSE_SESSION, {})
    connection.close()
    return granted


OPEN_ACL = [{"perms": 31, "scheme": "world", "id": "anyone"}]
KEPT = {"/": OPEN_ACL, "/zookeeper": OPEN_ACL, "/zookeeper/quota": OPEN_ACL,
        "/zookeeper/config": [{"perms": 1, "scheme": "world", "id": "anyone"}]}


def clean(admin):
    """Back to the nodes of a fresh server."""
    todo, found = ["/"], []
    while todo:
        path = todo.pop()
        found.append(path)
        _, reply = admin.call(ops.GET_CHILDREN, {"path": path, "watch": False})
        base = "" if path == "/" else path
        todo += [f"{base}/{child}" for child in sorted(reply["body"]["children"])]
    for path in reversed(found):
        if path not in KEPT:
            admin.call(ops.DELETE, {"path": path, "version": -1})
    for path, acl in KEPT.items():
        _, reply = admin.call(ops.GET_ACL, {"path": path})
        if reply["body"]["acl"] != acl:
            admin.call(ops.SET_ACL, {"path": path, "acl": acl, "version": -1})
