"""Captures golden byte vectors from a genuine server for the tests of the proto crate.

    python3 -m integration.differential.goldens [folder]

Every record of the protocol is sent at least once; request and reply go to the files as they were on the
wire. A line is `name direction hex`: direction `>` is client to server, `<` the answer. The hex is the frame's
payload, without the length in front. For `>` lines of established connections it starts with the request
header, for `<` lines with the reply header; `event` lines are watch events. `#` starts a comment.
"""

import pathlib
import sys
import tempfile

from integration.differential import client, jute, ops, settings
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

OPEN = [{"perms": 31, "scheme": "world", "id": "anyone"}]
DEFAULT_FOLDER = pathlib.Path(__file__).parents[2] / "crates" / "proto" / "tests" / "golden"


class Recorder:
    """Sends requests over one connection and keeps the bytes of both directions."""

    def __init__(self, port, handshakes="handshake"):
        self.port = port
        self.handshakes = handshakes
        self.files = {}
        self.opened = []
        self.xid = 0
        self.connection = None

    def close(self):
        for connection in self.opened:
            connection.close()

    def line(self, file, name, direction, payload):
        self.files.setdefault(file, []).append(f"{name} {direction} {payload.hex()}")

    def handshake(self, name, **request):
        payload = client.connect_payload(**request)
        connection = client.Connection(self.port)
        self.opened.append(connection)
        connection.send(jute.frame(payload))
        answer = connection.receive()
        self.line(self.handshakes, name, ">", payload)
        self.line(self.handshakes, name, "<", answer)
        if self.connection is None:
            self.connection = connection
        return client.decode_connect(answer)

    def call(self, file, name, op, fields, xid=None):
        if xid is None:
            self.xid += 1
            xid = self.xid
        payload = ops.encode_request(xid, op, fields)
        self.line(file, name, ">", payload)
        self.connection.send(jute.frame(payload))
        while True:
            answer = self.connection.receive()
            if answer[:4] != b"\xff\xff\xff\xff":
                break
            self.line(file, name, "event", answer)
        self.line(file, name, "<", answer)
        return ops.decode_reply(op, answer)


def capture_handshakes(rec):
    rec.handshake("connect_new_form", timeout_ms=10000)
    rec.handshake("connect_old_form", timeout_ms=10000, read_only=None)
    rec.handshake("connect_read_only_wanted", timeout_ms=10000, read_only=True)
    rec.handshake("connect_null_password", timeout_ms=10000, passwd=None)
    rec.handshake("connect_clamped_low", timeout_ms=-5)
    rec.handshake("connect_clamped_high", timeout_ms=100000000)
    rec.handshake("resume_refused_new_form", session_id=1)
    rec.handshake("resume_refused_old_form", session_id=1, read_only=None)
    first = rec.handshake("connect_to_resume", timeout_ms=10000)
    rec.handshake("resume_granted", session_id=first["sessionId"], passwd=first["passwd"], timeout_ms=8000)


def capture_nodes(rec):
    path = "/v"
    created = {"path": path, "data": b"hi", "acl": OPEN, "flags": 0}
    rec.call("create", "create", ops.CREATE, created)
    rec.call("create", "create_node_exists", ops.CREATE, created)
    rec.call("create", "create_null_data", ops.CREATE, {**created, "path": "/v/null", "data": None})
    rec.call("create", "create_empty_data", ops.CREATE, {**created, "path": "/v/empty", "data": b""})
    rec.call("create", "create_unicode", ops.CREATE, {**created, "path": "/v/\u00e9\u4e2d \u05d0"})
    rec.call("create", "create_sequential", ops.CREATE, {**created, "path": "/v/s-", "flags": 2})
    rec.call("create", "create_null_acl", ops.CREATE, {**created, "path": "/v/x", "acl": None})
    rec.call("create", "create_empty_acl", ops.CREATE, {**created, "path": "/v/x", "acl": []})
    rec.call("create", "create_null_path", ops.CREATE, {**created, "path": None})
    rec.call("create", "create2", ops.CREATE2, {**created, "path": "/v/two"})
    rec.call("create", "create2_ephemeral_sequential", ops.CREATE2, {**created, "path": "/v/e-", "flags": 3})
    rec.call("create", "create_container", ops.CREATE_CONTAINER, {**created, "path": "/c", "flags": 4})
    ttl = {**created, "path": "/ttl", "flags": 5, "ttl": 100000000}
    rec.call("create", "create_ttl", ops.CREATE_TTL, ttl)
    rec.call("create", "create_ttl_sequential", ops.CREATE_TTL, {**ttl, "path": "/ttl-", "flags": 6})
    rec.call("create", "create_ttl_zero", ops.CREATE_TTL, {**ttl, "path": "/ttl0", "ttl": 0})
    read = {"path": path, "watch": False}
    for name, op in (("exists", ops.EXISTS), ("get_data", ops.GET_DATA), ("get_children", ops.GET_CHILDREN),
                     ("get_children2", ops.GET_CHILDREN2)):
        rec.call("read", name, op, read)
        rec.call("read", f"{name}_no_node", op, {"path": "/nope", "watch": False})
        rec.call("read", f"{name}_null_path", op, {"path": None, "watch": False})
    rec.call("read", "get_data_null", ops.GET_DATA, {"path": "/v/null", "watch": False})
    rec.call("read", "get_data_empty", ops.GET_DATA, {"path": "/v/empty", "watch": False})
    rec.call("read", "get_children_none", ops.GET_CHILDREN, {"path": "/v/empty", "watch": False})
    rec.call("read", "get_all_children_number", ops.GET_ALL_CHILDREN_NUMBER, {"path": "/"})
    rec.call("read", "get_ephemerals", ops.GET_EPHEMERALS, {"path": "/"})
    rec.call("read", "get_ephemerals_null_prefix", ops.GET_EPHEMERALS, {"path": None})
    rec.call("read", "sync", ops.SYNC, {"path": path})
    rec.call("read", "sync_null_path", ops.SYNC, {"path": None})
    rec.call("read", "sync_supplementary_character", ops.SYNC, {"path": "/\U0001f600"})
    rec.call("write", "set_data", ops.SET_DATA, {"path": path, "data": b"yo", "version": 0})
    rec.call("write", "set_data_null", ops.SET_DATA, {"path": path, "data": None, "version": -1})
    rec.call("write", "set_data_bad_version", ops.SET_DATA, {"path": path, "data": b"", "version": 9})
    rec.call("write", "delete_bad_version", ops.DELETE, {"path": path, "version": 9})
    rec.call("write", "delete_not_empty", ops.DELETE, {"path": path, "version": -1})
    rec.call("write", "delete", ops.DELETE, {"path": "/v/two", "version": 0})
    # Refused by Quenda; the bytes of a missing node tell how the request looks.
    rec.call("write", "delete_container", ops.DELETE_CONTAINER, {"path": b"/nope"})
    rec.call("write", "reconfig_disabled", ops.RECONFIG, {
        "joiningServers": "server.2=h:1:2;3", "leavingServers": None, "newMembers": None, "curConfigId": -1})


def capture_acl_and_auth(rec):
    rec.call("auth", "auth_digest", ops.AUTH, {"type": 0, "scheme": "digest", "auth": b"u:p"}, xid=-4)
    rec.call("auth", "auth_ip", ops.AUTH, {"type": 0, "scheme": "ip", "auth": None}, xid=-4)
    rec.call("auth", "sasl_not_configured", ops.SASL, {"token": b""})
    rec.call("auth", "who_am_i", ops.WHO_AM_I, {})
    acl = [{"perms": 31, "scheme": "auth", "id": ""}, {"perms": 1, "scheme": "ip", "id": "10.0.0.0/8"},
           {"perms": 4, "scheme": "digest", "id": "a:b"}]
    rec.call("auth", "set_acl", ops.SET_ACL, {"path": "/v/null", "acl": acl, "version": 0})
    rec.call("auth", "set_acl_bad_version", ops.SET_ACL, {"path": "/v/null", "acl": acl, "version": 7})
    rec.call("auth", "get_acl", ops.GET_ACL, {"path": "/v/null"})
    rec.call("auth", "get_acl_open", ops.GET_ACL, {"path": "/v"})


def capture_watches(rec):
    watched = {"path": "/v", "watch": True}
    rec.call("watch", "get_data_watch", ops.GET_DATA, watched)
    rec.call("watch", "set_data_fires", ops.SET_DATA, {"path": "/v", "data": b"w", "version": -1})
    rec.call("watch", "exists_watch_absent", ops.EXISTS, {"path": "/w", "watch": True})
    rec.call("watch", "create_fires", ops.CREATE, {"path": "/w", "data": b"", "acl": OPEN, "flags": 0})
    rec.call("watch", "get_children_watch", ops.GET_CHILDREN, {"path": "/w", "watch": True})
    rec.call("watch", "create_child_fires", ops.CREATE, {"path": "/w/a", "data": b"", "acl": OPEN, "flags": 0})
    rec.call("watch", "add_watch_persistent", ops.ADD_WATCH, {"path": "/w", "mode": 0})
    rec.call("watch", "add_watch_recursive", ops.ADD_WATCH, {"path": "/w", "mode": 1})
    rec.call("watch", "add_watch_bad_mode", ops.ADD_WATCH, {"path": "/w", "mode": 9})
    rec.call("watch", "delete_child_fires", ops.DELETE, {"path": "/w/a", "version": -1})
    rec.call("watch", "check_watches", ops.CHECK_WATCHES, {"path": "/w", "type": 4})
    rec.call("watch", "check_watches_none", ops.CHECK_WATCHES, {"path": "/w", "type": 1})
    rec.call("watch", "remove_watches", ops.REMOVE_WATCHES, {"path": "/w", "type": 3})
    lists = {"relativeZxid": 0, "dataWatches": ["/v"], "existWatches": ["/gone", "/v"], "childWatches": ["/v"]}
    rec.call("watch", "set_watches", ops.SET_WATCHES, lists, xid=-8)
    rec.call("watch", "set_watches_null_vector", ops.SET_WATCHES, {**lists, "childWatches": None}, xid=-8)
    rec.call("watch", "set_watches2", ops.SET_WATCHES2, {
        **lists, "persistentWatches": ["/p"], "persistentRecursiveWatches": []}, xid=-8)


def capture_multi(rec):
    new = {"path": "/m", "data": b"d", "acl": OPEN, "flags": 0}
    every = [
        (ops.CREATE, new), (ops.CREATE2, {**new, "path": "/m/two"}),
        (ops.CREATE_CONTAINER, {**new, "path": "/m/c", "flags": 4}),
        (ops.CREATE_TTL, {**new, "path": "/m/t", "flags": 5, "ttl": 100000000}),
        (ops.CHECK, {"path": "/m", "version": 0}), (ops.SET_DATA, {"path": "/m", "data": b"e", "version": 0}),
        (ops.DELETE, {"path": "/m/two", "version": -1}),
    ]
    rec.call("multi", "multi_every_op", ops.MULTI, {"ops": every})
    rec.call("multi", "multi_failed", ops.MULTI, {"ops": [
        (ops.CHECK, {"path": "/m", "version": -1}), (ops.DELETE, {"path": "/nope", "version": -1}),
        (ops.CHECK, {"path": "/m", "version": -1})]})
    rec.call("multi", "multi_empty", ops.MULTI, {"ops": []})
    rec.call("multi", "multi_without_terminator", ops.MULTI, {"ops": [], "end": False})
    rec.call("multi", "multi_read", ops.MULTI_READ, {"ops": [
        (ops.GET_DATA, {"path": "/m", "watch": False}), (ops.GET_DATA, {"path": "/nope", "watch": False}),
        (ops.GET_CHILDREN, {"path": "/m", "watch": False})]})
    rec.call("multi", "multi_read_empty", ops.MULTI_READ, {"ops": []})


def capture_rest(rec):
    rec.call("session", "ping", ops.PING, {}, xid=-2)
    rec.call("session", "ping_odd_xid", ops.PING, {}, xid=77)
    rec.call("session", "close_session", ops.CLOSE_SESSION, {})
    rec.connection = None
    for name, op in (("unknown_opcode", 99), ("check_alone", ops.CHECK)):
        rec.connection, _ = client.open_session(rec.port)
        rec.call("session", name, op, {"path": "/v", "version": -1})


def capture(port):
    """All files: name -> lines."""
    rec = Recorder(port)
    for part in (capture_handshakes, capture_nodes, capture_acl_and_auth, capture_watches, capture_multi,
                 capture_rest):
        part(rec)
    return rec.files


HEADER = f"# Bytes exchanged with Apache ZooKeeper {DEFAULT_VERSION}: name, direction, payload without its length."


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        with GenuineZooKeeper(data, settings.CFG, settings.JVM_PROPS) as server:
            files = capture(server.port)
    for name, lines in files.items():
        (folder / f"{name}.txt").write_text("\n".join([HEADER, *lines]) + "\n")
        print(f"{name}.txt: {len(lines)} lines")


if __name__ == "__main__":
    main()
