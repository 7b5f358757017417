"""What an identity is good for: access lists, super users."""

import pytest

from integration.lib.zkwire import ERR, OP, Conn, auth, expect
from integration.sasl import servers, wire
from integration.sasl.digest_md5 import answer

BOB_ONLY = [(31, "sasl", "bob")]


@pytest.fixture
def bob(server):
    with Conn(server.port) as conn:
        yield wire.log_in(conn, "bob", "bobsecret")


@pytest.fixture
def secret(bob):
    """A node for bob alone."""
    bob.create("/secret", b"x", acl=BOB_ONLY)
    yield "/secret"
    bob.delete("/secret")


def test_a_list_lets_in_whom_it_names(server, bob, secret):
    assert bob.get(secret)[0] == b"x"
    assert bob.get_acl(secret)[0] == BOB_ONLY
    with Conn(server.port) as other:
        for refused in (lambda: other.get(secret), lambda: other.set(secret, b"y"), lambda: other.get_acl(secret)):
            with expect(ERR.NO_AUTH):
                refused()
        wire.log_in(other, "zo\u00eb", "cl\u00e9")
        with expect(ERR.NO_AUTH):
            other.get(secret)


def test_auth_stands_for_the_user(bob):
    bob.auth("digest", b"u:p")
    bob.create("/mine", acl=[(19, "auth", "ignored"), (1, "world", "anyone")])
    expected = {(19, "sasl", "bob"), (19, "digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="), (1, "world", "anyone")}
    assert set(bob.get_acl("/mine")[0]) == expected
    bob.delete("/mine")


@pytest.mark.parametrize("name", ["", "nobody", "a/b", "a/b@REALM", "x@", "with space", "\u03b1"])
def test_names_that_a_list_may_have(bob, name):
    bob.create("/named", acl=[(1, "sasl", name), *BOB_ONLY])
    assert bob.get_acl("/named")[0] == [(1, "sasl", name), *BOB_ONLY]
    bob.delete("/named")


@pytest.mark.parametrize("name", ["a@b@c", "a@b/c", "a/b/c@d"])
def test_names_that_a_list_may_not_have(bob, name):
    with expect(ERR.INVALID_ACL):
        bob.create("/named", acl=[(1, "sasl", name)])


def test_the_user_super_counts_as_any_user(server, secret):
    with Conn(server.port) as conn:
        wire.log_in(conn, "super", "supersecret")
        assert wire.names(conn) == {("ip", "127.0.0.1"), ("sasl", "super")}
        conn.set(secret, b"super")
        conn.create("/for-digests", acl=[(31, "digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")])
        with expect(ERR.NO_AUTH):
            conn.get("/for-digests")
        conn.auth("digest", b"u:p")
        conn.delete("/for-digests")


def test_a_configured_super_user_passes_every_check(server, secret):
    with Conn(server.port) as conn:
        wire.log_in(conn, "ann", servers.USERS["ann"])
        assert wire.names(conn) == {("ip", "127.0.0.1"), ("sasl", "ann"), ("super", "")}
        conn.set(secret, b"ann")
        conn.create("/nobodys", acl=[(0, "world", "anyone")])
        conn.set("/nobodys", b"y")
        conn.delete("/nobodys")


def test_the_super_digest_passes_every_check(server, secret):
    with Conn(server.port) as conn:
        conn.auth("digest", b"super:wrong")
        with expect(ERR.NO_AUTH):
            conn.get(secret)
        conn.auth("digest", b"super:test")
        assert wire.names(conn) == {("ip", "127.0.0.1"), ("digest", "super"), ("super", "")}
        assert conn.get(secret)[0] == b"x"


def test_several_super_users(start):
    server = start(superUser=None, superUser__1="bob", superUser__x="zo\u00eb", superUsers="ann")
    for user, is_super in (("bob", True), ("ann", False)):
        with Conn(server.port) as conn:
            wire.log_in(conn, user, servers.USERS[user])
            assert (("super", "") in wire.names(conn)) == is_super, user


def test_a_password_of_super_in_the_configuration_wins(start):
    server = start(SASLAuthenticationProvider__superPassword="other")
    with Conn(server.port) as conn:
        wire.log_in(conn, "super", "other")
    with Conn(server.port) as conn:
        wire.assert_refused(conn, answer(wire.challenge(conn), "super", "supersecret"))
    with Conn(server.port) as conn:
        wire.assert_refused(conn, answer(wire.challenge(conn), "bob", "other"))


def test_a_password_of_super_makes_no_user(start):
    server = start(jaas=servers.jaas({"bob": "x"}), SASLAuthenticationProvider__superPassword="other")
    with Conn(server.port) as conn:
        wire.assert_refused(conn, answer(wire.challenge(conn), "super", "other"))


def test_another_hash_of_digests(start):
    digest = "super:wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig="
    server = start(DigestAuthenticationProvider__digestAlg="SHA-256", DigestAuthenticationProvider__superDigest=digest)
    with Conn(server.port) as conn:
        conn.auth("digest", b"u:p")
        conn.create("/mine", acl=[(31, "auth", "")])
        assert conn.get_acl("/mine")[0] == [(31, "digest", "u:/Y8xRBngpX5duYn15uUqIRaIaCviy5TEwSk419hCwuA=")]
        with Conn(server.port) as other:
            other.auth("digest", b"super:test")
            assert ("super", "") in wire.names(other)
            other.delete("/mine")


def test_without_digests_there_is_no_such_scheme(start):
    server = start(DigestAuthenticationProvider__enabled="false", DigestAuthenticationProvider__superDigest=None)
    with Conn(server.port) as conn:
        with expect(ERR.INVALID_ACL):
            conn.create("/no", acl=[(31, "digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")])
        wire.log_in(conn, "bob", "bobsecret")
        conn.send(OP.AUTH, auth("digest", b"u:p"), xid=-4)
        assert conn.reply().payload == wire.header(-4, ERR.AUTH_FAILED)
        wire.assert_closed(conn)


def test_an_algorithm_that_is_none_stops_the_start(refused):
    assert "NONE-1" in refused(DigestAuthenticationProvider__digestAlg="NONE-1")


def test_without_checks_lists_are_still_looked_at(start):
    with Conn(start(skipACL="yes").port) as conn:
        conn.create("/open", acl=BOB_ONLY)
        assert conn.get("/open")[0] == b""
        with expect(ERR.INVALID_ACL):
            conn.create("/no", acl=[(31, "sasl", "a@b@c")])
        conn.delete("/open")
