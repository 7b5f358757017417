"""Who a client is by its certificate, and what that lets it do."""

import pytest

from integration.lib.zkwire import ERR, Conn, auth, expect
from integration.tls.material import OLD_SUBJECT, SELF_SUBJECT, SUBJECT
from integration.tls.servers import SecureConn, context

AUTH = 100
AUTH_XID = -4


@pytest.fixture
def connect(server, material):
    made = []

    def connect(client):
        made.append(SecureConn(server.secure_port, context(material, client)))
        return made[-1]

    yield connect
    for conn in made:
        conn.close()


def names(conn):
    return set(conn.who_am_i())


@pytest.mark.parametrize("client, subject", [("client", SUBJECT), ("old", OLD_SUBJECT)])
def test_the_subject_is_written_as_java_writes_it(connect, client, subject):
    assert names(connect(client)) == {("ip", "127.0.0.1"), ("x509", subject)}


def test_access_lists_name_subjects(server, connect):
    client, old = connect("client"), connect("old")
    for path, entry in [("/x509-named", (31, "x509", SUBJECT)), ("/x509-auth", (31, "auth", ""))]:
        client.create(path, b"x", acl=[entry])
        assert client.get_acl(path)[0] == [(31, "x509", SUBJECT)]
        with expect(ERR.NO_AUTH):
            old.get(path)
        with Conn(server.port) as plain, expect(ERR.NO_AUTH):
            plain.get(path)
        client.delete(path)


@pytest.mark.parametrize("subject", ["joe", "CN", "CN=a,", "NO=a", "CN=a<b"])
def test_ids_that_name_nobody_are_refused(connect, subject):
    with expect(ERR.INVALID_ACL):
        connect("client").create("/x509-nobody", acl=[(31, "x509", subject)])


def test_ids_may_be_of_the_plain_port_too(server):
    with Conn(server.port) as plain:
        plain.create("/x509-for-joe", acl=[(1, "x509", "CN=joe,O=Org\\, Inc"), (31, "world", "anyone")])
        plain.delete("/x509-for-joe")


def test_the_super_user_may_do_everything(connect):
    client, root = connect("client"), connect("self")
    assert ("x509", SELF_SUBJECT) in names(root) and any(scheme == "super" for scheme, _ in names(root))
    client.create("/x509-own", b"own", acl=[(31, "x509", SUBJECT)])
    assert root.get("/x509-own")[0] == b"own"
    root.delete("/x509-own")


def test_an_auth_packet_proves_it_again(connect, server):
    client = connect("client")
    assert client.call(AUTH, auth("x509", b""), xid=AUTH_XID).err == 0
    assert names(client) == {("ip", "127.0.0.1"), ("x509", SUBJECT)}
    plain = Conn(server.port)
    assert plain.call(AUTH, auth("x509", SUBJECT.encode()), xid=AUTH_XID).err == -115
    plain.expect_close()


def test_without_a_certificate_there_is_the_address_alone(start, material):
    server = start(ssl__clientAuth="want")
    with SecureConn(server.secure_port, context(material, None)) as conn:
        assert names(conn) == {("ip", "127.0.0.1")}


def test_certificates_may_be_demanded_of_all(start, material):
    server = start(enforce__auth__enabled="true", enforce__auth__schemes="x509", ssl__clientAuth="want")
    with SecureConn(server.secure_port, context(material)) as conn:
        conn.create("/x509-demanded")
    with SecureConn(server.secure_port, context(material, None)) as conn, expect(-124):
        conn.get("/x509-demanded")
