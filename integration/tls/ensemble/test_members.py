"""A certificate proves the same to every member."""

from kazoo.client import KazooClient

from integration.lib.zkwire import ERR, expect
from integration.tls.material import SUBJECT
from integration.tls.servers import SecureConn, context


def test_what_one_member_stores_holds_at_all(ensemble, material):
    for writer in ensemble:
        path = f"/member-{writer.number}"
        with SecureConn(writer.secure_port, context(material)) as conn:
            conn.create(path, b"x", acl=[(31, "auth", "")])
        for reader in ensemble:
            with SecureConn(reader.secure_port, context(material)) as conn:
                conn.sync("/")
                assert conn.get(path)[0] == b"x"
                assert conn.get_acl(path)[0] == [(31, "x509", SUBJECT)]
            with SecureConn(reader.secure_port, context(material, "old")) as conn:
                conn.sync("/")
                with expect(ERR.NO_AUTH):
                    conn.get(path)


def test_a_session_moves_over_tls_when_its_leader_is_killed(ensemble, material):
    hosts = ",".join(f"localhost:{member.secure_port}" for member in ensemble)
    client = KazooClient(hosts, timeout=20, use_ssl=True, ca=material.path("ca.pem"), certfile=material.path("client.pem"),
                         keyfile=material.path("client.key"), randomize_hosts=False)
    client.start(timeout=30)
    try:
        session = client.client_id
        client.create("/moving", b"1", ephemeral=True)
        leader = ensemble.leader()
        leader.kill9()
        client.retry(client.set, "/moving", b"2")
        assert client.retry(client.get, "/moving")[0] == b"2"
        assert client.client_id == session
        leader.start()
    finally:
        client.stop()
        client.close()
