"""Bad input costs its sender only."""

import struct
import threading
import time

import pytest

from integration.lib.zkwire import (
    AUTH_XID, ERR, FLAG, OP, Closed, Conn, add_watch, auth, check, connect_request, create, create_ttl, delete,
    eventually, expect, int32, int64, multi, read, read_to_end, request, set_acl, set_data, set_watches, tcp,
    ustring,
)

EARLY = [
    (OP.CREATE, create("/x", b"data")), (OP.CREATE2, create("/x", b"data")),
    (OP.CREATE_CONTAINER, create("/x", b"data", FLAG.CONTAINER)), (OP.CREATE_TTL, create_ttl("/x", 1000)),
    (OP.DELETE, delete("/x")), (OP.EXISTS, read("/x")), (OP.GET_DATA, read("/x")),
    (OP.SET_DATA, set_data("/x", b"data")), (OP.GET_ACL, ustring("/x")),
    (OP.SET_ACL, set_acl("/x", ((31, "world", "anyone"),))), (OP.GET_CHILDREN, read("/x")),
    (OP.GET_CHILDREN2, read("/x")), (OP.SYNC, ustring("/x")), (OP.ADD_WATCH, add_watch("/x", 0)),
    (OP.CHECK_WATCHES, add_watch("/x", 3)), (OP.REMOVE_WATCHES, add_watch("/x", 3)),
    (OP.GET_ALL_CHILDREN_NUMBER, ustring("/x")), (OP.GET_EPHEMERALS, ustring("/x")),
    (OP.SET_WATCHES, set_watches(0, data=["/x"])), (OP.SET_WATCHES2, set_watches(0, data=["/x"], recursive=["/x"])),
    (OP.MULTI, multi((OP.CREATE, create("/x")), (OP.DELETE, delete("/x")))),
    (OP.MULTI_READ, multi((OP.GET_DATA, read("/x")))),
    (OP.RECONFIG, ustring("x") + ustring(None) + ustring(None) + int64(-1)),
]


@pytest.mark.parametrize("op, body", EARLY, ids=lambda value: f"op{value}" if isinstance(value, int) else "")
def test_records_that_end_early(connect, op, body):
    """Every strict prefix of a record is answered with −5 (reconfig may refuse before it decodes), nothing else."""
    c = connect()
    before = c.sync("/") and c.last_zxid
    for length in range(len(body)):
        reply = c.call(op, body[:length])
        assert reply.err == ERR.MARSHALLING or (op == OP.RECONFIG and reply.err in (ERR.UNIMPLEMENTED, -123)), length
        # The multi formats end in a terminator: what was read before the end is not sent.
        assert reply.body == b"" or op == OP.MULTI_READ
    assert c.children("/").count("x") == 0
    c.sync("/")
    assert c.last_zxid - before <= 2 * len(body)


def test_lengths_inside_records(connect, root):
    c = connect()
    for length in (-2, -(1 << 31), 0x7FFFFFFF, 1 << 20):
        assert c.call(OP.GET_DATA, int32(length) + b"/x\0").err == ERR.MARSHALLING
        assert c.call(OP.SET_DATA, ustring(root) + int32(length) + int32(-1)).err == ERR.MARSHALLING
    for count in (0x7FFFFFFF, 1 << 24):
        assert c.call(OP.SET_WATCHES, int64(0) + int32(count)).err == ERR.MARSHALLING
        assert c.call(OP.CREATE, ustring(f"{root}/n") + int32(0) + int32(count)).err == ERR.MARSHALLING
    assert c.children(root) == []


def test_bytes_behind_a_record_are_ignored(connect, root):
    c = connect()
    assert c.call(OP.GET_DATA, read(root) + b"trailing").err == ERR.OK
    assert c.call(OP.CREATE, create(f"{root}/n") + b"trailing").err == ERR.OK


def test_null_paths(connect):
    c = connect()
    for op, body in (
        (OP.CREATE, create(None)), (OP.CREATE2, create(None)), (OP.DELETE, delete(None)), (OP.EXISTS, read(None)),
        (OP.GET_DATA, read(None)), (OP.GET_CHILDREN, read(None)), (OP.GET_CHILDREN2, read(None)),
        (OP.GET_ACL, ustring(None)), (OP.GET_ALL_CHILDREN_NUMBER, ustring(None)),
        (OP.MULTI, multi((OP.DELETE, delete(None)))), (OP.MULTI, multi((OP.CHECK, check(None)))),
    ):
        assert c.call(op, body).err == ERR.MARSHALLING, op
    for op, body in (
        (OP.SET_DATA, set_data(None, b"x")), (OP.SET_ACL, set_acl(None, ((31, "world", "anyone"),))),
    ):
        assert c.call(op, body).err in (ERR.MARSHALLING, ERR.BAD_ARGUMENTS), op
    for op in (OP.ADD_WATCH, OP.CHECK_WATCHES, OP.REMOVE_WATCHES):  # Java watches the path that is none
        assert c.call(op, add_watch(None, 1)).err in (ERR.OK, ERR.NO_WATCHER, ERR.MARSHALLING)
    assert c.sync(None) is None
    assert c.ephemerals(None) == []
    assert c.exists("/")


BAD_NAMES = ["", "x", "/a/", "//", "/a//b", "/.", "/..", "/a/./b", "/a/../b", "/\x00", "/\x01", "/\x1f", "/\x7f", "/\x9f",
             "/\ue000", "/\uf8ff", "/\ufff0", "/\ufffd", "/\U0001f600"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=ascii)
def test_bad_paths_are_refused(connect, name):
    c = connect()
    assert c.call(OP.SET_DATA, set_data(name, b"x")).err == ERR.BAD_ARGUMENTS
    assert c.call(OP.CREATE, create(name)).err in (ERR.BAD_ARGUMENTS, ERR.NO_NODE)
    assert c.call(OP.CREATE, create(f"/zookeeper{name}" if name.startswith("/") else name)).err in (
        ERR.BAD_ARGUMENTS, ERR.NO_NODE, ERR.NODE_EXISTS,
    )
    assert c.children("/zookeeper") == ["config", "quota"]
    assert c.call(OP.CREATE, ustring(b"/\xff\xfe") + int32(0) + create("")[8:]).err == ERR.BAD_ARGUMENTS


def test_any_legal_unicode_is_a_name(connect, root):
    c = connect()
    names = ["a b", "...", ".a", "a.", "ä", "日本語", "\u00a0", "\ufdd0", "\ud7ff", "%00", "\\", '"', "a" * 10_000]
    for name in names:
        assert c.create(f"{root}/{name}", name.encode()) == f"{root}/{name}"
        assert c.get(f"{root}/{name}")[0] == name.encode()
    assert c.children(root) == sorted(names)


@pytest.mark.java_wrong("the apply thread dies and the server stops", run=False)
def test_create_ttl_with_a_mode_that_has_no_ttl(connect, root):
    c = connect()
    for flags in range(5):
        for ttl in (-1, 0, 1000, -(1 << 63)):
            assert c.call(OP.CREATE_TTL, create_ttl(f"{root}/n", ttl, flags=flags)).err == ERR.BAD_ARGUMENTS
    assert c.children(root) == []
    assert c.create(f"{root}/alive")


@pytest.mark.parametrize(
    "body",
    [
        multi((OP.EXISTS, read("/x"))), multi((OP.GET_DATA, read("/x"))), multi((OP.MULTI, multi())),
        multi((OP.CREATE, create("/x")), (OP.MULTI, multi((OP.CREATE, create("/x/y"))))),
        multi((OP.SET_ACL, set_acl("/x", ((31, "world", "anyone"),)))), multi((OP.SYNC, ustring("/x"))),
        multi((OP.CLOSE_SESSION, b"")), multi((OP.CREATE_SESSION, int32(0))), multi((OP.DELETE_CONTAINER, ustring("/x"))),
        multi((OP.PING, b"")), multi((99, b"")), multi((OP.ERROR, int32(0))),
        multi((OP.CREATE, create("/x")), terminate=False), multi((OP.CREATE, create("/x", acl=None))),
        multi((OP.CREATE, create("/x", flags=FLAG.TTL))), multi((OP.CREATE, create("/x", flags=77))),
    ],
    ids=range(16),
)
def test_multi_with_foreign_operations_is_refused_whole(connect, body):
    c = connect()
    reply = c.call(OP.MULTI, body)
    assert (reply.err, reply.body) == (ERR.MARSHALLING, b"")
    assert c.exists("/x") is None
    assert c.ping()


def test_multi_with_a_null_path(connect, root):
    c = connect()
    reply = c.call(OP.MULTI, multi((OP.CREATE, create(f"{root}/x")), (OP.DELETE, delete(None))))
    assert reply.err in (ERR.MARSHALLING, ERR.OK)
    assert c.children(root) == []
    assert c.ping()


def test_quota_on_the_root_and_nonsense_quotas(own_server):
    server = own_server()
    with Conn(server.port) as c:
        if "genuine" not in server.name:
            c.create("/zookeeper/quota/zookeeper_limits", b"count=1,bytes=1")
        c.create("/q")
        c.create("/zookeeper/quota/q")
        c.create("/zookeeper/quota/q/zookeeper_limits", b"count=x;bytes" if "genuine" not in server.name else b"")
        c.create("/zookeeper/quota/q/zookeeper_stats", b"nonsense")
        if "genuine" not in server.name:
            c.set("/zookeeper/quota/q/zookeeper_stats", b"\xff\xfe=,;,;==")
            c.create("/q/n", b"x")
            c.set("/q/n", b"y")
            c.delete("/q/n")
    assert server.alive()


@pytest.mark.parametrize("half", [b"\0", b"\0\0\0", int32(100), int32(100) + bytes(99)])
def test_a_frame_cut_in_the_middle(server, connect, root, half):
    for ending in ("close", "half-close", "reset"):
        c = Conn(server.port)
        c.send_bytes(request(1, OP.CREATE, create(f"{root}/{ending}")) + half)
        assert c.reply().err == ERR.OK
        if ending == "half-close":
            c.sock.shutdown(1)
            c.expect_close()
        elif ending == "reset":
            c.sock.setsockopt(1, 13, struct.pack("ii", 1, 0))
        c.drop()
        with c.resume() as again:
            assert again.exists(f"{root}/{ending}")
            again.delete(f"{root}/{ending}")


def test_a_request_may_come_byte_by_byte(server, root):
    c = Conn(server.port, handshake=False)
    for byte in connect_request() + request(1, OP.EXISTS, read(root)):
        c.send_bytes(bytes([byte]))
    c.finish_handshake()
    assert c.reply().err == ERR.OK
    c.close()


@pytest.mark.parametrize("cut", range(0, 45, 4))
def test_a_handshake_that_ends_early(server, connect, cut):
    other = connect()
    if cut == 44:
        return  # that is the form without the last byte
    with tcp(server.port) as sock:
        sock.sendall(int32(cut) + connect_request()[4 : 4 + cut])
        sock.shutdown(1)
        assert read_to_end(sock) == b""
    assert other.exists("/")


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.quenda_only("Java keeps every unread reply in memory")
def test_a_client_that_never_reads_its_replies(own_server):
    """Its replies take bounded memory, others are served meanwhile, and in the end it is closed."""
    server = own_server()
    with Conn(server.port, timeout=60000) as other:
        other.create("/big", bytes(500_000))
        before = resident(server.pid)
        deaf = Conn(server.port, timeout=4000, receive_buffer=4096)
        deaf.create("/deaf", flags=FLAG.EPHEMERAL)
        deaf.sock.settimeout(1.0)
        stop = threading.Event()

        def ask():  # 4000 × 500 KB: 2 GB of replies
            data = b"".join(request(1, OP.GET_DATA, read("/big")) for _ in range(100))
            try:
                for _ in range(40):
                    deaf.sock.sendall(data)
                    if stop.is_set():
                        return
            except OSError:
                return

        worker = threading.Thread(target=ask)
        worker.start()
        most, until, closed = 0, time.monotonic() + 60, False
        while time.monotonic() < until and not closed:
            start = time.monotonic()
            assert other.get("/big")
            assert time.monotonic() - start < 2.0
            most = max(most, resident(server.pid) - before)
            closed = other.exists("/deaf") is None
            time.sleep(0.02)
        stop.set()
        worker.join()
        assert closed, "a client that reads nothing kept its session alive for a minute"
        assert most < 200 << 20, f"{most >> 20} MB for one deaf client"
        deaf.drop()


def test_max_client_connections(own_server):
    server = own_server({"maxClientCnxns": "10"})
    # The launcher's own probes may still be closing.
    held = []

    def ten():
        while len(held) < 10:
            try:
                held.append(Conn(server.port))
            except (Closed, OSError):
                return False
        return True

    eventually(ten, 20, "ten connections")
    with tcp(server.port) as sock:
        sock.sendall(connect_request())
        assert read_to_end(sock) == b""
    assert held[0].exists("/")
    held.pop().close()

    def one_more():
        try:
            Conn(server.port).close()
            return True
        except (Closed, OSError):
            return False

    eventually(one_more, 20, "a free place is given out again")
    for conn in held:
        conn.close()


@pytest.mark.quenda_only("random bytes find known faults in Java")
def test_random_requests_hurt_only_their_sender(server, connect, root, rng, long):
    other = connect()
    ops = [op for op in (*range(0, 24), *range(99, 109), -1, -10) if op != OP.CLOSE_SESSION]
    for _ in range(5000 if long else 500):
        c = Conn(server.port)
        try:
            for _ in range(5):
                body = rng.randbytes(rng.randrange(40)) if rng.random() < 0.5 else rng.choice(EARLY)[1]
                body = bytearray(body)
                for _ in range(rng.randrange(3)):
                    if body:
                        body[rng.randrange(len(body))] = rng.randrange(256)
                c.send(rng.choice(ops), bytes(body))
                c.message(wait=10)
        except (Closed, ConnectionError, AssertionError):
            pass
        finally:
            c.close()
        assert other.set(root, b"x")
    assert other.exists(root)


def test_expect_is_strict():
    with pytest.raises(AssertionError), expect(ERR.NO_NODE):
        pass


@pytest.mark.java_wrong("replies that are under way are lost when Java closes")
def test_check_outside_a_multi_is_refused_also_behind_other_requests(server, connect, root):
    c = Conn(server.port)
    c.send_bytes(request(1, OP.SET_DATA, set_data(root, b"x")) + request(2, OP.CHECK, check(root, 0)))
    assert [(reply.xid, reply.err) for reply in (c.reply(), c.reply())] == [(1, 0), (2, ERR.UNIMPLEMENTED)]
    c.expect_close()


def test_auth_with_a_huge_credential(connect):
    c = connect()
    assert c.call(OP.AUTH, auth("digest", b"u:" + b"p" * 500_000), xid=AUTH_XID).err == ERR.OK
    assert c.who_am_i()[0] == ("digest", "u")
