"""Random streams of steps, decided by a seed and by what the left server has answered so far.

A step is a plain dict of Python literals, so that a stream can be printed, cut down and run again without the
generator. What would kill or race inside Apache ZooKeeper is left out here, each time with a word why.
"""

from integration.differential import material, ops
from integration.differential.material import BASE, QUOTA

SLOTS = 4
LONG_TIMEOUT = 60000
SHORT_TIMEOUT = 1000
MAX_INT = 2**31 - 1

SINGLE_WEIGHTS = {
    "create": 16, "create2": 7, "createContainer": 4, "createTTL": 4, "delete": 8, "deleteContainer": 1, "exists": 7,
    "getData": 7, "setData": 9, "getACL": 4, "setACL": 5, "getChildren": 4, "getChildren2": 4, "sync": 2, "ping": 1,
    "multi": 10, "multiRead": 3, "reconfig": 0.5, "checkWatches": 2, "removeWatches": 3, "setWatches": 3,
    "setWatches2": 3, "addWatch": 5, "auth": 2, "sasl": 0.5, "getEphemerals": 2, "getAllChildrenNumber": 2,
    "whoAmI": 1.5, "quota": 3,
}
STEP_WEIGHTS = {"requests": 100, "reconnect": 5, "steal": 1, "handshake": 3, "bad_connect": 1, "bad_frame": 1,
                "drop": 3, "close": 2.5, "unknown_op": 1, "bad_auth": 1, "bad_sasl": 0.3, "word": 0.5, "expire": 0.12}


class Session:
    def __init__(self):
        self.alive = True


class SlotModel:
    def __init__(self):
        self.connected = False
        self.session = None
        self.xid = 0


class Stream:
    """`next_step()` and `observe(step, packets)` in turn."""

    def __init__(self, rng):
        self.rng = rng
        self.nodes = {BASE: 0}
        self.slots = [SlotModel() for _ in range(SLOTS)]
        self.watched = [[BASE] for _ in range(SLOTS + 1)]
        self.slot_now = 0
        self.hard_quota = self.chance(0.25)
        self.opening = list(range(SLOTS - 1))

    # Steps.

    def next_step(self):
        if self.opening:
            return self.connect_step(self.opening.pop(0), 0, "right")
        if self.hard_quota and f"{BASE}/a" not in self.nodes and self.slots[0].connected:
            return requests_step(0, self.quota_of_a())
        kind = self.weighted(STEP_WEIGHTS)
        live = [at for at, slot in enumerate(self.slots) if slot.connected]
        idle = [at for at, slot in enumerate(self.slots) if not slot.connected]
        if idle and (not live or self.chance(0.25)):
            kind = "reconnect"
        return getattr(self, f"step_{kind}")(live, idle)

    def step_requests(self, live, _idle):
        slot = self.rng.choice(live)
        return requests_step(slot, self.batch(slot, 1 if self.chance(0.7) else self.rng.randint(2, 7)))

    def step_reconnect(self, live, idle):
        """A new session, or the old one with right or doubtful credentials."""
        slot = self.rng.choice(idle or live)
        session = self.slots[slot].session
        if session is None or self.chance(0.2):
            return self.connect_step(slot, 0, self.rng.choice(["right", None, b"", b"short", bytes(16), bytes(20)]))
        # A wrong password on a session with a live connection: Java cuts the rightful connection, we need not.
        if self.is_live(session) or self.chance(0.8):
            return self.connect_step(slot, ("slot", slot), "right")
        wrong = self.rng.choice([None, b"", b"x" * 16, b"x" * 15, b"x" * 17, bytes(16)])
        return self.connect_step(slot, ("slot", slot), wrong)

    def step_steal(self, live, _idle):
        """Another slot resumes a session that still has its connection."""
        return self.connect_step(self.rng.randrange(SLOTS), ("slot", self.rng.choice(live)), "right")

    def step_handshake(self, _live, idle):
        """Odd handshakes on a place of their own; granted sessions are closed in the same breath."""
        slot = SLOTS
        step = self.connect_step(slot, 0, self.rng.choice(["right", None, b"abc"]))
        wish = step["connect"]
        wish["timeout"] = self.rng.choice([-5, 0, 1, 999, 1000, 1001, 59999, 60000, 60001, 10**6, -2**31, MAX_INT])
        wish["version"] = self.rng.choice([0, 7, -1])
        wish["extra"] = self.rng.choice([b"", b"", b"\x00\x01\x02"])
        if wish["read_only"] is None:
            wish["extra"] = b""
        choice = self.rng.randrange(4)
        if choice == 0:
            wish["last_zxid"] = self.rng.choice([2**62, 2**63 - 1])
        elif choice == 1:
            wish["session"] = self.rng.choice([1, -1, 2**62, -2**63])
        step["requests"] = [*step["requests"], self.plain(slot, ops.CLOSE_SESSION, {})]
        step["closes"] = True
        return step

    def step_bad_connect(self, _live, _idle):
        return {"kind": "bytes", "slot": None, "bytes": self.rng.choice(material.BAD_CONNECTS)}

    def step_word(self, _live, _idle):
        return {"kind": "bytes", "slot": None, "bytes": self.rng.choice(material.WORDS)}

    def step_bad_frame(self, live, _idle):
        return {"kind": "bytes", "slot": self.rng.choice(live), "bytes": self.rng.choice(material.BAD_FRAMES)}

    def step_drop(self, live, _idle):
        return {"kind": "drop", "slot": self.rng.choice(live),
                "bytes": self.rng.choice([b"", b"\x00", b"\x00\x00\x00\x40\x00\x00\x00\x01"])}

    def step_close(self, live, _idle):
        slot = self.rng.choice(live)
        # A container asked for with ephemeral flags goes with the session in Java, but only if it is still pending.
        before = [request for request in self.batch(slot, self.rng.choice([0, 0, 1, 3]))
                  if not asks_for_ephemeral_container(request)]
        behind = [self.request(slot, first=False) for _ in range(self.rng.choice([0, 0, 2]))]
        fields = self.rng.choice([{}, {}, {"mangle": ("pad", b"\x00\x01")}])
        close = {**self.plain(slot, ops.CLOSE_SESSION, {}), **fields}
        return requests_step(slot, [*before, close, *behind], closes=True)

    # The three below stand alone: Java refuses them as soon as they are read, past what is still pending.

    def step_unknown_op(self, live, _idle):
        slot = self.rng.choice(live)
        op = self.rng.choice([0, 10, 13, 23, 50, 99, 108, -1, -2, -9, -12, 200, 1000, MAX_INT, -2**31])
        if op == ops.CHECK:
            return requests_step(slot, [self.plain(slot, op, {"path": self.old_path(), "version": -1})], closes=True)
        raw = self.rng.choice([b"", b"\x00\x00\x00\x02/a"])
        return requests_step(slot, [self.plain(slot, op, {"raw": raw})], closes=True)

    def step_bad_auth(self, live, _idle):
        slot = self.rng.choice(live)
        scheme, auth = self.rng.choice(material.BAD_AUTHS)
        request = self.plain(slot, ops.AUTH, {"type": self.rng.choice([0, 100]), "scheme": scheme, "auth": auth})
        if self.chance(0.2):
            request = {**request, "fields": {"type": 0, "scheme": "digest", "auth": b"u:p"}, "mangle": ("cut", 2)}
        return requests_step(slot, [request], closes=True)

    def step_bad_sasl(self, live, _idle):
        slot = self.rng.choice(live)
        request = self.plain(slot, ops.SASL, {"token": None})
        if self.chance(0.5):
            request = {**request, "fields": {"token": b"abc"}, "mangle": ("cut", 1)}
        return requests_step(slot, [request], closes=True)

    def step_expire(self, live, _idle):
        """The session gets an ephemeral of its own, by which the test knows when the session has ended."""
        slot = self.rng.choice(live)
        step = self.connect_step(slot, ("slot", slot), "right")
        step["kind"] = "expire"
        step["connect"]["timeout"] = SHORT_TIMEOUT
        marker = {"path": f"{BASE}/~{self.rng.randrange(10**6)}", "data": b"", "acl": material.OPEN, "flags": 1}
        step["requests"] = [self.plain(slot, ops.CREATE, marker)]
        return step

    def connect_step(self, slot, session, passwd):
        rng = self.rng
        behind = []
        if slot < SLOTS and self.chance(0.4):
            behind = self.batch(slot, rng.randint(1, 4))
        return {
            "kind": "connect", "slot": slot, "requests": behind, "closes": False,
            "connect": {
                "session": session, "passwd": passwd, "timeout": LONG_TIMEOUT, "version": 0,
                "last_zxid": rng.choice([0, 0, ("zx", 0), ("zx", 3), -1]),
                "read_only": rng.choice([None, False, False, True]),
            },
        }

    # What the left server answered.

    def observe(self, step, packets):
        for number, seen in packets.items():
            if number is None or number >= SLOTS:
                continue
            slot = self.slots[number]
            if any(packet["kind"] in ("closed", "silent") for packet in seen):
                slot.connected = False
        self.observe_connection(step, packets)
        if step["kind"] in ("requests", "connect", "expire"):
            self.observe_replies(step, packets[step["slot"]])

    def observe_connection(self, step, packets):
        number = step["slot"]
        if number is None or number >= SLOTS:
            return
        slot = self.slots[number]
        if step["kind"] == "drop":
            slot.connected = False
        if step["kind"] in ("connect", "expire"):
            self.observe_handshake(slot, step, packets[number])
        if step["kind"] == "expire" and slot.session:
            slot.session.alive = False
        if step["kind"] == "requests" and any(r["op"] == ops.CLOSE_SESSION for r in step["requests"]):
            slot.session = None

    def observe_handshake(self, slot, step, seen):
        slot.connected = False
        if not seen or seen[0]["kind"] != "connect":
            return
        if seen[0]["sessionId"] == 0:
            slot.session = None
            return
        wanted = step["connect"]["session"]
        slot.session = self.slots[wanted[1]].session if isinstance(wanted, tuple) else Session()
        slot.connected = not any(packet["kind"] in ("closed", "silent") for packet in seen)

    def observe_replies(self, step, seen):
        by_xid = {request["xid"]: request for request in step["requests"]}
        for packet in seen:
            request = by_xid.get(packet.get("xid"))
            if packet["kind"] == "reply" and request and request["op"] == packet["op"]:
                self.observe_reply(request, packet)
            if packet["kind"] == "event":
                self.observe_event(packet["body"])

    def observe_reply(self, request, reply):
        op, fields, body = request["op"], request["fields"], reply["body"]
        if reply["err"] == -101 and isinstance(fields.get("path"), str):
            self.forget(fields["path"])
        if reply["err"] != 0 or request.get("mangle"):
            return
        if op in (ops.CREATE, ops.CREATE2, ops.CREATE_CONTAINER, ops.CREATE_TTL):
            self.nodes[body["path"]] = 0
        elif op == ops.DELETE:
            self.forget(fields["path"])
        elif op == ops.SET_DATA:
            self.nodes[fields["path"]] = body["stat"]["version"]
        elif op == ops.MULTI:
            self.observe_multi(fields["ops"], body["results"])

    def observe_multi(self, parts, results):
        for (kind, fields), result in zip(parts, results):
            if result["type"] in (ops.CREATE, ops.CREATE2):
                self.nodes[result["body"]["path"]] = 0
            elif result["type"] == ops.DELETE:
                self.forget(fields["path"])
            elif result["type"] == ops.SET_DATA:
                self.nodes[fields["path"]] = result["body"]["stat"]["version"]

    def observe_event(self, event):
        if event["type"] == 1:
            self.nodes.setdefault(event["path"], 0)
        elif event["type"] == 2:
            self.forget(event["path"])

    def forget(self, path):
        if path != BASE:
            self.nodes.pop(path, None)

    def is_live(self, session):
        return any(slot.connected and slot.session is session for slot in self.slots)

    # Requests.

    def plain(self, slot, op, fields):
        """A request with a fresh xid."""
        model = self.slots[slot] if slot < SLOTS else SlotModel()
        model.xid += 1
        return {"xid": model.xid, "op": op, "fields": fields}

    def batch(self, slot, count):
        """Pipelined requests. Java judges a write behind a pending setACL by the old list or the new one, as the
        race goes, and a write behind another one by the quota totals of before or after; so setACL ends a batch,
        and where hard limits are in play there is one request at a time."""
        requests = []
        while len(requests) < (min(count, 1) if self.hard_quota else count):
            requests.append(self.request(slot, first=not requests))
            if requests[-1]["op"] == ops.SET_ACL:
                break
        return requests

    def request(self, slot, first):
        """Any request that leaves the connection open. auth and sasl come first or not at all: Java handles
        them when they are read, so what stands before them in a batch may or may not profit."""
        self.slot_now = slot
        name = "quota" if self.hard_quota and self.chance(0.06) else self.weighted(SINGLE_WEIGHTS)
        while not first and name in ("auth", "sasl"):
            name = self.weighted(SINGLE_WEIGHTS)
        if name == "quota":
            op, fields = self.quota()
            return self.plain(slot, op, fields)
        op = next(number for number, entry in ops.TABLE.items() if entry[0] == name)
        request = self.plain(slot, op, getattr(self, f"fields_{name}")())
        self.odd_xid(request)
        self.maybe_mangle(request)
        return request

    def odd_xid(self, request):
        """Ping answers -2 to any xid; other xids are echoed. -1 is left out: its reply would look like an event."""
        if request["op"] in (ops.AUTH, ops.SASL):
            request["xid"] = self.rng.choice([-4, -4, request["xid"]])
        elif request["op"] in (ops.SET_WATCHES, ops.SET_WATCHES2):
            request["xid"] = self.rng.choice([-8, request["xid"]])
        elif self.chance(0.02):
            request["xid"] = self.rng.choice([0, -3, -100, MAX_INT, -2**31])

    def maybe_mangle(self, request):
        """Records that end early, go on too long, or have a byte changed."""
        op = request["op"]
        if op in (ops.AUTH, ops.SASL, ops.DELETE_CONTAINER) or not self.chance(0.05):
            return
        how = self.rng.randrange(4)
        if how == 0:
            request["mangle"] = ("pad", self.rng.choice([b"\x00", b"junk", bytes(64)]))
        elif how < 3 or op in ops.WRITES or op in (ops.SET_WATCHES, ops.SET_WATCHES2):
            request["mangle"] = self.cut(op, request)
        else:
            # Only reads: a changed byte in a write can turn into one of the requests Java does not survive, and in
            # a zxid it means something else on each server.
            at = self.rng.randrange(6)
            request["mangle"] = ("poke", (at, self.rng.choice([b"\xff", b"\x00", b"\x7f", b"\xff\xff\xff\xfe"])))

    def cut(self, op, request):
        # Java works through the lists of setWatches before it finds one missing, and through the operations of
        # a multiRead; where exactly the record ends must not matter there.
        size = len(ops.encode_body(op, {k: 0 if isinstance(v, tuple) else v for k, v in request["fields"].items()}))
        return ("cut", self.rng.randint(1, max(1, size)) if size else 0)

    def fields_create(self):
        flags = self.choose([(0, 8), (1, 5), (2, 3), (3, 2), (4, 0.5), (5, 0.3), (6, 0.3), (7, 0.3), (-1, 0.3)])
        path = self.new_path()
        if flags in (2, 3) and self.chance(0.3) and isinstance(path, str):
            path = self.known() + "/"
        return {"path": path, "data": self.data(), "acl": self.acl(), "flags": flags}

    fields_create2 = fields_create

    def fields_createContainer(self):
        return {**self.fields_create(), "flags": self.choose([(4, 10), (0, 1), (1, 1), (2, 1), (3, 1), (5, 1), (9, 1)])}

    def fields_createTTL(self):
        """A mode without TTL must not meet a negative ttl: that ends Java's server for good."""
        flags = self.choose([(5, 8), (6, 4), (0, 1), (1, 1), (2, 1), (4, 1), (7, 1), (-1, 1)])
        ttl = self.choose([(10**9, 8), (2**40 - 1, 1), (2**40, 1), (0, 1), (-1, 1), (-2**63, 0.5), (2**63 - 1, 0.5)])
        if flags not in (5, 6):
            ttl = abs(ttl) % 2**63
        return {**self.fields_create(), "flags": flags, "ttl": ttl}

    def fields_delete(self):
        path = self.old_path()
        return {"path": path, "version": self.version(path)}

    def fields_deleteContainer(self):
        """Only paths where Java finds nothing to delete; it would ask nobody's permission."""
        return {"path": f"{BASE}/none/{self.rng.choice(material.NAMES)}".encode()}

    def fields_exists(self):
        path = self.old_path(0.4)
        return {"path": path, "watch": self.watch(path)}

    def fields_getData(self):
        path = self.old_path()
        return {"path": path, "watch": self.watch(path)}

    fields_getChildren = fields_getChildren2 = fields_getData

    def fields_setData(self):
        path = self.old_path()
        return {"path": path, "data": self.data(), "version": self.version(path)}

    def fields_getACL(self):
        return {"path": self.old_path()}

    def fields_setACL(self):
        path = self.old_path()
        while path == BASE:
            path = self.old_path()
        return {"path": path, "acl": self.acl(0.3), "version": self.choose([(-1, 6), (0, 2), (1, 2), (2, 1), (-2, 1)])}

    def fields_sync(self):
        return {"path": self.old_path()}

    fields_getEphemerals = fields_getAllChildrenNumber = fields_sync

    def fields_ping(self):
        return {}

    fields_whoAmI = fields_ping

    def fields_reconfig(self):
        text = [None, "", "server.2=localhost:1:2:participant;3", "x"]
        return {"joiningServers": self.rng.choice(text), "leavingServers": self.rng.choice([None, "1", "x"]),
                "newMembers": self.rng.choice([None, None, *text]), "curConfigId": self.rng.choice([-1, 0, 5])}

    def fields_checkWatches(self):
        path = self.rng.choice(self.watched[self.slot_now][-6:]) if self.chance(0.7) else self.old_path(0.2)
        return {"path": path, "type": self.choose([(1, 3), (2, 3), (3, 3), (4, 2), (5, 2), (0, 1), (6, 1), (-1, 1)])}

    fields_removeWatches = fields_checkWatches

    def fields_setWatches(self):
        """A null list comes first: Java sends the events of the lists before it, then the error."""
        names = ["dataWatches", "existWatches", "childWatches"]
        fields = {name: self.path_list() for name in names}
        if self.chance(0.08):
            fields = {**{name: [] for name in names}, self.rng.choice(names): None}
        return {"relativeZxid": self.rng.choice([0, ("zx", 0), ("zx", 2), ("zx", 8), 2**62, -1]), **fields}

    def fields_setWatches2(self):
        fields = {**self.fields_setWatches(), "persistentWatches": self.path_list(),
                  "persistentRecursiveWatches": self.path_list()}
        if None in fields.values():
            fields.update(persistentWatches=[], persistentRecursiveWatches=[])
        return fields

    def fields_addWatch(self):
        path = self.old_path(0.3)
        self.watched[self.slot_now].append(path)
        return {"path": path, "mode": self.choose([(0, 6), (1, 6), (2, 1), (-1, 1)])}

    def fields_auth(self):
        scheme, auth = material.SUPER_AUTH if self.chance(0.1) else self.rng.choice(material.GOOD_AUTHS)
        return {"type": self.rng.choice([0, 0, 5]), "scheme": scheme, "auth": auth}

    def fields_sasl(self):
        return {"token": self.rng.choice([b"", b"abc"])}

    # multi and multiRead.

    def fields_multi(self):
        parts = [self.multi_part() for _ in range(self.choose([(0, 1), (1, 3), (2, 5), (3, 5), (4, 3), (6, 2)]))]
        if self.chance(0.06):
            parts.insert(self.rng.randint(0, len(parts)), self.foreign_part())
        elif self.chance(0.15):
            parts = self.family()
        for _, fields in parts[1:]:
            if has_null_identity(fields.get("acl")):
                # Java fails the multi there, but goes on as if the operations before had changed the tree.
                fields["acl"] = material.OPEN
        if self.hard_quota:
            # Java checks each operation of a multi against the totals from before the multi.
            parts = [part for part in parts if part[0] == ops.CHECK] + parts[:1]
        return {"ops": parts, "end": not self.chance(0.03)}

    def multi_part(self):
        name = self.choose([("create", 7), ("create2", 3), ("createContainer", 1), ("createTTL", 1), ("delete", 4),
                            ("setData", 5), ("check", 4)])
        if name == "check":
            path = self.old_path()
            return ops.CHECK, {"path": path, "version": self.version(path)}
        op = next(number for number, entry in ops.TABLE.items() if entry[0] == name)
        fields = getattr(self, f"fields_{name}")()
        if op in (ops.CREATE, ops.CREATE2, ops.CREATE_CONTAINER) and self.chance(0.95):
            # Mostly flags that belong to the op; others spoil the whole multi.
            fields["flags"] = 4 if op == ops.CREATE_CONTAINER else self.rng.choice([0, 0, 1, 2, 3])
        if self.chance(0.97) and "acl" in fields and fields["acl"] is None:
            fields["acl"] = material.OPEN
        return op, fields

    def family(self):
        """A node, its child, and both gone again, or a collision: one op builds on another."""
        path = f"{self.known()}/{self.rng.choice(material.NAMES)}"
        new = {"data": self.data(), "acl": material.OPEN, "flags": self.rng.choice([0, 0, 1])}
        parts = [(ops.CREATE, {**new, "path": path}), (ops.CREATE2, {**new, "path": path + "/k", "flags": 0}),
                 (ops.SET_DATA, {"path": path, "data": b"m", "version": self.rng.choice([0, 1, -1])}),
                 (ops.CHECK, {"path": path, "version": self.rng.choice([0, 1, -1])}),
                 (ops.DELETE, {"path": path + "/k", "version": -1}), (ops.DELETE, {"path": path, "version": -1})]
        return parts[:self.rng.randint(2, len(parts))]

    def foreign_part(self):
        """Something that has no place in a multi."""
        choice = self.rng.randrange(6)
        if choice == 0:
            return ops.EXISTS, self.fields_exists()
        if choice == 1:
            return ops.SET_ACL, {"path": BASE + "/none", "acl": material.OPEN, "version": -1}
        if choice == 2:
            return ops.GET_DATA, self.fields_getData()
        if choice == 3:
            return ops.GET_CHILDREN, self.fields_getData()
        if choice == 4:
            return ops.MULTI, {}
        return ops.CLOSE_SESSION, {}

    def fields_multiRead(self):
        parts = []
        for _ in range(self.rng.randint(0, 5)):
            parts.append((self.rng.choice([ops.GET_DATA, ops.GET_CHILDREN]), self.fields_getData()))
        if self.chance(0.08):
            parts.append(self.rng.choice([(ops.EXISTS, self.fields_exists()), (ops.DELETE, self.fields_delete())]))
        return {"ops": parts, "end": not self.chance(0.03)}

    # Quotas. Their texts stay well formed, and none is set on the root: both end Java's server.

    def quota(self):
        path = QUOTA + self.quota_target()
        acl = material.OPEN
        choice = self.rng.randrange(8)
        if choice < 3:
            return ops.MULTI, {"end": True, "ops": [
                *[(ops.CREATE, {"path": part, "data": None, "acl": acl, "flags": 0}) for part in self.missing(path)],
                (ops.CREATE, {"path": path + "/zookeeper_limits", "data": self.limits(), "acl": acl,
                              "flags": 0}),
                (ops.CREATE, {"path": path + "/zookeeper_stats", "data": b"count=0,bytes=0", "acl": acl, "flags": 0})]}
        if choice == 3:
            return ops.SET_DATA, {"path": path + "/zookeeper_limits", "data": self.limits(),
                                  "version": -1}
        if choice == 4:
            leaf = self.rng.choice(["/zookeeper_limits", "/zookeeper_limits", "/zookeeper_stats"])
            return ops.DELETE, {"path": path + leaf, "version": -1}
        leaf = path + self.rng.choice(["/zookeeper_stats", "/zookeeper_limits"])
        return ops.GET_DATA, {"path": leaf, "watch": self.watch(leaf)}

    def limits(self):
        return self.rng.choice(material.HARD_LIMITS if self.hard_quota else material.SOFT_LIMITS)

    def quota_of_a(self):
        """A node, and a quota on it: what a stream with hard limits starts from."""
        new = {"data": b"", "acl": material.OPEN, "flags": 0}
        node = QUOTA + BASE + "/a"
        parts = [(ops.CREATE, {**new, "path": path}) for path in self.missing(node)]
        parts += [(ops.CREATE, {**new, "path": node + "/zookeeper_limits", "data": self.limits()}),
                  (ops.CREATE, {**new, "path": node + "/zookeeper_stats", "data": b"count=0,bytes=0"})]
        return [self.plain(0, ops.CREATE, {**new, "path": f"{BASE}/a"}),
                self.plain(0, ops.MULTI, {"ops": parts, "end": True})]

    def quota_target(self):
        return self.rng.choice([f"{BASE}/a", f"{BASE}/b", f"{BASE}/a/a", f"{BASE}/a/b", f"{BASE}/c"])

    def missing(self, path):
        parts = path[len(QUOTA) + 1:].split("/")
        chain = [QUOTA + "/" + "/".join(parts[:at + 1]) for at in range(len(parts))]
        return [node for node in chain if node not in self.nodes]

    # Values.

    def known(self):
        """A node that exists, as far as the stream knows; no quota node, whose text must stay in form."""
        return self.rng.choice([path for path in self.nodes if not path.startswith(QUOTA)])

    def new_path(self):
        choice = self.rng.random()
        if choice < 0.80:
            return f"{self.shallow()}/{self.rng.choice(material.NAMES[:5] if self.chance(0.7) else material.NAMES)}"
        if choice < 0.85:
            return self.known()
        if choice < 0.87:
            return f"/zookeeper/{self.rng.choice(['@ROOT@', 'quota/@ROOT@x'])}"
        if choice < 0.89:
            return f"/@ROOT@{self.rng.choice('xyz')}"
        return self.odd_path()

    def shallow(self):
        """Parents near the top are likelier, so that the tree keeps being worked on."""
        if self.hard_quota and self.chance(0.5):
            return self.rng.choice([path for path in self.nodes if path.startswith(f"{BASE}/a")] or [BASE])
        return min((self.known() for _ in range(2)), key=len)

    def old_path(self, absent=0.12):
        choice = self.rng.random()
        if choice < absent:
            return f"{self.known()}/{self.rng.choice(material.NAMES[:5])}"
        if choice < 0.85:
            return self.known()
        if choice < 0.92:
            return self.rng.choice(material.SPECIAL_PATHS)
        return self.odd_path()

    def odd_path(self):
        choice = self.rng.randrange(8)
        base = self.known()
        if choice < 3:
            name = self.rng.choice(material.ODD_NAMES)
            return base.encode() + b"/" + name if isinstance(name, bytes) else f"{base}/{name}"
        if choice < 6:
            return base + self.rng.choice(material.ODD_TAILS)
        if choice == 6:
            return self.rng.choice(material.SPECIAL_PATHS)
        return self.rng.choice([base[1:], base + "/" + "n" * 2000, base + "/none/a", " " + base, base + "\x00"])

    def path_list(self):
        count = self.rng.randint(0, 3)
        return [path for path in (self.old_path(0.3) for _ in range(count)) if path is not None]

    def data(self):
        return self.choose([(None, 1), (b"", 2), (b"d", 3), (bytes([self.rng.randrange(256)]) * self.rng.randint(1, 30), 4),
                            (b"long" * 400, 0.3)])

    def version(self, path):
        current = self.nodes.get(path, 0) if isinstance(path, str) else 0
        return self.choose([(-1, 6), (current, 4), (current + 1, 1), (-2, 0.5), (MAX_INT, 0.3), (-2**31, 0.3)])

    def watch(self, path):
        wish = self.choose([(False, 5), (True, 5), (7, 0.3)])
        if wish:
            self.watched[self.slot_now].append(path)
        return wish

    def acl(self, bad=0.08):
        if self.chance(0.65):
            return material.OPEN
        if self.chance(0.08):
            return self.rng.choice([None, []])
        entries = [self.acl_entry(bad) for _ in range(self.rng.randint(1, 3))]
        nulls = [entry for entry in entries if has_null_identity([entry])]
        if nulls:
            # Alone: Java fails differently when it compares a null scheme or id with another entry of equal perms.
            return nulls[:1]
        if self.chance(0.2):
            entries.append(entries[0])
        if self.chance(0.5):
            entries.append({"perms": self.rng.choice([31, 31, 15, 1, 29]), "scheme": "world", "id": "anyone"})
        return entries

    def acl_entry(self, bad):
        scheme, name = self.rng.choice(material.BAD_IDS if self.chance(bad) else material.GOOD_IDS)
        return {"perms": self.rng.choice(material.PERMS), "scheme": scheme, "id": name}

    def chance(self, share):
        return self.rng.random() < share

    def choose(self, weighted):
        return self.rng.choices([value for value, _ in weighted], [weight for _, weight in weighted])[0]

    def weighted(self, table):
        return self.rng.choices(list(table), list(table.values()))[0]


def requests_step(slot, requests, closes=False):
    return {"kind": "requests", "slot": slot, "requests": requests, "closes": closes}


def asks_for_ephemeral_container(request):
    parts = request["fields"].get("ops") or [(request["op"], request["fields"])]
    return any(op == ops.CREATE_CONTAINER and fields.get("flags") in (1, 3) for op, fields in parts)


def has_null_identity(acl):
    return any(None in entry.values() for entry in acl or [])
