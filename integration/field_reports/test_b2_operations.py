"""Operations and wire format."""

import pytest

from integration.lib.zkwire import (
    AUTH_XID, ERR, EV, FLAG, OP, PING_XID, Closed, Conn, Event, Reader, Reply, ZkError, add_watch, auth, check, create,
    create_ttl, delete, expect, int32, int64, multi, read, read_to_end, request, set_data, tcp, ustring,
)

LIMIT = 1048575


def test_B19_a_create_with_ttl_is_taken_off_the_stream_whole(connect, root):
    c = connect()
    c.send(OP.CREATE_TTL, create_ttl(f"{root}/t", 60_000, b"data"))
    c.send(OP.EXISTS, read(f"{root}/t"))
    created, found = c.reply(), c.reply()
    assert created.err in (ERR.OK, ERR.UNIMPLEMENTED)
    assert found.err == (ERR.OK if created.err == ERR.OK else ERR.NO_NODE)
    if created.err == ERR.OK:
        reader = created.reader()
        assert reader.ustring() == f"{root}/t"
        assert reader.stat() == found.reader().stat()
        reader.end()


@pytest.mark.quenda_only("Java has TTL nodes switched off unless told otherwise")
def test_B19_ttl_nodes_need_no_switch(own_server):
    server = own_server({"extendedTypesEnabled": None})
    with Conn(server.port) as c:
        assert c.create_ttl("/t", 60_000)[0] == "/t"
        assert c.create_container("/c")[0] == "/c"


def test_B20_bodies_of_watch_operations(connect, root):
    c = connect()
    assert c.call(OP.ADD_WATCH, add_watch(root, 0)).payload[16:] == bytes(4)
    assert c.call(OP.CHECK_WATCHES, add_watch(root, 3)).payload[16:] == b""
    assert c.call(OP.REMOVE_WATCHES, add_watch(root, 3)).payload[16:] == b""
    missing = c.call(OP.REMOVE_WATCHES, add_watch(root, 3))
    assert (missing.err, missing.body) == (ERR.NO_WATCHER, b"")
    assert c.call(OP.ADD_WATCH, add_watch(root, 2)).err == ERR.MARSHALLING
    assert c.call(OP.ADD_WATCH, add_watch("/not there//at all", 1)).err == ERR.OK


def test_B22_create2_makes_a_plain_node(connect, root):
    path, stat = connect().create2(f"{root}/n", b"12345")
    assert path == f"{root}/n"
    assert (stat.version, stat.ephemeral_owner, stat.data_length) == (0, 0, 5)
    assert stat.czxid == stat.mzxid == stat.pzxid


def test_B23_a_lone_check_is_refused_and_spoils_nothing(own_server):
    server = own_server()
    with Conn(server.port) as c:
        c.create("/n")
        with Conn(server.port) as other:
            reply = other.call(OP.CHECK, check("/n", 0))
            assert (reply.err, reply.zxid, reply.body) == (ERR.UNIMPLEMENTED, -1, b"")
            other.expect_close()
        assert c.set("/n", b"x").version == 1
    server.restart(hard=True)
    with Conn(server.port) as c:
        assert c.get("/n")[0] == b"x"
        assert c.set("/n", b"y").version == 2


def largest_set(path, limit=LIMIT):
    """setData whose frame has exactly `limit` bytes."""
    return set_data(path, bytes(limit - 8 - 4 - len(path) - 4 - 4))


def test_B25_a_frame_of_exactly_the_limit_is_accepted(connect, root):
    c = connect()
    body = largest_set(root)
    assert len(body) + 8 == LIMIT
    assert c.call(OP.SET_DATA, body).err == ERR.OK
    data, stat = c.get(root)
    assert len(data) == stat.data_length == LIMIT - 20 - len(root)


@pytest.mark.parametrize("length", [LIMIT + 1, 0x7FFFFFFF, -1, -(1 << 31), 0, 3, 7])
def test_B25_a_bad_frame_length_costs_its_sender_only(server, connect, root, length):
    other, c = connect(), Conn(server.port)
    before = resident(server.pid)
    c.send_bytes(int32(length) + b"x" * 7)
    c.expect_close()
    assert other.set(root, b"x").version == 0 + 1
    assert resident(server.pid) - before < 64 << 20


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"xxxx",
                                  int32(-1), int32(0), int32(3) + b"abc", int32(0x7FFFFFFF), int32(LIMIT + 1)])
def test_B25_garbage_instead_of_a_handshake_is_closed_silently(server, connect, data):
    other = connect()
    before = resident(server.pid)
    with tcp(server.port) as sock:
        sock.sendall(data)
        assert read_to_end(sock) == b""
    assert other.exists("/")
    assert resident(server.pid) - before < 64 << 20


def test_B25_the_limit_is_configurable(own_server):
    server = own_server({"jute.maxbuffer": "5000"})
    with Conn(server.port) as c:
        c.create("/n")
        assert c.call(OP.SET_DATA, largest_set("/n", 5000)).err == ERR.OK
        # No limit on what the server sends: 400 names of 20 bytes are more than 5000.
        for index in range(400):
            c.create(f"/n/{index:020}")
        assert len(c.children("/n")) == 400
        c.send(OP.SET_DATA, largest_set("/n", 5001))
        c.expect_close()


def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.java_wrong("ZOOKEEPER-4306: the close transaction is larger than the limit", run=False)
def test_B26_a_close_with_many_long_named_ephemerals_works(own_server):
    server = own_server()
    with Conn(server.port) as other:
        other.create("/q")
        owner = Conn(server.port)
        names = (f"/q/{index:06}{'n' * 194}" for index in range(20_000))
        replies = owner.pipeline((OP.CREATE, create(name, flags=FLAG.EPHEMERAL)) for name in names)
        assert all(reply.err == ERR.OK for reply in replies)
        assert other.exists("/q").num_children == 20_000
        owner.send(OP.CLOSE_SESSION)
        assert owner.reply().err == ERR.OK
        assert other.exists("/q").num_children == 0
    server.restart(hard=True)
    with Conn(server.port) as other:
        stat = other.exists("/q")
        assert (stat.num_children, stat.cversion) == (0, 40_000)


def test_B28_replies_come_in_the_order_of_the_requests(connect, root, rng, long):
    c, writer = connect(), connect()
    c.add_watch(root, recursive=True)
    for _ in range(200 if long else 20):
        wanted, frames = [], []
        for number in range(60):
            xid = c.next_xid = c.next_xid + 1
            kind = rng.randrange(7)
            if kind == 0:
                frames.append(request(xid, OP.GET_DATA, read(root)))
            elif kind == 1:
                frames.append(request(xid, OP.SET_DATA, set_data(root, b"x")))
            elif kind == 2:
                xid = PING_XID
                frames.append(request(xid, OP.PING))
            elif kind == 3:
                frames.append(request(AUTH_XID, OP.AUTH, auth("digest", b"u%d:p" % number)))
                continue  # answered at once, so its place among the others is free
            elif kind == 4:
                body = multi((OP.SET_DATA, set_data(root, b"y")), (OP.CHECK, check(root, 1 << 30)))
                frames.append(request(xid, OP.MULTI, body))
            elif kind == 5:
                frames.append(request(xid, OP.SYNC, ustring(root)))
            else:
                frames.append(request(xid, OP.DELETE, delete(f"{root}/none")))
            wanted.append(xid)
        c.send_bytes(b"".join(frames))
        writer.set(root, b"other")
        got = []
        while len(got) < len(wanted):
            message = c.message()
            if isinstance(message, Event):
                assert (message.type, message.path) == (EV.CHANGED, root)
            elif message.xid != AUTH_XID:
                got.append(message.xid)
            else:
                assert message.err == ERR.OK
        assert got == wanted
        # Auth replies of this round may still be under way.
        c.sync(root) if not c.pending else drain(c)


def drain(c):
    """Reads what is left of a round, up to the answer to a sync."""
    xid = c.send(OP.SYNC, ustring("/"))
    while True:
        message = c.message()
        if isinstance(message, Reply) and message.xid == xid:
            return


def test_B29_the_operation_decides_not_the_xid(connect, root):
    c = connect()
    for xid in (2147483647, 1, 0, -2147483648, -2, -4, -8, 1):
        for op, body in ((OP.EXISTS, read(root)), (OP.SET_DATA, set_data(root, b"x")), (OP.SYNC, ustring("/"))):
            reply = c.call(op, body, xid=xid)
            assert (reply.xid, reply.err) == (xid, ERR.OK)
            assert reply.body
    c.send(OP.EXISTS, read(root), xid=-1)
    reader = Reader(c.frame())
    assert (reader.int32(), reader.int64() > 0, reader.int32()) == (-1, True, 0)
    c.send(OP.PING, xid=77)
    assert c.reply().xid == PING_XID
    assert c.call(OP.AUTH, auth("digest", b"a:b"), xid=9).err == ERR.OK


def test_B31_operations_on_the_root(own_server):
    server = own_server()
    with Conn(server.port) as c:
        stat = c.exists("/")
        assert (stat.czxid, stat.version, stat.cversion, stat.num_children) == (0, 0, -1, 1)
        assert c.children("/") == ["zookeeper"]
        assert c.children("/zookeeper") == ["config", "quota"]
        assert c.all_children_number("/") == 3
        with expect(ERR.NODE_EXISTS):
            c.create("/")
        for path in ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
            with expect(ERR.BAD_ARGUMENTS):
                c.delete(path)
        assert c.get("/")[0] == b""
        assert c.set("/", b"root").version == 1
        assert c.get("/")[0] == b"root"
        assert c.set_acl("/", ((31, "world", "anyone"),)).aversion == 1
        assert c.get_acl("/")[0] == [(31, "world", "anyone")]
        assert c.create("/", flags=FLAG.SEQUENTIAL) == "/0000000000"
        assert c.exists("") == c.exists("/")
        assert c.children("") == c.children("/")
        with expect(ERR.BAD_ARGUMENTS):
            c.set("", b"x")


def test_B32_the_configuration_node(connect):
    c = connect()
    data, stat = c.get("/zookeeper/config", watch=True)
    lines = (data or b"").decode().splitlines()
    if lines:
        assert all(line.startswith("server.") and ";" in line for line in lines[:-1])
        assert lines[-1].startswith("version=") and int(lines[-1][8:], 16) >= 0
    assert c.get_acl("/zookeeper/config")[0] == [(1, "world", "anyone")]
    with expect(ERR.NO_AUTH):
        c.set("/zookeeper/config", b"x")
    super_user = connect()
    super_user.auth("digest", b"super:test")
    super_user.set("/zookeeper/config", data or b"")
    event = c.event()
    assert (event.type, event.path) == (EV.CHANGED, "/zookeeper/config")
    assert stat.aversion == -1


def test_B34_multi_read_answers_item_by_item(connect, root):
    c = connect()
    c.set(root, b"data")
    c.create(f"{root}/a")
    before = c.call(OP.SYNC, ustring("/")).zxid
    found = c.multi_read(
        (OP.GET_DATA, read(root)), (OP.GET_DATA, read(f"{root}/none")), (OP.GET_CHILDREN, read(root)),
        (OP.GET_CHILDREN, read(f"{root}/none")),
    )
    assert [(entry.type, entry.err) for entry in found] == [(4, 0), (-1, -101), (8, 0), (-1, -101)]
    assert (found[0].data, found[0].stat.num_children, found[2].children) == (b"data", 1, ["a"])
    assert c.call(OP.SYNC, ustring("/")).zxid == before
    assert c.multi_read() == []
    wrong = c.call(OP.MULTI_READ, multi((OP.EXISTS, read(root))))
    assert wrong.err == ERR.MARSHALLING


def test_B35_the_two_ways_to_list_children(connect, root):
    c = connect()
    c.create(f"{root}/a")
    plain = c.call(OP.GET_CHILDREN, read(root))
    assert plain.body == int32(1) + ustring("a")
    full = c.call(OP.GET_CHILDREN2, read(root))
    assert full.body[: len(plain.body)] == plain.body
    assert len(full.body) == len(plain.body) + 68
    assert c.children2(root) == (["a"], c.exists(root))


@pytest.mark.parametrize("op", [500, 501, 502, 997, 10, 23, 50, 99, 108, 0, -1, 1 << 30])
def test_unknown_operations_are_refused_cleanly(server, connect, op):
    c = Conn(server.port)
    xid = c.send(op, read("/"))
    reply = c.reply()
    assert (reply.xid, reply.zxid, reply.err, reply.body) == (xid, -1, ERR.UNIMPLEMENTED, b"")
    c.expect_close()
    # Its session lives on.
    with c.resume() as again:
        assert again.session == c.session


@pytest.mark.java_wrong("Java takes create-session from clients, and deletes containers for anyone")
@pytest.mark.parametrize("op", [OP.CREATE_SESSION, OP.DELETE_CONTAINER])
def test_internal_operations_are_not_for_clients(server, connect, root, op):
    other, c = connect(), Conn(server.port)
    body = ustring(root) if op == OP.DELETE_CONTAINER else int32(5000)
    reply = c.call(op, body)
    assert reply.err in (ERR.UNIMPLEMENTED, ERR.BAD_ARGUMENTS)
    assert reply.body == b""
    assert other.exists(root)


def test_reconfig_is_refused_cleanly(connect):
    c = connect()
    body = ustring("server.9=127.0.0.1:1:2;3") + ustring(None) + ustring(None) + int64(-1)
    assert c.call(OP.RECONFIG, body).err in (ERR.UNIMPLEMENTED, -123)
    assert c.exists("/")


def test_sasl_is_refused_cleanly(server, connect):
    other, c = connect(), Conn(server.port)
    try:
        reply = c.call(OP.SASL, int32(0))
        # Java without SASL set up: success and a null token. An honest refusal is a failed authentication.
        assert (reply.err, reply.body) == (0, int32(-1)) or reply.err == ERR.AUTH_FAILED
    except (Closed, ZkError):
        pass
    assert other.exists("/")
