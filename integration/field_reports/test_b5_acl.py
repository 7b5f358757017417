"""ACLs and authentication."""

import base64
import hashlib

import pytest

from integration.lib.zkwire import (
    AUTH_XID, ERR, FLAG, OP, READ_ACL, Conn, auth, create, expect, frame, int32, read, request, set_data, ustring,
)


def digest(user, password):
    return f"{user}:" + base64.b64encode(hashlib.sha1(f"{user}:{password}".encode()).digest()).decode()


def test_B61_partial_permissions_of_everyone(connect, root):
    c = connect()
    c.create(f"{root}/n", b"x", acl=READ_ACL)
    assert c.get(f"{root}/n")[0] == b"x"
    assert c.children(f"{root}/n") == []
    for refused in (
        lambda: c.set(f"{root}/n", b"y"),
        lambda: c.create(f"{root}/n/c"),
        lambda: c.set_acl(f"{root}/n", READ_ACL),
        lambda: c.delete(f"{root}/n/c"),
    ):
        with expect(ERR.NO_AUTH):
            refused()


def test_B62_auth_acl_behind_an_auth_in_flight(server, connect, root):
    c = connect()
    c.send_bytes(
        request(AUTH_XID, OP.AUTH, auth("digest", b"user:pass"))
        + request(1, OP.CREATE, create(f"{root}/n", acl=((31, "auth", ""),)))
        + request(2, OP.GET_ACL, ustring(f"{root}/n"))
    )
    assert [(reply.xid, reply.err) for reply in (c.reply(), c.reply())] == [(AUTH_XID, 0), (1, 0)]
    reader = c.reply().reader()
    assert reader.vector(reader.acl_entry) == [(31, "digest", digest("user", "pass"))]


def test_B62_auth_in_the_same_segment_as_the_handshake(server, root):
    from integration.lib.zkwire import connect_request

    c = Conn(server.port, handshake=False)
    c.send_bytes(
        connect_request()
        + request(AUTH_XID, OP.AUTH, auth("digest", b"user:pass"))
        + request(1, OP.CREATE, create(f"{root}/n", acl=((31, "auth", ""),)))
    )
    c.finish_handshake()
    assert [(reply.xid, reply.err) for reply in (c.reply(), c.reply())] == [(AUTH_XID, 0), (1, 0)]
    c.close()


def test_B62_auth_acl_without_an_identity_or_with_two(connect, root):
    c = connect()
    with expect(ERR.INVALID_ACL):
        c.create(f"{root}/n", acl=((31, "auth", ""),))
    c.auth("digest", b"a:1")
    c.auth("digest", b"b:2")
    c.create(f"{root}/n", acl=((31, "auth", "ignored"), (1, "world", "anyone")))
    found = c.get_acl(f"{root}/n")[0]
    assert sorted(found[:2]) == [(31, "digest", digest("a", "1")), (31, "digest", digest("b", "2"))]
    assert found[2:] == [(1, "world", "anyone")]


def test_B64_exists_looks_at_the_nodes_own_acl(connect, root):
    owner, c = connect(), connect()
    owner.auth("digest", b"o:p")
    owner.create(f"{root}/secret", acl=((31, "auth", ""),))
    with expect(ERR.NO_AUTH):
        c.exists(f"{root}/secret", watch=True)
    assert c.exists(f"{root}/secret/none") is None
    with expect(ERR.NO_WATCHER):  # a refused exists registers nothing
        c.remove_watches(f"{root}/secret", 3)


def test_B65_delete_is_the_parents_permission(connect, root):
    owner, c = connect(), connect()
    owner.auth("digest", b"o:p")
    owner.create(f"{root}/mine", acl=((31, "auth", ""),))
    with expect(ERR.NO_AUTH):
        c.get(f"{root}/mine")
    c.delete(f"{root}/mine")
    # The other way round: an open child of a closed parent stays. This is how a resource manager fences its
    # predecessor: CREATE and DELETE below the root only for the active one.
    owner.create(f"{root}/fence", acl=((12, "auth", ""), (19, "world", "anyone")))
    owner.create(f"{root}/fence/n")
    with expect(ERR.NO_AUTH):
        c.delete(f"{root}/fence/n")
    with expect(ERR.NO_AUTH):
        c.delete(f"{root}/fence/none")
    with expect(ERR.NO_AUTH):
        c.create(f"{root}/fence/m")
    assert c.set(f"{root}/fence", b"x").version == 1
    assert c.set_acl(f"{root}/fence", ((31, "world", "anyone"),)).aversion == 1
    c.delete(f"{root}/fence/n")


def test_B67_digests_are_shown_to_administrators_only(connect, root):
    owner, c = connect(), connect()
    owner.auth("digest", b"o:p")
    identity = digest("o", "p")
    owner.create(f"{root}/closed", acl=((31, "auth", ""),))
    owner.create(f"{root}/readable", acl=((31, "auth", ""), (1, "world", "anyone")))
    owner.create(f"{root}/administrable", acl=((31, "auth", ""), (16, "world", "anyone")))
    with expect(ERR.NO_AUTH):
        c.get_acl(f"{root}/closed")
    assert c.get_acl(f"{root}/readable")[0] == [(31, "digest", "o:x"), (1, "world", "anyone")]
    assert c.get_acl(f"{root}/administrable")[0] == [(31, "digest", identity), (16, "world", "anyone")]
    assert owner.get_acl(f"{root}/readable")[0][0] == (31, "digest", identity)


@pytest.mark.parametrize("scheme", ["nonsense", "world", "auth", "super", "sasl", "x509", "", None])
def test_B68_a_bad_scheme_is_answered_and_the_connection_closed(server, connect, root, scheme):
    other, c = connect(), Conn(server.port)
    c.send_bytes(
        request(AUTH_XID, OP.AUTH, auth(scheme, b"x")) + request(1, OP.CREATE, create(f"{root}/n"))
    )
    reply = c.reply()
    assert (reply.xid, reply.zxid, reply.err, reply.body) == (AUTH_XID, 0, ERR.AUTH_FAILED, b"")
    c.expect_close()
    assert other.children(root) == []
    # The session is not hurt.
    with c.resume() as again:
        assert again.session == c.session


def test_B68_digest_never_fails_but_for_null(server, connect):
    c = connect()
    c.auth("digest", b"nocolon")
    c.auth("digest", b"a:b:c")
    c.auth("ip", b"")
    assert c.who_am_i() == [("digest", "a"), ("digest", "nocolon"), ("ip", "127.0.0.1")]
    null = Conn(server.port)
    assert null.call(OP.AUTH, auth("digest", None), xid=AUTH_XID).err == ERR.AUTH_FAILED
    null.expect_close()


def test_B70_each_connection_has_its_own_identity(connect, root):
    a, b = connect(), connect()
    a.send(OP.AUTH, auth("digest", b"alice:1"), xid=AUTH_XID)
    b.send(OP.AUTH, auth("digest", b"bob:2"), xid=AUTH_XID)
    assert (a.reply().err, b.reply().err) == (0, 0)
    assert a.who_am_i() == [("digest", "alice"), ("ip", "127.0.0.1")]
    assert b.who_am_i() == [("digest", "bob"), ("ip", "127.0.0.1")]
    a.create(f"{root}/a", acl=((31, "auth", ""),))
    with expect(ERR.NO_AUTH):
        b.get(f"{root}/a")
    # Identities belong to the connection, not to the session.
    a.drop()
    again = a.resume()
    assert again.who_am_i() == [("ip", "127.0.0.1")]
    with expect(ERR.NO_AUTH):
        again.get(f"{root}/a")
    again.close()


def test_super_user_passes_every_check(connect, root):
    owner, c = connect(), connect()
    owner.auth("digest", b"o:p")
    owner.create(f"{root}/n", b"x", acl=((31, "auth", ""),))
    c.auth("digest", b"super:test")
    assert c.get(f"{root}/n")[0] == b"x"
    assert c.set_acl(f"{root}/n", ((31, "world", "anyone"),)).aversion == 1
    assert ("super", "") in c.who_am_i()


@pytest.mark.parametrize(
    "entries, error",
    [
        ((), ERR.INVALID_ACL),
        (None, ERR.INVALID_ACL),
        (((31, "world", "someone"),), ERR.INVALID_ACL),
        (((31, "nonsense", "x"),), ERR.INVALID_ACL),
        (((31, None, "x"),), ERR.INVALID_ACL),
        (((31, "super", ""),), ERR.INVALID_ACL),
        (((31, "digest", "a"),), ERR.INVALID_ACL),
        (((31, "digest", "a:"),), ERR.INVALID_ACL),
        (((31, "digest", "a:b:c"),), ERR.INVALID_ACL),
        (((31, "digest", "::"),), ERR.INVALID_ACL),
        (((31, "ip", "1.2.3"),), ERR.INVALID_ACL),
        (((31, "ip", "1.2.3.256"),), ERR.INVALID_ACL),
        (((31, "ip", "1.2.3.4/33"),), ERR.INVALID_ACL),
        (((31, "ip", "localhost"),), ERR.INVALID_ACL),
        (((31, "digest", None),), ERR.MARSHALLING),
        (((31, "digest", ":b"),), ERR.OK),
        (((31, "digest", "a:b:"),), ERR.OK),
        (((31, "ip", "10.0.0.0/8"),), ERR.OK),
        (((31, "ip", "::1"),), ERR.OK),
        (((0, "world", "anyone"),), ERR.OK),
        (((-1, "world", "anyone"),), ERR.OK),
    ],
)
def test_acl_lists(connect, root, entries, error):
    c = connect()
    assert c.call(OP.CREATE, create(f"{root}/n", acl=entries)).err == error
    # Looked at before any node is.
    if error == ERR.INVALID_ACL:
        assert c.call(OP.CREATE, create(f"{root}/none/n", acl=entries)).err == error


def test_ip_acls(connect, root):
    c = connect()
    for ident, allowed in (("127.0.0.1", True), ("127.0.0.0/8", True), ("10.0.0.0/8", False), ("127.0.0.2", False)):
        path = c.create(f"{root}/n", flags=FLAG.SEQUENTIAL, acl=((31, "ip", ident),))
        assert c.call(OP.GET_DATA, read(path)).err == (ERR.OK if allowed else ERR.NO_AUTH)


def test_an_identity_does_not_serve_requests_read_before_it(connect, root):
    owner, c = connect(), connect()
    owner.auth("digest", b"o:p")
    owner.create(f"{root}/n", acl=((31, "auth", ""),))
    c.send_bytes(
        request(1, OP.SET_DATA, set_data(f"{root}/n", b"x"))
        + request(AUTH_XID, OP.AUTH, auth("digest", b"o:p"))
        + request(2, OP.SET_DATA, set_data(f"{root}/n", b"y"))
    )
    errors = {reply.xid: reply.err for reply in (c.reply(), c.reply(), c.reply())}
    assert errors == {1: ERR.NO_AUTH, AUTH_XID: ERR.OK, 2: ERR.OK}


def test_truncated_auth_packet_closes(server, connect):
    other, c = connect(), Conn(server.port)
    c.send_bytes(frame(int32(AUTH_XID) + int32(OP.AUTH) + int32(0) + int32(6) + b"dig"))
    c.expect_close()
    assert other.exists("/")
