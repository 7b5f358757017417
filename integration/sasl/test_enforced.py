"""What is demanded of a client before it may do anything, and how it is told."""

import pytest

from integration.lib.zkwire import ERR, OP, Conn, auth, buffer, create, delete, int64, multi, read, request, set_watches, ustring
from integration.sasl import servers, wire
from integration.sasl.digest_md5 import answer

REQUESTS = {
    "ping": (OP.PING, b"", -2),
    "get": (OP.GET_DATA, read("/"), 1),
    "exists": (OP.EXISTS, read("/"), 2),
    "create": (OP.CREATE, create("/no"), 3),
    "delete": (OP.DELETE, delete("/no"), 4),
    "sync": (OP.SYNC, ustring("/"), 5),
    "multi": (OP.MULTI, multi((OP.CREATE, create("/no"))), 6),
    "set watches": (OP.SET_WATCHES, set_watches(0), -8),
    "who am i": (OP.WHO_AM_I, b"", 7),
    "close session": (OP.CLOSE_SESSION, b"", 8),
    "reconfig": (OP.RECONFIG, ustring(None) * 3 + int64(-1), 9),
    "unknown": (999, b"", 10),
    "undecodable": (OP.GET_DATA, b"\x00", 11),
}
SETTINGS = {
    "sasl": {"enforce__auth__enabled": "true", "enforce__auth__schemes": "sasl"},
    "the old switch": {"sessionRequireClientSASLAuth": "true"},
    "the old switch wins": {"sessionRequireClientSASLAuth": "true", "enforce__auth__enabled": "true",
                            "enforce__auth__schemes": "digest,ip"},
    "digest": {"enforce__auth__enabled": "true", "enforce__auth__schemes": "digest"},
    "several": {"enforce__auth__enabled": "TRUE", "enforce__auth__schemes": " sasl , digest "},
    "failed clients": {"sessionRequireClientSASLAuth": "true", "allowSaslFailedClients": "true"},
}
BY_SASL = {"sasl", "the old switch", "the old switch wins", "several", "failed clients"}
BY_DIGEST = {"digest", "several"}


def by_sasl(conn):
    wire.log_in(conn, "bob", "bobsecret")


def by_digest(conn):
    conn.auth("digest", b"u:p")


@pytest.fixture(params=SETTINGS)
def setting(request):
    return request.param


@pytest.fixture
def port(start, setting):
    return start(**SETTINGS[setting]).port


@pytest.mark.parametrize("name", REQUESTS)
def test_nothing_is_served_before(start, name):
    """Reply, close, and a session that lives."""
    op, body, xid = REQUESTS[name]
    conn = Conn(start(**SETTINGS["sasl"]).port)
    conn.send(op, body, xid=xid)
    assert conn.reply().payload == wire.header(xid, wire.REQUIRED)
    wire.assert_closed(conn)
    assert wire.is_session_alive(conn)


def test_each_setting_demands(port):
    conn = Conn(port)
    conn.send(OP.GET_DATA, read("/"), xid=1)
    assert conn.reply().payload == wire.header(1, wire.REQUIRED)
    wire.assert_closed(conn)


def test_what_comes_behind_a_refused_request_is_dropped(start):
    conn = Conn(start(**SETTINGS["digest"]).port)
    # In one piece: the server may close as soon as it has seen the first.
    requests = [(1, OP.CREATE, create("/dropped")), (-4, OP.AUTH, auth("digest", b"u:p")), (2, OP.CREATE, create("/dropped"))]
    conn.sock.sendall(b"".join(request(*each) for each in requests))
    assert conn.reply().payload == wire.header(1, wire.REQUIRED)
    wire.assert_closed(conn)
    with Conn(conn.port) as other:
        by_digest(other)
        assert other.exists("/dropped") is None


@pytest.mark.parametrize("how", [by_sasl, by_digest])
def test_who_has_proved_enough_is_served(port, setting, how):
    with Conn(port) as conn:
        how(conn)
        if setting in (BY_SASL if how is by_sasl else BY_DIGEST):
            assert conn.get("/zookeeper")[0] is not None
        else:
            conn.send(OP.GET_DATA, read("/"), xid=1)
            assert conn.reply().payload == wire.header(1, wire.REQUIRED)
            wire.assert_closed(conn)


def test_a_failed_exchange_is_told_apart(port, setting):
    """Where SASL is demanded by its own code, and whatever may be said of failed clients."""
    conn = Conn(port)
    error = wire.REQUIRED if setting in BY_SASL else wire.AUTH_FAILED
    wire.assert_refused(conn, answer(wire.challenge(conn), "bob", "wrong"), error)
    assert wire.is_session_alive(conn)


def test_a_failed_auth_packet_is_told_as_ever(port):
    conn = Conn(port)
    conn.send(OP.AUTH, auth("nope", b"u:p"), xid=-4)
    assert conn.reply().payload == wire.header(-4, ERR.AUTH_FAILED)
    wire.assert_closed(conn)


def test_the_address_suffices_if_it_is_enough(start):
    with Conn(start(enforce__auth__enabled="true", enforce__auth__schemes="ip,sasl").port) as conn:
        assert conn.exists("/zookeeper")
        wire.assert_refused(conn, b"x" * 5000, wire.REQUIRED)


def test_a_list_that_is_not_switched_on_demands_nothing(start):
    with Conn(start(enforce__auth__schemes="sasl").port) as conn:
        assert conn.exists("/zookeeper")
        given = wire.challenge(conn)
        wire.assert_refused(conn, answer(given, "bob", "wrong"), wire.AUTH_FAILED)


def test_a_resumed_session_has_to_prove_it_anew(start):
    conn = Conn(start(**SETTINGS["sasl"]).port)
    by_sasl(conn)
    conn.create("/ephemeral", flags=1)
    with conn.resume() as other:
        other.send(OP.GET_DATA, read("/"), xid=1)
        assert other.reply().payload == wire.header(1, wire.REQUIRED)
    with conn.resume() as other:
        by_sasl(other)
        assert other.exists("/ephemeral").ephemeral_owner == conn.session


def test_without_users_nobody_can_prove_it(start):
    with Conn(start(jaas=None, **SETTINGS["sasl"]).port) as conn:
        assert wire.token(conn, b"").payload == wire.header(7, 0) + wire.NULL
        conn.send(OP.SASL, buffer(b""), xid=1)
        assert conn.reply().payload == wire.header(1, 0) + wire.NULL
        conn.send(OP.GET_DATA, read("/"), xid=2)
        assert conn.reply().payload == wire.header(2, wire.REQUIRED)


@pytest.mark.parametrize("scheme", ["world", "auth", "super", "x509", "nope", "sasl,nope"])
def test_a_scheme_that_nobody_can_prove_stops_the_start(refused, scheme):
    said = refused(enforce__auth__enabled="true", enforce__auth__schemes=scheme)
    assert scheme.rpartition(",")[2] in said


def test_to_demand_and_name_nothing_stops_the_start(refused):
    assert "enforce.auth.schemes" in refused(enforce__auth__enabled="true")


def test_sasl_without_a_provider_stops_the_start(refused):
    assert "sasl" in refused(jaas=None, authProvider__1=None, sessionRequireClientSASLAuth="true")


@pytest.mark.parametrize("text", ["Server { x required };", "Server {\n} ;;", servers.JAAS * 2], ids=["cut", "signs", "twice"])
def test_a_broken_file_stops_the_start(refused, text):
    refused(jaas=text)
