"""One connection's exchange of tokens, byte by byte, and everything that goes wrong in it."""

import pytest

from integration.lib.zkwire import ERR, OP, Closed, Conn, auth, buffer, expect, frame, int32
from integration.sasl import servers, wire
from integration.sasl.digest_md5 import answer, confirmation, nonce_of


@pytest.mark.parametrize("user", servers.USERS)
def test_a_user_with_the_password_is_authenticated(conn, user):
    wire.log_in(conn, user, servers.USERS[user])
    assert ("sasl", user) in wire.names(conn)


def test_a_wrong_password_is_refused_and_the_session_lives(conn):
    wire.assert_refused(conn, answer(wire.challenge(conn), "bob", "Bobsecret"))
    assert wire.is_session_alive(conn)


WRONG = {
    "empty": b"",
    "garbage": b"\x00\xff\x01garbage",
    "commas": b",,,,",
    "plain": b"\x00bob\x00bobsecret",
    "too long": b"x" * 4097,
    "huge": b"," * 900_000,
}


@pytest.mark.parametrize("token", WRONG.values(), ids=WRONG)
def test_what_is_no_answer_is_refused(conn, token):
    wire.challenge(conn)
    wire.assert_refused(conn, token)


BENT = {
    "unknown user": {"username": '"eve"'},
    "user in other case": {"username": '"Bob"'},
    "no user": {"username": None},
    "other realm": {"realm": '"elsewhere"'},
    "no realm": {"realm": None},
    "other nonce": {"nonce": '"AAAA"'},
    "no nonce": {"nonce": None},
    "no cnonce": {"cnonce": None},
    "other uri": {"digest_uri": '"ldap/zk-sasl-md5"'},
    "integrity": {"qop": "auth-int"},
    "other charset": {"charset": "iso-8859-1"},
    "twice": {"maxbuf": "1,maxbuf=1"},
    "no response": {"response": None},
    "response cut": {"response": "12ab"},
    "open quote": {"qop": '"auth'},
}


@pytest.mark.parametrize("instead", BENT.values(), ids=BENT)
def test_a_bent_answer_is_refused(conn, instead):
    wire.assert_refused(conn, answer(wire.challenge(conn), "bob", "bobsecret", **instead))


@pytest.mark.parametrize("instead", [{"maxbuf": "many"}, {"nonce_count": "x"}, {"username": '""'}], ids=str)
def test_a_broken_number_or_an_empty_name_closes_without_a_reply(conn, instead):
    given = wire.challenge(conn)
    conn.send(OP.SASL, buffer(answer(given, "bob", "bobsecret", **instead)))
    with pytest.raises(Closed):
        conn.reply()


@pytest.mark.parametrize("body", [b"", b"\x00\x00", int32(-1), int32(9) + b"short"], ids=["none", "cut", "null", "long"])
def test_a_record_without_a_token_closes_without_a_reply(conn, body):
    conn.send(OP.SASL, body)
    with pytest.raises(Closed):
        conn.reply()


def test_what_the_first_token_holds_does_not_count(conn):
    given = wire.challenge(conn, first=b"username=bob")
    reply = wire.token(conn, answer(given, "bob", "bobsecret"))
    assert reply.body == buffer(confirmation(given, "bob", "bobsecret"))


def test_a_first_token_may_not_be_huge(conn):
    wire.assert_refused(conn, b"x" * 4097)


def test_the_authorization_id_of_the_client_does_not_count(conn):
    wire.log_in(conn, "bob", "bobsecret", authzid="super")
    assert {name for scheme, name in wire.names(conn) if scheme == "sasl"} == {"bob"}


@pytest.mark.parametrize("token", [b"", b"username=bob"])
def test_a_second_exchange_is_refused(conn, token):
    wire.log_in(conn, "bob", "bobsecret")
    wire.assert_refused(conn, token)


def test_an_answer_is_for_its_own_connection(server, conn):
    with Conn(server.port) as other:
        first, second = wire.challenge(conn), wire.challenge(other)
        assert nonce_of(first) != nonce_of(second)
        wire.assert_refused(other, answer(first, "bob", "bobsecret"))
        assert wire.token(conn, answer(first, "bob", "bobsecret")).err == 0


def test_many_exchanges_go_on_at_once(server):
    conns = [Conn(server.port) for _ in range(20)]
    given = [wire.challenge(conn) for conn in conns]
    for conn, challenge in reversed(list(zip(conns, given, strict=True))):
        assert wire.token(conn, answer(challenge, "bob", "bobsecret")).err == 0
    for conn in conns:
        assert ("sasl", "bob") in wire.names(conn)
        conn.close()


def test_a_token_before_the_session_closes(server):
    conn = Conn(server.port, handshake=False)
    conn.send_bytes(frame(int32(1) + int32(OP.SASL) + buffer(b"")))
    with pytest.raises(Closed):
        conn.frame()


def test_tokens_are_served_beside_requests_in_flight(conn):
    """All in one write; each request is judged by who the connection was when it was read."""
    given = wire.challenge(conn)
    path, acl = "/in-flight", [(31, "sasl", "bob")]
    with Conn(conn.port) as owner:
        wire.log_in(owner, "bob", "bobsecret")
        owner.create(path, acl=acl)
        read = buffer(path.encode()) + b"\0"
        requests = [(11, OP.GET_DATA, read), (12, OP.SASL, buffer(answer(given, "bob", "bobsecret"))),
                    (13, OP.GET_DATA, read), (14, OP.SASL, buffer(b"")), (15, OP.GET_DATA, read)]
        conn.send_bytes(b"".join(frame(int32(xid) + int32(op) + body) for xid, op, body in requests))
        found = {}
        try:
            while True:
                reply = conn.reply()
                found[reply.xid] = reply.err
        except Closed:
            pass
        # The refused second exchange cuts off what is behind it; what is before it may be cut off, too.
        expected = {11: ERR.NO_AUTH, 12: 0, 13: 0, 14: wire.AUTH_FAILED}
        assert found.items() <= expected.items(), found
        assert {12, 14} <= found.keys()
        owner.delete(path)


def test_the_auth_packet_does_not_do_sasl(conn):
    conn.send(OP.AUTH, auth("sasl", b"bob:bobsecret"), xid=-4)
    assert conn.reply().payload == wire.header(-4, ERR.AUTH_FAILED)
    wire.assert_closed(conn)


def test_without_users_every_token_is_answered_with_none(start):
    with Conn(start(jaas=None).port) as conn:
        for token in (b"", b"any"):
            assert wire.token(conn, token).payload == wire.header(7, 0) + wire.NULL
        assert {scheme for scheme, _ in wire.names(conn)} == {"ip"}


def test_a_section_of_another_name_is_no_section(start):
    with Conn(start(jaas=servers.jaas(servers.USERS, section="Client")).port) as conn:
        assert wire.token(conn, b"").payload == wire.header(7, 0) + wire.NULL


def test_the_section_may_have_another_name(start):
    server = start(jaas=servers.jaas({"bob": "x"}) + servers.jaas({"bob": "y"}, "Other"), sasl__serverconfig="Other")
    with Conn(server.port) as conn:
        wire.log_in(conn, "bob", "y")
    with Conn(server.port) as conn:
        wire.assert_refused(conn, answer(wire.challenge(conn), "bob", "x"))


def test_failed_clients_may_go_on_as_nobody(start):
    with Conn(start(allowSaslFailedClients="true").port) as conn:
        nobody = wire.header(7, 0) + wire.NULL
        assert wire.token(conn, b"x" * 5000).payload == nobody
        given = wire.challenge(conn)
        assert wire.token(conn, answer(given, "bob", "wrong")).payload == nobody
        assert wire.token(conn, answer(given, "bob", "bobsecret")).payload == nobody, "there is one exchange"
        assert {scheme for scheme, _ in wire.names(conn)} == {"ip"}
        conn.create("/nobody")
        with expect(ERR.INVALID_ACL):
            conn.create("/nobody/mine", acl=[(31, "auth", "")])
        conn.delete("/nobody")


def test_the_identity_is_the_connections_and_not_the_sessions(server, conn):
    wire.log_in(conn, "bob", "bobsecret")
    with conn.resume() as other:
        assert other.session == conn.session
        assert {scheme for scheme, _ in wire.names(other)} == {"ip"}
        wire.log_in(other, "bob", "bobsecret")
        assert ("sasl", "bob") in wire.names(other)
