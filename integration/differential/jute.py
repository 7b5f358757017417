"""ZooKeeper's record encoding, driven by field tables.

A record is a dict; a table lists its fields in wire order as (name, type). Types: int, long, bool, buffer,
ustring, the name of another record, or ("vector", type). Null is None everywhere, and differs from empty.
"""

import struct

ID = [("scheme", "ustring"), ("id", "ustring")]
ACL = [("perms", "int"), ("scheme", "ustring"), ("id", "ustring")]
STAT = [
    ("czxid", "long"), ("mzxid", "long"), ("ctime", "long"), ("mtime", "long"), ("version", "int"),
    ("cversion", "int"), ("aversion", "int"), ("ephemeralOwner", "long"), ("dataLength", "int"),
    ("numChildren", "int"), ("pzxid", "long"),
]
STRINGS = ("vector", "ustring")

RECORDS = {
    "Empty": [],
    "ConnectRequest": [
        ("protocolVersion", "int"), ("lastZxidSeen", "long"), ("timeOut", "int"), ("sessionId", "long"),
        ("passwd", "buffer"),
    ],
    "ConnectResponse": [
        ("protocolVersion", "int"), ("timeOut", "int"), ("sessionId", "long"), ("passwd", "buffer"),
    ],
    "RequestHeader": [("xid", "int"), ("type", "int")],
    "ReplyHeader": [("xid", "int"), ("zxid", "long"), ("err", "int")],
    "MultiHeader": [("type", "int"), ("done", "bool"), ("err", "int")],
    "WatcherEvent": [("type", "int"), ("state", "int"), ("path", "ustring")],
    "ACL": ACL,
    "Stat": STAT,
    "ClientInfo": [("authScheme", "ustring"), ("user", "ustring")],
    # Requests.
    "CreateRequest": [("path", "ustring"), ("data", "buffer"), ("acl", ("vector", "ACL")), ("flags", "int")],
    "CreateTTLRequest": [
        ("path", "ustring"), ("data", "buffer"), ("acl", ("vector", "ACL")), ("flags", "int"), ("ttl", "long"),
    ],
    "DeleteRequest": [("path", "ustring"), ("version", "int")],
    "DeleteContainerRequest": [("path", "buffer")],
    "PathWatchRequest": [("path", "ustring"), ("watch", "bool")],
    "SetDataRequest": [("path", "ustring"), ("data", "buffer"), ("version", "int")],
    "PathRequest": [("path", "ustring")],
    "SetACLRequest": [("path", "ustring"), ("acl", ("vector", "ACL")), ("version", "int")],
    "CheckVersionRequest": [("path", "ustring"), ("version", "int")],
    "ReconfigRequest": [
        ("joiningServers", "ustring"), ("leavingServers", "ustring"), ("newMembers", "ustring"),
        ("curConfigId", "long"),
    ],
    "PathTypeRequest": [("path", "ustring"), ("type", "int")],
    "SetWatches": [
        ("relativeZxid", "long"), ("dataWatches", STRINGS), ("existWatches", STRINGS), ("childWatches", STRINGS),
    ],
    "SetWatches2": [
        ("relativeZxid", "long"), ("dataWatches", STRINGS), ("existWatches", STRINGS), ("childWatches", STRINGS),
        ("persistentWatches", STRINGS), ("persistentRecursiveWatches", STRINGS),
    ],
    "AddWatchRequest": [("path", "ustring"), ("mode", "int")],
    "AuthPacket": [("type", "int"), ("scheme", "ustring"), ("auth", "buffer")],
    "GetSASLRequest": [("token", "buffer")],
    # Responses.
    "CreateResponse": [("path", "ustring")],
    "Create2Response": [("path", "ustring"), ("stat", "Stat")],
    "StatResponse": [("stat", "Stat")],
    "GetDataResponse": [("data", "buffer"), ("stat", "Stat")],
    "GetChildrenResponse": [("children", STRINGS)],
    "GetChildren2Response": [("children", STRINGS), ("stat", "Stat")],
    "GetACLResponse": [("acl", ("vector", "ACL")), ("stat", "Stat")],
    "SyncResponse": [("path", "ustring")],
    "GetEphemeralsResponse": [("ephemerals", STRINGS)],
    "GetAllChildrenNumberResponse": [("totalNumber", "int")],
    "WhoAmIResponse": [("clientInfo", ("vector", "ClientInfo"))],
    "ErrorResponse": [("err", "int")],
    "SetSASLResponse": [("token", "buffer")],
}


class DecodeError(Exception):
    """The bytes do not hold the record."""


def text_to_bytes(text):
    """UTF-8 as the servers write it; lone surrogates are kept, so that CESU-8 text survives a round trip."""
    return text.encode("utf-8", "surrogatepass")


def bytes_to_text(raw):
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace")


def encode_value(kind, value):
    if kind == "int":
        return struct.pack(">i", value)
    if kind == "long":
        return struct.pack(">q", value)
    if kind == "bool":
        return bytes([value if isinstance(value, int) and not isinstance(value, bool) else int(bool(value))])
    if kind in ("buffer", "ustring"):
        if value is None:
            return b"\xff\xff\xff\xff"
        raw = value if isinstance(value, bytes) else text_to_bytes(value)
        return struct.pack(">i", len(raw)) + raw
    if isinstance(kind, tuple):
        if value is None:
            return b"\xff\xff\xff\xff"
        return struct.pack(">i", len(value)) + b"".join(encode_value(kind[1], item) for item in value)
    return encode(kind, value)


def encode(record, values):
    """The bytes of a record."""
    return b"".join(encode_value(kind, values[name]) for name, kind in RECORDS[record])


class Reader:
    """Takes values off the front of a byte string."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        if count < 0 or self.at + count > len(self.data):
            raise DecodeError(f"{count} bytes wanted at {self.at} of {len(self.data)}")
        piece = self.data[self.at:self.at + count]
        self.at += count
        return piece

    def rest(self):
        return self.take(len(self.data) - self.at)

    def value(self, kind):
        if kind == "int":
            return struct.unpack(">i", self.take(4))[0]
        if kind == "long":
            return struct.unpack(">q", self.take(8))[0]
        if kind == "bool":
            return self.take(1)[0]
        if kind in ("buffer", "ustring"):
            length = self.value("int")
            if length == -1:
                return None
            raw = self.take(length)
            return raw if kind == "buffer" else bytes_to_text(raw)
        if isinstance(kind, tuple):
            count = self.value("int")
            if count == -1:
                return None
            return [self.value(kind[1]) for _ in range(count)]
        return self.record(kind)

    def record(self, name):
        return {field: self.value(kind) for field, kind in RECORDS[name]}


def frame(payload):
    """A payload with its length in front."""
    return struct.pack(">i", len(payload)) + payload
