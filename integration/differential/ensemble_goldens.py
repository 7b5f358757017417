"""Captures what a genuine ensemble answers to reconfig, and what a member of it answers in read-only mode, for the
tests of the crates.

    TARGET=genuine python3 -m integration.differential.ensemble_goldens [folder]

The format is that of `goldens`. For reconfig two connections to the leader of three members take part: the super user's, which
was opened first and watches the configuration, and one without any permission, whose lines are named `plain_…`.
Nothing else happens in the ensemble, so the zxids are those of the requests. In read-only mode one member is left of
three; before that nothing happened but the create of one znode.
"""

import pathlib
import sys
import tempfile
import time

from integration.differential import client, jute, ops
from integration.differential.goldens import DEFAULT_FOLDER, HEADER, OPEN, Recorder
from integration.lib.ensemble import Ensemble
from integration.lib.process import ServerError, four_letter_word

CONFIG = "/zookeeper/config"
SUPER = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
READ_ONLY_CFG = {"readonlymode.enabled": "true", "localSessionsEnabled": "true", "tickTime": "500"}
CFG = {"reconfigEnabled": "true", "DigestAuthenticationProvider.superDigest": SUPER, "tickTime": "500"}


class Capture:
    """Both connections. Each reads the configuration with a watch first where `watched` says so."""

    def __init__(self, port):
        self.recorder = Recorder(port)
        self.by_super, _ = client.open_session(port)
        self.plain, _ = client.open_session(port)
        self.recorder.opened += [self.by_super, self.plain]

    def call(self, name, op, fields, plain=False, xid=None):
        self.recorder.connection = self.plain if plain else self.by_super
        full_name = f"plain_{name}" if plain else name
        return self.recorder.call("reconfig", full_name, op, fields, xid)

    def reconfig(self, name, joining=None, leaving=None, members=None, version=-1, plain=False):
        return self.call(name, ops.RECONFIG, {"joiningServers": joining, "leavingServers": leaving,
                                              "newMembers": members, "curConfigId": version}, plain)

    def config(self, name, watch=False, plain=False):
        return self.call(name, ops.GET_DATA, {"path": CONFIG, "watch": watch}, plain)




def capture_texts(cap):
    for name, joining in [
        ("bad_text", "some thing"), ("id_no_number", "server.x=127.0.0.1:1:2;3"),
        ("no_client", "server.4=127.0.0.1:1:2:observer"), ("same_ports", "server.4=127.0.0.1:1:1:observer;3"),
        ("port_no_number", "server.4=127.0.0.1:1:b:observer;3"), ("port_range", "server.4=127.0.0.1:1:70000:observer;3"),
        ("client_port_range", "server.4=127.0.0.1:1:2:observer;70000"),
        ("negative_port", "server.4=127.0.0.1:-1:2:observer;3"), ("bad_type", "server.4=127.0.0.1:1:2:voter;3"),
        ("empty_client", "server.4=127.0.0.1:1:2:observer;"), ("five_parts", "server.4=127.0.0.1:1:2:observer:x;3"),
        ("same_address", "server.4=10.9.9.9:1:2:observer;3,server.5=10.9.9.9:1:4:observer;5"),
        ("same_client_address",
         "server.4=10.9.9.9:1:2:observer;10.9.9.9:3,server.5=10.9.9.9:3:4:observer;5"),
    ]:
        cap.reconfig(f"join_{name}", joining=joining)
    cap.reconfig("leave_no_number", leaving="x")
    cap.reconfig("leave_unknown", leaving=" , ,99")


def capture_joins(cap):
    for name, joining in [
        ("observer", "server.4=127.0.0.1:1:2:observer;33"), ("without_prefix", "4=127.0.0.1:1:2:observer;33"),
        ("odd_prefix", "foo.bar.4=127.0.0.1:1:2:observer;34"), ("with_blanks", " server.4 = 127.0.0.1:1:2:observer;33 , "),
        ("upper_case", "server.4=127.0.0.1:1:2:OBSERVER;33"),
        ("unresolvable", "server.4=no.such.host.invalid:1:2:observer;33"),
        ("loopback_again", "server.4=localhost:1:2:observer;33,server.5=127.0.0.1:1:2:observer;0.0.0.0:33"),
        ("twice", "server.4=10.9.9.9:1:2:observer;3,server.4=10.9.9.9:1:4:observer;5"),
        ("own_port_twice", "server.4=10.9.9.9:1:2:observer;10.9.9.9:2"),
        ("absent_voter", "server.4=127.0.0.1:1:2:participant;3"),
    ]:
        cap.reconfig(f"join_{name}", joining=joining)
        cap.reconfig(f"join_{name}_undone", leaving="4,5")
    cap.reconfig("join_and_leave", joining="server.4=127.0.0.1:1:2:observer;3", leaving="4")
    cap.reconfig("join_and_leave_undone", leaving="4")


def capture_versions(cap):
    version = int(cap.config("read_version")["body"]["data"].decode().rsplit("=", 1)[1], 16)
    cap.reconfig("old_version", version=5)
    cap.reconfig("old_version", version=5, plain=True)
    cap.reconfig("version_zero", version=0)
    cap.reconfig("right_version", version=version)


def capture_members(cap, base):
    absent = ["server.9=127.0.0.1:1:2;3", "server.8=127.0.0.1:4:5;6"]
    observer = "server.9=127.0.0.1:1:2:observer;3"
    for name, members in [
        ("same", "\n".join(base)), ("by_commas", ",".join(base)),
        ("without_clients", "\n".join(line.split(";")[0] for line in base)), ("again", "\n".join(base)),
        ("empty", ""), ("unknown_key", "foo=bar"), ("junk", "some thing"), ("id_no_number", "server.x=127.0.0.1:1:2;3"),
        ("with_version", "\n".join([*base, "version=77"])), ("bad_version", "\n".join([*base, "version=zz"])),
        ("one_voter", base[0]), ("one_voter_and_observer", "\n".join([base[0], observer])), ("only_observer", observer),
        ("quorum_absent", "\n".join([*absent, base[0]])),
        ("same_address", "\n".join([*base, "server.4=10.9.9.9:1:2:observer;3", "server.5=10.9.9.9:1:2:observer;3"])),
    ]:
        cap.reconfig(f"members_{name}", members=members)
    cap.reconfig("members_win", members="\n".join(base), joining="server.4=127.0.0.1:1:2:observer;33")
    cap.reconfig("members_quorum_absent", members="\n".join([*absent, base[0]]), plain=True)


def capture_rest(cap):
    cap.reconfig("bad_text", joining="some thing", plain=True)
    cap.reconfig("large_id", joining="server.999=0.0.0.0:1234:2345:observer;3456", plain=True)
    cap.reconfig("nothing", plain=True)
    cap.reconfig("leave_two_voters", leaving="1,2")
    cap.reconfig("leave_all", leaving="1,2,3")
    cap.call("set_by_super", ops.SET_DATA, {"path": CONFIG, "data": b"hello", "version": -1})
    cap.config("read_what_super_set")
    cap.reconfig("behind_super")
    cap.call("not_for_all", ops.SET_DATA, {"path": CONFIG, "data": b"hello", "version": -1}, plain=True)
    cap.config("read_at_last", plain=True)


def capture(port):
    cap = Capture(port)
    first = cap.config("read_at_first", plain=True)
    base = [line for line in first["body"]["data"].decode().splitlines() if line.startswith("server.")]
    cap.call("auth_super", ops.AUTH, {"type": 0, "scheme": "digest", "auth": b"super:test"}, xid=-4)
    cap.call("get_acl", ops.GET_ACL, {"path": CONFIG})
    cap.config("watch", watch=True)
    cap.reconfig("nothing")
    cap.reconfig("empty_texts", joining="", leaving="")
    for part in (capture_texts, capture_joins, capture_versions):
        part(cap)
    capture_members(cap, base)
    capture_rest(cap)
    cap.recorder.close()
    return cap.recorder.files["reconfig"]


def wait_read_only(member, seconds=60.0):
    deadline = time.monotonic() + seconds
    while four_letter_word(member.port, "isro", host=member.host) != "ro":
        if time.monotonic() > deadline:
            raise ServerError("the member does not go into read-only mode")
        time.sleep(0.1)


def capture_read_only(port):
    rec = Recorder(port, handshakes="read_only")
    first = rec.handshake("connect", timeout_ms=10000, read_only=True)
    znode = {"path": "/x", "data": b"d", "acl": OPEN, "flags": 0}

    def call(name, op, fields, xid=None):
        rec.call("read_only", name, op, fields, xid)

    call("create", ops.CREATE, znode)
    call("create2", ops.CREATE2, znode)
    call("create_container", ops.CREATE_CONTAINER, {**znode, "flags": 4})
    call("create_ttl", ops.CREATE_TTL, {**znode, "flags": 5, "ttl": 1000})
    call("delete", ops.DELETE, {"path": "/x", "version": -1})
    call("set_data", ops.SET_DATA, {"path": "/x", "data": b"", "version": -1})
    call("set_acl", ops.SET_ACL, {"path": "/x", "acl": OPEN, "version": -1})
    call("multi", ops.MULTI, {"ops": [(ops.CHECK, {"path": "/", "version": -1})]})
    call("reconfig", ops.RECONFIG, {"joiningServers": None, "leavingServers": None, "newMembers": None,
                                    "curConfigId": -1})
    call("sync", ops.SYNC, {"path": "/"})
    call("get_data", ops.GET_DATA, {"path": "/there", "watch": True})
    call("exists_absent", ops.EXISTS, {"path": "/x", "watch": True})
    call("multi_read", ops.MULTI_READ, {"ops": [(ops.GET_DATA, {"path": "/there", "watch": False})]})
    call("ping", ops.PING, {}, xid=-2)
    call("auth", ops.AUTH, {"type": 0, "scheme": "digest", "auth": b"u:p"}, xid=-4)
    rec.handshake("resume_refused", session_id=1, timeout_ms=10000, read_only=True)
    rec.handshake("resume", session_id=first["sessionId"], passwd=first["passwd"], timeout_ms=8000, read_only=True)
    rec.connection, _ = client.open_session(port, read_only=True)
    rec.opened.append(rec.connection)
    call("close_session", ops.CLOSE_SESSION, {})
    rec.close()
    return rec.files["read_only"]


def record_read_only(data):
    with Ensemble(data, members=3, cfg=READ_ONLY_CFG) as ensemble:
        follower = next(iter(ensemble.followers()))
        connection, _ = client.open_session(follower.port)
        connection.send(jute.frame(ops.encode_request(1, ops.CREATE, {
            "path": "/there", "data": b"data", "acl": OPEN, "flags": 0})))
        connection.receive()
        connection.close()
        for member in ensemble:
            if member is not follower:
                member.stop()
        wait_read_only(follower)
        return capture_read_only(follower.port)


def record_reconfig(data):
    with Ensemble(data, members=3, cfg=CFG) as ensemble:
        return capture(ensemble.wait_leader().port)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    for name, record in (("reconfig", record_reconfig), ("read_only", record_read_only)):
        with tempfile.TemporaryDirectory() as data:
            lines = record(data)
        (folder / f"{name}.txt").write_text("\n".join([HEADER, *lines]) + "\n")
        print(f"{name}.txt: {len(lines)} lines")


if __name__ == "__main__":
    main()
