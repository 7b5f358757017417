"""One server as the test sees it: its slots (places for a client), and what each step brought.

A slot holds at most one connection and remembers the credentials of its session. Packets are dicts with a
"kind": reply, event, connect (a ConnectResponse), closed, open (should have been closed), silent (no answer in
time), undecodable.
"""

import struct
import time

from integration.differential import client, jute, ops

PING_XID = -2
BARRIER = jute.frame(ops.encode_request(PING_XID, ops.PING, {}))
EVENT_XID = b"\xff\xff\xff\xff"
# Stands for the run's own folder in every path; replaced byte for byte by a name of the same length.
ROOT = b"@ROOT@"
SILENCE = 20.0
CLOSE_WAIT = 1.5


class Slot:
    def __init__(self):
        self.connection = None
        self.session_id = 0
        self.passwd = client.ZERO_PASSWD


class Side:
    """The slots against one server. `zxid_of` turns ("zx", n) into this server's n-th latest known zxid."""

    def __init__(self, name, server, zxid_of):
        self.name = name
        self.server = server
        self.zxid_of = zxid_of
        self.root = ROOT
        self.slots = {}
        self.sessions = {}

    def begin(self, root):
        self.root = root
        self.slots = {}
        self.sessions = {}

    def slot(self, number):
        return self.slots.setdefault(number, Slot())

    # Sending.

    def resolve(self, value):
        if isinstance(value, tuple) and value and value[0] == "zx":
            return self.zxid_of(value[1])
        return value

    def request_frame(self, request):
        """The wire form of a request of a step, mangled if it says so."""
        fields = {name: self.resolve(value) for name, value in request["fields"].items()}
        payload = ops.encode_request(request["xid"], request["op"], fields)
        mangle = request.get("mangle")
        if mangle:
            payload = apply_mangle(payload, mangle)
        return jute.frame(payload).replace(ROOT, self.root)

    def start_requests(self, step):
        slot = self.slot(step["slot"])
        data = b"".join(self.request_frame(request) for request in step["requests"])
        slot.connection.send(data if step["closes"] else data + BARRIER)

    def start_connect(self, step):
        slot = self.slot(step["slot"])
        if slot.connection:
            slot.connection.leave()
        slot.connection = client.Connection(self.server.port, SILENCE)
        wish = step["connect"]
        payload = client.connect_payload(
            timeout_ms=wish["timeout"],
            session_id=self._session_id(wish["session"]),
            passwd=self._passwd(wish["session"], wish["passwd"]),
            last_zxid=self.resolve(wish["last_zxid"]),
            read_only=wish["read_only"],
            version=wish["version"],
        ) + wish.get("extra", b"")
        behind = b"".join(self.request_frame(request) for request in step["requests"])
        slot.connection.send(jute.frame(payload) + behind + (b"" if step["closes"] else BARRIER))

    def _session_id(self, session):
        if isinstance(session, tuple):
            return self.slot(session[1]).session_id
        return session

    def _passwd(self, session, passwd):
        if passwd == "right":
            return self.slot(session[1]).passwd if isinstance(session, tuple) else client.ZERO_PASSWD
        return passwd

    # Receiving.

    def finish_connect(self, step):
        slot = self.slot(step["slot"])
        try:
            response = client.decode_connect(slot.connection.receive())
        except client.Closed:
            slot.connection = None
            return [{"kind": "closed"}]
        except client.TimedOut:
            return self._silent(slot)
        except jute.DecodeError as error:
            return [{"kind": "undecodable", "why": str(error)}]
        packets = [{"kind": "connect", **response}]
        if response["sessionId"]:
            slot.session_id, slot.passwd = response["sessionId"], response["passwd"]
            self.sessions[response["sessionId"]] = response["passwd"]
        return packets + self.finish_requests(step)

    def finish_requests(self, step):
        slot = self.slot(step["slot"])
        pending = [(PING_XID if r["op"] == ops.PING else r["xid"], r["op"]) for r in step["requests"]]
        if step["closes"]:
            return self._read_until_closed(slot, pending)
        return self._read_to_barrier(slot, pending)

    def start_barrier(self, number):
        self.slots[number].connection.send(BARRIER)

    def finish_barrier(self, number):
        return self._read_to_barrier(self.slots[number], [])

    def _read_to_barrier(self, slot, pending):
        pending = [*pending, (PING_XID, ops.PING)]
        packets = []
        try:
            while pending:
                packets.append(self._packet(slot.connection.receive(), pending))
        except client.Closed:
            slot.connection = None
            packets.append({"kind": "closed"})
        except client.TimedOut:
            packets += self._silent(slot)
        return packets

    def _read_until_closed(self, slot, pending):
        try:
            frames = slot.connection.receive_until_closed(CLOSE_WAIT)
            end = {"kind": "closed"}
        except client.TimedOut as timed_out:
            frames = timed_out.args[0]
            end = {"kind": "open"}
        if end["kind"] == "closed":
            slot.connection = None
        return [self._packet(payload, pending) for payload in frames] + [end]

    def _silent(self, slot):
        slot.connection.close()
        slot.connection = None
        return [{"kind": "silent"}]

    def _packet(self, payload, pending):
        payload = payload.replace(self.root, ROOT)
        try:
            if payload[:4] == EVENT_XID:
                return {"kind": "event", **ops.decode_event(payload)}
            (xid,) = struct.unpack(">i", payload[:4])
            op = take_pending(pending, xid)
            return {"kind": "reply", "op": op, **ops.decode_reply(op, payload)}
        except (jute.DecodeError, struct.error) as error:
            pending[:1] = []
            return {"kind": "undecodable", "why": str(error), "payload": payload}

    # Whole steps that are not requests.

    def raw_bytes(self, step):
        """Bytes on the slot's connection (or on a new one); the server is expected to close."""
        slot = self.slot(step["slot"]) if step["slot"] is not None else Slot()
        if slot.connection is None:
            slot.connection = client.Connection(self.server.port, SILENCE)
        slot.connection.send(step["bytes"])
        connection = slot.connection
        packets = self._read_until_closed(slot, [])
        if connection.buffer:
            packets.insert(-1, {"kind": "text", "text": connection.buffer})
        if step["slot"] is None:
            connection.close()
        return packets

    def await_events(self, step):
        """Waits for events that come of the server's own accord."""
        slot = self.slot(step["slot"])
        packets = []
        try:
            while len(packets) < step["events"]:
                packets.append(self._packet(slot.connection.receive(), []))
        except client.Closed:
            slot.connection = None
            packets.append({"kind": "closed"})
        except client.TimedOut:
            packets += self._silent(slot)
        return packets

    def drop(self, step):
        slot = self.slot(step["slot"])
        if slot.connection:
            if step["bytes"]:
                slot.connection.send(step["bytes"])
            slot.connection.leave()
            slot.connection = None
        return []

    def wait_expired(self, step, admin):
        """Lets a slot's session die: no word from its client until the server has closed it."""
        slot = self.slot(step["slot"])
        packets = self._read_until_expired(slot)
        deadline = time.monotonic() + SILENCE
        while slot.session_id in dumped_ephemeral_owners(admin, self.root) and time.monotonic() < deadline:
            time.sleep(0.02)
        return packets

    def _read_until_expired(self, slot):
        try:
            frames = slot.connection.receive_until_closed(SILENCE)
        except client.TimedOut:
            return self._silent(slot)
        slot.connection = None
        return [self._packet(payload, []) for payload in frames] + [{"kind": "closed"}]


def take_pending(pending, xid):
    """The op of the first outstanding request with this xid; None when nothing like it was asked."""
    for at, (wanted, op) in enumerate(pending):
        if wanted == xid:
            del pending[at]
            return op
    return None


def apply_mangle(payload, mangle):
    how, argument = mangle
    if how == "cut":
        return payload[:max(0, len(payload) - argument)]
    if how == "pad":
        return payload + argument
    if how == "poke":
        at, piece = argument
        return payload[:8] + (payload[8:8 + at] + piece + payload[8 + at + len(piece):])[:len(payload) - 8]
    raise ValueError(how)


def dumped_ephemeral_owners(admin, root):
    """Owners of the ephemerals below the run's folder, seen by the administrator."""
    path = "/" + root.decode()
    owners = set()
    stack = [path]
    while stack:
        node = stack.pop()
        _, reply = admin.call(ops.GET_CHILDREN2, {"path": node, "watch": False})
        if reply["err"] != 0:
            continue
        owners.add(reply["body"]["stat"]["ephemeralOwner"])
        stack += [f"{node}/{child}" for child in reply["body"]["children"]]
    return owners
