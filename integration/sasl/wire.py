"""Connections that authenticate, frame by frame."""

from integration.lib.zkwire import OP, Closed, Reader, buffer, int32, int64
from integration.sasl import digest_md5

AUTH_FAILED, REQUIRED = -115, -124
NULL = int32(-1)


def header(xid, error):
    return int32(xid) + int64(0) + int32(error)


def token(conn, value, xid=7):
    """Sends a token and returns the whole reply."""
    conn.send(OP.SASL, buffer(value), xid=xid)
    return conn.reply()


def challenge(conn, first=b""):
    reply = token(conn, first, xid=3)
    assert reply.payload[:16] == header(3, 0), reply
    found = Reader(reply.body).buffer()
    digest_md5.nonce_of(found)
    assert reply.body == buffer(found)
    return found


def log_in(conn, user, password, **how):
    """Authenticates; every byte of both replies is looked at."""
    given = challenge(conn)
    reply = token(conn, digest_md5.answer(given, user, password, **how))
    confirmed = digest_md5.confirmation(given, user, password, how.get("authzid"))
    assert reply.payload == header(7, 0) + buffer(confirmed), reply
    return conn


def assert_closed(conn):
    """Nothing more comes, not even an answer to what is sent now."""
    try:
        conn.send(OP.PING, xid=-2)
        reply = conn.reply()
    except (Closed, OSError):
        return
    raise AssertionError(f"still answered: {reply}")


def assert_refused(conn, value, error=AUTH_FAILED):
    """The token is refused by exactly these bytes, and the connection closed."""
    reply = token(conn, value)
    assert reply.payload == header(7, error) + NULL, reply
    assert_closed(conn)


def names(conn):
    return set(conn.who_am_i())


def is_session_alive(conn):
    """Whether another connection can go on with its session."""
    with conn.resume() as other:
        return other.session == conn.session
