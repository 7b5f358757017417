"""One client session of everything that the audit log tells of, for Quenda and for a genuine server alike."""

from integration.lib import zkwire as wire
from integration.lib.zkwire import FLAG, OP, Closed, Conn, ZkError

SUPER = "super:secret"
# The digest of SUPER, as superDigest wants it.
SUPER_DIGEST = "super:lK75jTNcA+U9vtVEw5vB51mj/w4="
CFG = {
    "audit.enable": "true",
    "extendedTypesEnabled": "true",
    "reconfigEnabled": "true",
    "DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
}


def attempt(call, *args, **options):
    try:
        return call(*args, **options)
    except ZkError as error:
        return error.code


def creates(conn):
    for number, flags in enumerate((FLAG.PERSISTENT, FLAG.EPHEMERAL, FLAG.SEQUENTIAL, FLAG.EPHEMERAL_SEQUENTIAL)):
        attempt(conn.create, f"/c{number}-", b"never shown", flags)
        attempt(conn.create2, f"/d{number}-", b"never shown", flags)
    attempt(conn.create_container, "/box")
    attempt(conn.create_ttl, "/ttl", 600000)
    attempt(conn.create_ttl, "/ttl-", 600000, b"", FLAG.TTL_SEQUENTIAL)
    attempt(conn.create, "/c0-")
    attempt(conn.create, "/missing/parent", b"x", FLAG.SEQUENTIAL)
    attempt(conn.create, "not-a-path")
    attempt(conn.create, "/no-acl", b"", 0, ())
    attempt(conn.create_ttl, "/missing/ttl", 600000)
    attempt(conn.create_ttl, "/bad-ttl", -5)
    attempt(conn.create, "/na=me,with:signs")


def changes(conn):
    attempt(conn.set, "/c0-", b"secret data")
    attempt(conn.set, "/c0-", b"secret data", 17)
    attempt(conn.set, "/missing", b"")
    attempt(conn.delete, "/c0-", 17)
    attempt(conn.delete, "/missing")
    attempt(conn.delete, "/d0-")
    attempt(conn.delete, "/")
    attempt(conn.set_acl, "/c0-", [(31, "world", "anyone")])
    attempt(conn.set_acl, "/c0-", [(1, "ip", "127.0.0.1"), (2, "world", "anyone"), (28, "digest", "a:b")])
    attempt(conn.set_acl, "/c0-", [(31, "world", "anyone")])
    attempt(conn.set_acl, "/c0-", [(31, "auth", "")])
    attempt(conn.set_acl, "/box", [(31, "nosuch", "x")])
    attempt(conn.set_acl, "/box", ())
    attempt(conn.set_acl, "/missing", [(31, "world", "anyone")])
    # Reads leave no line.
    attempt(conn.get, "/c0-")
    attempt(conn.children, "/")
    attempt(conn.sync, "/")


def multis(conn):
    attempt(
        conn.multi,
        (OP.CREATE, wire.create("/m1", b"x")),
        (OP.CREATE, wire.create("/m-", b"x", FLAG.SEQUENTIAL)),
        (OP.CREATE2, wire.create("/m2", b"x", FLAG.EPHEMERAL)),
        (OP.CREATE_CONTAINER, wire.create("/m3", b"", FLAG.CONTAINER)),
        (OP.CREATE_TTL, wire.create_ttl("/m4", 600000)),
        (OP.SET_DATA, wire.set_data("/m1", b"y")),
        (OP.CHECK, wire.check("/m1", 1)),
        (OP.DELETE, wire.delete("/m1")),
    )
    attempt(conn.multi, (OP.CREATE, wire.create("/m5")), (OP.DELETE, wire.delete("/missing")))
    attempt(conn.multi, (OP.CHECK, wire.check("/c0-", 99)))
    attempt(conn.multi)


def identities(conn):
    conn.auth("digest", b"bob:bobsecret")
    attempt(conn.set, "/c0-", b"as bob")
    conn.auth("digest", b"bob:bobsecret")
    conn.auth("digest", b"eve:evesecret")
    attempt(conn.set, "/c0-", b"as two")
    conn.auth("digest", SUPER.encode())
    attempt(conn.set, "/c0-", b"as super")
    attempt(conn.create, "/auth", b"", 0, [(31, "auth", "")])
    attempt(conn.set_acl, "/auth", [(31, "auth", "")])


def reconfigs(conn):
    attempt(conn.reconfig, None, "9", None)
    attempt(conn.reconfig, "server.9=127.0.0.1:1:2", None, None)


def session(port):
    """Runs it all; the server has been started on `port` with CFG."""
    with Conn(port) as conn:
        creates(conn)
        changes(conn)
        multis(conn)
        reconfigs(conn)
        identities(conn)
    with Conn(port) as conn:
        attempt(conn.create, "/last-1", b"", FLAG.EPHEMERAL)
        # What is no request of its kind.
        attempt(conn.call, OP.SET_DATA, b"\0\0")
        try:
            attempt(conn.call, OP.DELETE, b"")
        except Closed:
            pass


def normalised(lines, user):
    """The same on every run: sessions by number, identities in order, the owner of the process as USER."""
    seen = {}
    result = []
    for line in lines:
        fields = []
        for field in line.split("\t"):
            key, equals, value = field.partition("=")
            if key == "session":
                value = f"0x{seen.setdefault(value, len(seen) + 1)}"
            elif key == "user":
                value = ",".join(sorted("USER" if name == user else name for name in value.split(",")))
            fields.append(f"{key}={value}" if equals else key)
        result.append("\t".join(fields))
    return result
