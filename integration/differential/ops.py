"""The operations of the protocol: numbers, request records, reply bodies."""

from integration.differential import jute

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = range(1, 10)
PING, GET_CHILDREN2, CHECK, MULTI, CREATE2, RECONFIG, CHECK_WATCHES, REMOVE_WATCHES = range(11, 19)
CREATE_CONTAINER, DELETE_CONTAINER, CREATE_TTL, MULTI_READ = range(19, 23)
AUTH, SET_WATCHES, SASL, GET_EPHEMERALS, GET_ALL_CHILDREN_NUMBER, SET_WATCHES2, ADD_WATCH, WHO_AM_I = range(100, 108)
ERROR, CREATE_SESSION, CLOSE_SESSION = -1, -10, -11

# op -> (name, request record, response record)
TABLE = {
    CREATE: ("create", "CreateRequest", "CreateResponse"),
    DELETE: ("delete", "DeleteRequest", None),
    EXISTS: ("exists", "PathWatchRequest", "StatResponse"),
    GET_DATA: ("getData", "PathWatchRequest", "GetDataResponse"),
    SET_DATA: ("setData", "SetDataRequest", "StatResponse"),
    GET_ACL: ("getACL", "PathRequest", "GetACLResponse"),
    SET_ACL: ("setACL", "SetACLRequest", "StatResponse"),
    GET_CHILDREN: ("getChildren", "PathWatchRequest", "GetChildrenResponse"),
    SYNC: ("sync", "PathRequest", "SyncResponse"),
    PING: ("ping", "Empty", None),
    GET_CHILDREN2: ("getChildren2", "PathWatchRequest", "GetChildren2Response"),
    CHECK: ("check", "CheckVersionRequest", None),
    MULTI: ("multi", None, None),
    CREATE2: ("create2", "CreateRequest", "Create2Response"),
    RECONFIG: ("reconfig", "ReconfigRequest", "GetDataResponse"),
    CHECK_WATCHES: ("checkWatches", "PathTypeRequest", None),
    REMOVE_WATCHES: ("removeWatches", "PathTypeRequest", None),
    CREATE_CONTAINER: ("createContainer", "CreateRequest", "Create2Response"),
    DELETE_CONTAINER: ("deleteContainer", "DeleteContainerRequest", None),
    CREATE_TTL: ("createTTL", "CreateTTLRequest", "Create2Response"),
    MULTI_READ: ("multiRead", None, None),
    AUTH: ("auth", "AuthPacket", None),
    SET_WATCHES: ("setWatches", "SetWatches", None),
    SASL: ("sasl", "GetSASLRequest", "SetSASLResponse"),
    GET_EPHEMERALS: ("getEphemerals", "PathRequest", "GetEphemeralsResponse"),
    GET_ALL_CHILDREN_NUMBER: ("getAllChildrenNumber", "PathRequest", "GetAllChildrenNumberResponse"),
    SET_WATCHES2: ("setWatches2", "SetWatches2", None),
    ADD_WATCH: ("addWatch", "AddWatchRequest", "ErrorResponse"),
    WHO_AM_I: ("whoAmI", "Empty", "WhoAmIResponse"),
    CLOSE_SESSION: ("closeSession", "Empty", None),
}

WRITES = {CREATE, DELETE, SET_DATA, SET_ACL, CREATE2, CREATE_CONTAINER, CREATE_TTL, MULTI, CLOSE_SESSION}

# Entry type in a multi result -> body record.
RESULT_BODIES = {
    ERROR: "ErrorResponse", CREATE: "CreateResponse", CREATE2: "Create2Response", DELETE: "Empty",
    SET_DATA: "StatResponse", CHECK: "Empty", GET_DATA: "GetDataResponse", GET_CHILDREN: "GetChildrenResponse",
}

ERRORS = {
    0: "OK", -2: "RuntimeInconsistency", -5: "MarshallingError", -6: "Unimplemented", -8: "BadArguments",
    -101: "NoNode", -102: "NoAuth", -103: "BadVersion", -108: "NoChildrenForEphemerals", -110: "NodeExists",
    -111: "NotEmpty", -112: "SessionExpired", -114: "InvalidACL", -115: "AuthFailed", -118: "SessionMoved",
    -121: "NoWatcher", -123: "ReconfigDisabled", -125: "QuotaExceeded",
}
EVENTS = {1: "NodeCreated", 2: "NodeDeleted", 3: "NodeDataChanged", 4: "NodeChildrenChanged"}


def name(op):
    return TABLE[op][0] if op in TABLE else f"op{op}"


def encode_body(op, fields):
    """The record behind the request header. `fields` of multi and multiRead hold "ops" and "end"."""
    if op in (MULTI, MULTI_READ):
        parts = []
        for kind, inner in fields["ops"]:
            record = TABLE[kind][1] if kind in TABLE and TABLE[kind][1] else "Empty"
            parts.append(jute.encode("MultiHeader", {"type": kind, "done": False, "err": -1}))
            parts.append(jute.encode(record, inner))
        if fields.get("end", True):
            parts.append(jute.encode("MultiHeader", {"type": -1, "done": True, "err": -1}))
        return b"".join(parts)
    if op not in TABLE:
        return fields.get("raw", b"")
    return jute.encode(TABLE[op][1], fields)


def encode_request(xid, op, fields):
    """Header and record, without the frame length."""
    return jute.encode("RequestHeader", {"xid": xid, "type": op}) + encode_body(op, fields)


def decode_results(reader):
    """The entries of a multi or multiRead reply, terminator checked."""
    entries = []
    while True:
        header = reader.record("MultiHeader")
        if header["done"]:
            if (header["type"], header["err"]) != (-1, -1):
                raise jute.DecodeError(f"terminator {header}")
            return entries
        if header["type"] not in RESULT_BODIES:
            raise jute.DecodeError(f"result type {header['type']}")
        entries.append({**header, "body": reader.record(RESULT_BODIES[header["type"]])})


def decode_reply(op, payload):
    """A reply as a dict: header fields, and "body" (None when there is none)."""
    reader = jute.Reader(payload)
    reply = reader.record("ReplyHeader")
    reply["body"] = None
    if reply["err"] == 0 and len(payload) > reader.at:
        if op in (MULTI, MULTI_READ):
            reply["body"] = {"results": decode_results(reader)}
        elif op in TABLE and TABLE[op][2]:
            reply["body"] = reader.record(TABLE[op][2])
    rest = reader.rest()
    if rest:
        reply["rest"] = rest
    return reply


def decode_event(payload):
    reader = jute.Reader(payload)
    event = reader.record("ReplyHeader")
    event["body"] = reader.record("WatcherEvent")
    rest = reader.rest()
    if rest:
        event["rest"] = rest
    return event
