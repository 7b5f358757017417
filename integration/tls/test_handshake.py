"""Who is let in, by which version, and what a connection over TLS can do."""

import ssl
import subprocess

import pytest

from integration.lib.process import four_letter_word
from integration.tls import servers
from integration.tls.servers import IS_QUENDA, context, is_let_in, word

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client", ["client", "old", "self", "leaf"])
def test_certificates_that_are_trusted(server, material, client, version):
    assert is_let_in(server.secure_port, context(material, client, version))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client", ["stranger", "expired", "by-leaf", "old-by-leaf", None])
def test_certificates_that_are_not(server, material, client, version):
    assert not is_let_in(server.secure_port, context(material, client, version))


@pytest.mark.parametrize("client_auth", ["want", "none"])
def test_clients_without_a_certificate(start, material, client_auth):
    server = start(ssl__clientAuth=client_auth)
    assert is_let_in(server.secure_port, context(material, None))
    assert is_let_in(server.secure_port, context(material, "client"))
    # Who is not asked shows nothing.
    assert is_let_in(server.secure_port, context(material, "stranger")) == (client_auth == "none")


@pytest.mark.parametrize("store", ["keystore.pem", "keystore-encrypted.pem", "keystore.p12", "keystore.jks"])
def test_key_stores(start, material, store):
    if store == "keystore-encrypted.pem" and not IS_QUENDA:
        pytest.skip("a genuine server on Java 17 does not read PBES2 in PEM")
    server = start(key_store=store)
    assert is_let_in(server.secure_port, context(material))


@pytest.mark.parametrize("store", ["truststore.p12", "truststore.jks"])
def test_trust_stores(start, material, store):
    server = start(trust_store=store)
    assert is_let_in(server.secure_port, context(material, "client"))
    assert is_let_in(server.secure_port, context(material, "self"))
    assert not is_let_in(server.secure_port, context(material, "stranger"))


def test_versions_and_suites_that_are_enabled(start, material):
    options = {"ssl__enabledProtocols": "TLSv1.2", "ssl__ciphersuites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
    server = start(**options)
    for version in VERSIONS:
        assert is_let_in(server.secure_port, context(material, version=version)) == (version == ssl.TLSVersion.TLSv1_2)
    with servers.connect(server.secure_port, context(material)) as sock:
        assert sock.cipher()[0] == "ECDHE-RSA-AES128-GCM-SHA256"


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_asks_a_word(server, material, version):
    command = ["openssl", "s_client", "-quiet", "-ign_eof", "-connect", f"127.0.0.1:{server.secure_port}", version,
               "-CAfile", material.path("ca.pem"), "-verify_return_error", "-verify_hostname", "localhost",
               "-cert", material.path("client.pem"), "-key", material.path("client.key")]
    done = subprocess.run(command, input=b"ruok\r\n", capture_output=True, timeout=60, check=False)
    assert done.stdout == b"imok", done.stderr


def test_words(server, material):
    it = context(material)
    conf = word(server.secure_port, it, "conf")
    assert f"secureClientPort={server.secure_port}\n" in conf and f"clientPort={server.port}\n" in conf
    assert word(server.secure_port, it, "srvr").startswith("Zookeeper version")
    assert word(server.secure_port, it, "nope") == ""
    with servers.SecureConn(server.secure_port, it) as conn:
        lines = word(server.secure_port, it, "cons")
        assert f"sid=0x{conn.session:x}" in lines


def test_metrics(start, material):
    server = start(X509AuthenticationProvider__superUser="CN=nobody")

    def metrics():
        lines = four_letter_word(server.port, "mntr").splitlines()
        return dict(line.split("\t", 1) for line in lines)

    before = metrics()
    assert not is_let_in(server.secure_port, context(material, None))
    servers.soon(lambda: int(metrics()["zk_unsuccessful_handshake"]) > int(before["zk_unsuccessful_handshake"]))
    after = metrics()
    assert int(after["zk_auth_failed_count"]) > int(before["zk_auth_failed_count"])
    assert after["zk_outstanding_tls_handshake"] == "0" and after["zk_tls_handshake_exceeded"] == "0"


def test_large_replies_and_pipelines(server, material):
    with servers.SecureConn(server.secure_port, context(material, "self")) as conn:
        data = bytes(range(256)) * 3500
        conn.create("/large", data)
        replies = conn.pipeline([(4, b"\0\0\0\x06/large\0")] * 40)
        assert all(reply.err == 0 and data in reply.body for reply in replies)
        conn.delete("/large")


def test_one_port_for_both(start, material):
    server = start(client__portUnification="true")
    assert four_letter_word(server.port, "ruok") == "imok"
    assert word(server.port, context(material), "ruok") == "imok"
    assert not is_let_in(server.port, context(material, "stranger"))
    assert word(server.secure_port, context(material), "ruok") == "imok"


@pytest.mark.skipif(not IS_QUENDA, reason="a genuine server has no such flags")
def test_the_port_may_be_given_by_flags(tmp_path, material):
    from integration.lib.process import free_port
    from integration.lib.quenda_server import QuendaServer

    port = free_port()
    stores = servers.cfg(material)
    args = ["--secure-client-port", str(port), "--secure-client-address", "127.0.0.1"]
    args += [f"-Dzookeeper.{key}={value}" for key, value in stores.items() if value is not None]
    with QuendaServer(tmp_path, args=args) as server:
        assert word(port, context(material), "ruok") == "imok"
        assert f"with TLS on 127.0.0.1:{port}" in server.log_path.read_text()
