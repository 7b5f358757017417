"""Clients as they are: kazoo with pure-sasl, ZooKeeper's Java client and shell with JAAS files."""

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import KeeperState
from kazoo.security import make_acl

from integration.lib.zkwire import Conn, eventually
from integration.sasl import java_client, servers, wire


def kazoo_options(user, password):
    return {"sasl_options": {"mechanism": "DIGEST-MD5", "username": user, "password": password}}


def legacy_options(user, password):
    return {"auth_data": [("sasl", f"{user}:{password}")]}


@pytest.fixture(params=[kazoo_options, legacy_options], ids=["options", "legacy"])
def options(request):
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("java")


def test_kazoo(server, options):
    client = KazooClient(server.hosts, **options("bob", "bobsecret"))
    client.start(timeout=60)
    try:
        client.create("/kazoo", b"x", acl=[make_acl("sasl", "bob", all=True)])
        assert client.get("/kazoo")[0] == b"x"
        with Conn(server.port) as other:
            assert ("sasl", "bob") not in wire.names(other)
            with pytest.raises(Exception, match="-102"):
                other.get("/kazoo")
    finally:
        client.delete("/kazoo")
        client.stop()
        client.close()


@pytest.mark.parametrize("user, password", [("bob", "wrong"), ("eve", "bobsecret")])
def test_kazoo_is_told_that_it_is_refused(server, options, user, password):
    states = []
    client = KazooClient(server.hosts, **options(user, password))
    client.add_listener(lambda _: states.append(client.client_state))
    client.start_async()
    eventually(lambda: KeeperState.AUTH_FAILED in states, seconds=60, what="refusal")
    client.stop()
    client.close()


def test_kazoo_authenticates_again_on_every_connection(tmp_path):
    with servers.server(tmp_path) as server:
        client = KazooClient(server.hosts, timeout=10, **kazoo_options("bob", "bobsecret"))
        client.start(timeout=60)
        try:
            client.create("/kazoo", b"x", acl=[make_acl("sasl", "bob", all=True)])
            session = client.client_id
            server.restart(hard=True)
            assert client.retry(client.get, "/kazoo")[0] == b"x"
            assert client.client_id == session
        finally:
            client.stop()
            client.close()


def test_javas_client(server, folder):
    bob = java_client.jaas_file(folder, "bob", "bobsecret")
    zoe = java_client.jaas_file(folder, "a b", "x y")
    said = java_client.client(folder, bob, server, "create", "/java", "hello")
    assert said[0] == "SaslAuthenticated"
    assert sorted(said[1:]) == ["31 sasl:bob", "am ip:127.0.0.1", "am sasl:bob", "done"]
    assert java_client.client(folder, bob, server, "read", "/java") == ["SaslAuthenticated", "hello", "done"]
    assert java_client.client(folder, zoe, server, "read", "/java") == ["SaslAuthenticated", "NOAUTH"]
    assert java_client.client(folder, bob, server, "delete", "/java")[-1] == "done"


def test_javas_client_is_told_that_it_is_refused(server, folder):
    for user, password in (("bob", "wrong"), ("eve", "bobsecret")):
        jaas = java_client.jaas_file(folder, user, password)
        said = java_client.client(folder, jaas, server, "read", "/zookeeper")
        assert said == ["AuthFailed", "AUTHFAILED"]


def test_zkcli(server, folder):
    bob = java_client.jaas_file(folder, "bob", "bobsecret")
    said = java_client.shell(bob, server, "create /cli x sasl:bob:cdrwa\ngetAcl /cli\nget /cli\nwhoami\n")
    for expected in ("SaslAuthenticated", "Created /cli", "'sasl,'bob\n: cdrwa", "sasl: bob"):
        assert expected in said, said
    assert "Insufficient permission : /cli" in java_client.shell(None, server, "get /cli\n")
    said = java_client.shell(None, server, "addauth digest super:test\nget /cli\ndelete /cli\n")
    assert "Insufficient" not in said and "\nx\n" in said, said


def test_zkcli_of_a_server_that_demands_sasl(start, folder):
    server = start(sessionRequireClientSASLAuth="true")
    bob = java_client.jaas_file(folder, "bob", "bobsecret")
    assert "[zookeeper]" in java_client.shell(bob, server, "ls /\n")
    said = java_client.shell(None, server, "ls /\n")
    assert "SessionClosedRequireAuth" in said or "Session closed because client failed to authenticate" in said, said
