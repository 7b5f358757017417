"""The files: complaints at the start, and what becomes of changes."""

import os
import ssl

import pytest

from integration.tls import servers
from integration.tls.servers import IS_QUENDA, context, is_let_in

only_quenda = pytest.mark.skipif(not IS_QUENDA, reason="a genuine server starts, and fails with every client")


@only_quenda
@pytest.mark.parametrize("options, said", [
    ({"key_store": "missing.pem"}, "missing.pem: cannot be read"),
    ({"key_store": "keystore.p12", "ssl__keyStore__password": "wrong"}, "the password does not open it"),
    ({"key_store": "keystore.jks", "ssl__keyStore__password": "wrong"}, "the password does not open it"),
    ({"key_store": "keystore-encrypted.pem", "ssl__keyStore__password": "wrong"}, "the password does not open it"),
    ({"trust_store": "truststore.jks", "ssl__trustStore__password": "wrong"}, "ssl.trustStore.password"),
    ({"key_store": "mismatch.pem"}, "does not belong to its first certificate"),
    ({"key_store": "expired-keystore.pem"}, "expired on 2020-02-01"),
    ({"key_store": "ca.pem"}, "has no private key"),
    ({"trust_store": "keystore.p12"}, "keytool -importcert"),
    ({"ssl__crl": "true"}, "ssl.crl=true is not supported"),
    ({"ssl__ciphersuites": "TLS_RSA_WITH_AES_128_CBC_SHA"}, "there are TLS_AES_"),
], ids=lambda value: None if isinstance(value, dict) else value)
def test_complaints(refused, options, said):
    log = refused(**options)
    assert said in log and log.rstrip().endswith("Invalid config, exiting abnormally"), log


def replace(material, name, *parts):
    material.write(name + ".new", *parts)
    os.replace(material.path(name + ".new"), material.path(name))


def serial(server, material, client):
    with servers.connect(server.secure_port, context(material, client)) as sock:
        return sock.getpeercert()["serialNumber"]


def test_changed_files_are_read_again(start, material):
    material.write("own-key.pem", "keystore.pem")
    material.write("own-trust.pem", "ca.pem", "self.pem")
    server = start(key_store="own-key.pem", trust_store="own-trust.pem")
    first = serial(server, material, "self")
    with servers.SecureConn(server.secure_port, context(material, "self")) as conn:
        replace(material, "own-key.pem", "other-keystore.pem")
        servers.soon(lambda: serial(server, material, "client") != first)
        replace(material, "own-trust.pem", "ca.pem")
        servers.soon(lambda: not is_let_in(server.secure_port, context(material, "self")))
        # Who was in stays in.
        conn.exists("/")
    if IS_QUENDA:
        second = serial(server, material, "client")
        replace(material, "own-key.pem", "mismatch.pem")
        servers.soon(lambda: "does not belong to its first certificate" in server.log_tail())
        assert serial(server, material, "client") == second
        replace(material, "own-key.pem", "keystore.pem")
        servers.soon(lambda: serial(server, material, "client") == first)


def test_clients_may_have_to_name_their_address(start, material):
    """A genuine server asks for it only without FIPS mode."""
    server = start(**{"ssl__clientHostnameVerification": "true", "fips-mode": "false"})
    assert not is_let_in(server.secure_port, context(material, "client"))
    # The server's own names the address; it may be a client's as well.
    assert is_let_in(server.secure_port, context(material, "server"))


def test_the_minimum_of_both_sides_is_not_undercut(server, material):
    it = context(material)
    it.minimum_version = ssl.TLSVersion.TLSv1_1
    it.maximum_version = ssl.TLSVersion.TLSv1_1
    assert not is_let_in(server.secure_port, it)
