"""Handshake and session."""

import concurrent.futures
import struct
import time

import pytest

from integration.lib.zkwire import (
    ERR, EV, FLAG, OP, Closed, Conn, Refused, buffer, connect_request, create, eventually, frame, int32, read,
    read_to_end, set_data, tcp,
)

REFUSAL = struct.pack(">iiiqi", 37, 0, 0, 0, 16) + bytes(16) + b"\0"


def handshake_bytes(port, **options):
    """Everything the server sends to a handshake, up to the close."""
    with tcp(port) as sock:
        sock.sendall(connect_request(**options))
        return read_to_end(sock)


def expire(conn, watcher, path):
    """Cuts `conn` and waits until its ephemeral `path` is gone."""
    conn.drop()
    eventually(lambda: watcher.exists(path) is None, 20, f"expiry of the owner of {path}")


def test_B01_resume_within_the_timeout_keeps_the_session(connect, root):
    owner, other = connect(timeout=4000), connect()
    owner.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    owner.drop()
    resumed = owner.resume()
    assert resumed.session == owner.session
    assert resumed.passwd == owner.passwd
    assert other.exists(f"{root}/e").ephemeral_owner == owner.session
    assert resumed.ephemerals() == [f"{root}/e"]
    resumed.close()
    assert other.exists(f"{root}/e") is None


def test_B01_resume_after_expiry_is_refused(server, connect, root):
    owner, other = connect(timeout=1000), connect()
    owner.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    expire(owner, other, f"{root}/e")
    with pytest.raises(Refused):
        owner.resume()


def test_B01_wrong_password_is_refused_and_disturbs_nobody(server, connect, root):
    owner, other = connect(timeout=10000), connect()
    owner.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    wrong = bytes([owner.passwd[0] ^ 1]) + owner.passwd[1:]
    assert handshake_bytes(server.port, session=owner.session, passwd=wrong) == REFUSAL
    for passwd in (b"", None, owner.passwd[:15], owner.passwd + b"\0"):
        assert handshake_bytes(server.port, session=owner.session, passwd=passwd) == REFUSAL
    resumed = owner.resume()
    assert resumed.session == owner.session
    assert other.exists(f"{root}/e").ephemeral_owner == owner.session
    resumed.close()


@pytest.mark.quenda_only("Java closes the rightful connection before it looks at the password")
def test_B01_wrong_password_leaves_the_live_connection_alone(server, connect):
    owner = connect(timeout=10000)
    wrong = bytes([owner.passwd[0] ^ 1]) + owner.passwd[1:]
    assert handshake_bytes(server.port, session=owner.session, passwd=wrong) == REFUSAL
    assert owner.exists("/") is not None


def test_B01_resume_of_a_closed_or_unknown_session_is_refused(server, connect):
    owner = connect()
    owner.close()
    assert handshake_bytes(server.port, session=owner.session, passwd=owner.passwd) == REFUSAL
    assert handshake_bytes(server.port, session=1) == REFUSAL
    assert handshake_bytes(server.port, session=-1) == REFUSAL


def test_B02_the_refusal_is_sent_before_the_close(server, connect, root):
    owner, other = connect(timeout=1000), connect()
    owner.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    expire(owner, other, f"{root}/e")
    options = {"session": owner.session, "passwd": owner.passwd}
    assert handshake_bytes(server.port, **options) == REFUSAL
    # A client without the read-only byte gets an answer without it.
    assert handshake_bytes(server.port, read_only=None, **options) == struct.pack(">i", 36) + REFUSAL[4:-1]


def test_B04_client_that_has_seen_a_newer_zxid_is_refused_without_a_session(server, connect):
    c = connect()
    ahead = c.sync("/") and c.last_zxid + 1_000_000
    assert handshake_bytes(server.port, last_zxid=ahead) == b""
    assert handshake_bytes(server.port, last_zxid=ahead, session=c.session, passwd=c.passwd) == b""


def test_B05_last_zxid_of_minus_one_and_zero_are_accepted(connect, root):
    writer = connect()
    for last_zxid in (-1, 0):
        watcher = connect(last_zxid=last_zxid)
        watcher.get(root, watch=True)
        zxid = writer.set(root, b"x").mzxid
        event = watcher.event()
        assert (event.type, event.path) == (EV.CHANGED, root)
        assert event.zxid in (-1, zxid)


def test_B07_new_and_resumed_handshakes_are_never_mixed_up(server, connect):
    held = [connect() for _ in range(100)]
    for conn in held:
        conn.drop()

    def one(index):
        if index % 2:
            return None, Conn(server.port)
        return held[index // 2], held[index // 2].resume()

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(one, range(200)))
    for before, now in answers:
        if before is not None:
            assert (now.session, now.passwd) == (before.session, before.passwd)
    assert len({now.session for _, now in answers}) == 200
    assert not {now.session for before, now in answers if before is None} & {conn.session for conn in held}
    for _, now in answers:
        now.close()


def test_B10_reads_behind_another_sessions_write_and_close_are_answered(server, connect, root, long):
    reader = connect()
    for _ in range(10_000 if long else 300):
        writer = Conn(server.port)
        writer.send_bytes(
            b"".join(
                frame(int32(xid) + int32(op) + body)
                for xid, op, body in ((1, OP.SET_DATA, set_data(root, b"x")), (2, OP.CLOSE_SESSION, b""))
            )
        )
        for _ in range(10):
            reader.send(OP.GET_DATA, read(root))
        for _ in range(10):
            assert reader.reply(wait=10).err == ERR.OK
        assert writer.reply().err == ERR.OK
        assert writer.reply().err == ERR.OK
        writer.expect_close()


def test_B11_a_lone_client_never_waits_for_something_else_to_arrive(own_server, long):
    server = own_server()
    with Conn(server.port, wait=5.0) as c:
        c.create("/n")
        for count in range(100_000 if long else 2000):
            assert c.set("/n", b"%d" % count).version == count + 1  # `wait` is the bound on each


def test_B14_requests_behind_a_close_are_not_executed(server, connect, root):
    other, closing = connect(), Conn(server.port)
    closing.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    requests = (
        (1, OP.CREATE, create(f"{root}/a")), (2, OP.CLOSE_SESSION, b""), (3, OP.CREATE, create(f"{root}/b")),
    )
    closing.send_bytes(b"".join(frame(int32(xid) + int32(op) + body) for xid, op, body in requests))
    assert [(closing.reply().xid, 0), (closing.reply().xid, 0)] == [(1, 0), (2, 0)]
    # The ephemeral is gone at the moment of the reply, not some time later.
    assert other.children(root) == ["a"]
    closing.expect_close()
    assert other.children(root) == ["a"]
    with pytest.raises(Refused):
        closing.resume()


@pytest.mark.timeout(180)
def test_B16_half_open_connections_do_not_leak_descriptors(own_server):
    server = own_server()
    connections = 9_900
    with Conn(server.port) as c:
        c.create("/alive")
        baseline = descriptors(server.pid)
        opened = []
        for index in range(connections):
            sock = tcp(server.port, timeout=30)
            if index % 3 == 1:
                sock.sendall(b"\0\0")
            if index % 3 == 2:
                sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER 0: close() sends a reset
                sock.close()
            else:
                opened.append(sock)
            if index % 1000 == 0:
                assert c.set("/alive", b"x").version >= 0
        # A whole handshake is served while all of them stand.
        with Conn(server.port) as late:
            assert late.exists("/alive")

        def back_to_baseline():
            c.ping()
            return descriptors(server.pid) <= baseline + 8

        eventually(back_to_baseline, 40, "descriptors back to the baseline")
        for sock in opened:
            sock.close()


def descriptors(pid):
    import os

    return len(os.listdir(f"/proc/{pid}/fd"))


def test_B17_timeouts_are_clamped_and_returned(own_server):
    server = own_server({"tickTime": "2000", "minSessionTimeout": None, "maxSessionTimeout": None})
    for wanted, granted in ((1, 4000), (-5, 4000), (0, 4000), (10 * 3600 * 1000, 40000), (12345, 12345)):
        with Conn(server.port, timeout=wanted) as c:
            assert c.timeout == granted
    # Negotiated anew on every resume.
    first = Conn(server.port, timeout=10000)
    first.drop()
    with first.resume(timeout=5000) as again:
        assert (again.session, again.timeout) == (first.session, 5000)


def test_B17_the_negotiated_timeout_is_the_one_that_is_kept(connect, root):
    """A session that asked for 1 ms lives for the minimum (1 s); one that is pinged lives on."""
    watcher = connect()
    silent, pinged = connect(timeout=1), connect(timeout=1000)
    assert silent.timeout == 1000
    silent.create(f"{root}/silent", flags=FLAG.EPHEMERAL)
    pinged.create(f"{root}/pinged", flags=FLAG.EPHEMERAL)
    start = time.monotonic()

    def silent_gone():
        pinged.ping()
        return watcher.exists(f"{root}/silent") is None

    eventually(silent_gone, 20, "expiry of the silent session")
    assert time.monotonic() - start > 0.8
    assert watcher.exists(f"{root}/pinged").ephemeral_owner == pinged.session
    silent.expect_close()


def test_B17_any_request_counts_as_life(connect, root):
    watcher, owner = connect(), connect(timeout=1000)
    owner.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    end = time.monotonic() + 3.5
    while time.monotonic() < end:
        owner.exists(root)
        time.sleep(0.2)
    assert watcher.exists(f"{root}/e").ephemeral_owner == owner.session


def test_session_moves_to_a_new_connection_and_the_old_one_is_closed(connect, root):
    first = connect()
    first.create(f"{root}/e", flags=FLAG.EPHEMERAL)
    second = first.resume()
    first.expect_close()
    assert second.exists(f"{root}/e").ephemeral_owner == first.session
    second.close()


def test_handshake_forms(server):
    for read_only, length in ((None, 36), (False, 37), (True, 37)):
        c = Conn(server.port, read_only=read_only)
        assert len(c.handshake) == length
        if read_only is not None:
            assert c.handshake[-1] == 0  # this server is not read-only
        c.close()
    with tcp(server.port) as sock:  # protocol version 7, no password, everything behind it in the same segment
        sock.sendall(
            connect_request(version=7, passwd=None)
            + frame(int32(-4) + int32(100) + int32(0) + b"\0\0\0\6digest\0\0\0\3u:p")
            + frame(int32(1) + int32(OP.EXISTS) + read("/"))
            + frame(int32(-2) + int32(OP.PING))
            + frame(int32(2) + int32(OP.CLOSE_SESSION))
        )
        sizes, data = [], read_to_end(sock)
        while data:
            size = int.from_bytes(data[:4], "big")
            sizes.append(size)
            data = data[4 + size :]
        assert sizes == [37, 16, 84, 16, 16]


def test_opening_a_session_is_a_transaction(server, connect):
    c = connect()
    before = c.call(OP.SYNC, b"\0\0\0\1/").zxid
    other = Conn(server.port)
    assert c.call(OP.SYNC, b"\0\0\0\1/").zxid == before + 1
    other.close()
    assert c.call(OP.SYNC, b"\0\0\0\1/").zxid == before + 2


def test_closed_is_not_raised_by_idle_connections(connect):
    """A session whose timeout is long is not cut for saying nothing for a few seconds."""
    c = connect(timeout=60000)
    with pytest.raises(TimeoutError):
        c.frame(wait=3.0)
    try:
        assert c.exists("/") is not None
    except Closed:
        pytest.fail("an idle connection was closed within its session timeout")


@pytest.mark.quenda_only("Java closes at once, and a client that pings at that moment is told of a broken pipe instead")
def test_what_is_sent_behind_the_end_does_not_reset_the_connection(server):
    for op, body in ((OP.CLOSE_SESSION, b""), (OP.AUTH, int32(0) + buffer(b"nonsense") + buffer(b"x"))):
        conn = Conn(server.port)
        assert conn.call(op, body, xid=-4 if op == OP.AUTH else 1).err == (ERR.AUTH_FAILED if op == OP.AUTH else ERR.OK)
        with pytest.raises(Closed):
            conn.frame()
        for _ in range(1000):
            conn.send(OP.PING, xid=-2)
        conn.drop()
