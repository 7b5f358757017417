"""Identities are a connection's, rights are the ensemble's."""

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from integration.lib.zkwire import ERR, expect
from integration.sasl import java_client, wire
from integration.sasl.digest_md5 import answer


def others(ensemble, member):
    return [other for other in ensemble if other is not member]


def test_what_one_member_stores_holds_at_all(ensemble):
    for writer in ensemble:
        path = f"/member-{writer.number}"
        with writer.connect() as bob:
            wire.log_in(bob, "bob", "bobsecret")
            bob.create(path, b"x", acl=[(31, "auth", "")])
            for reader in others(ensemble, writer):
                with reader.connect_soon(last_zxid=bob.last_zxid) as conn:
                    with expect(ERR.NO_AUTH):
                        conn.get(path)
                    wire.log_in(conn, "bob", "bobsecret")
                    assert conn.get(path)[0] == b"x"
                    assert conn.get_acl(path)[0] == [(31, "sasl", "bob")]
            bob.delete(path)


def test_a_session_that_moves_has_to_prove_its_user_again(ensemble):
    first, second = list(ensemble)[:2]
    with first.connect() as bob:
        wire.log_in(bob, "bob", "bobsecret")
        bob.create("/moving", acl=[(31, "sasl", "bob")])
        bob.create("/moving/own", flags=1, acl=[(31, "sasl", "bob")])
        with second.connect_soon(session=bob.session, passwd=bob.passwd, last_zxid=bob.last_zxid) as moved:
            assert moved.session == bob.session
            assert {scheme for scheme, _ in wire.names(moved)} == {"ip"}
            with expect(ERR.NO_AUTH):
                moved.get("/moving/own")
            wire.log_in(moved, "bob", "bobsecret")
            assert moved.get("/moving/own")[1].ephemeral_owner == bob.session
            moved.delete("/moving/own")
            moved.delete("/moving")


def test_a_challenge_is_for_its_member(ensemble):
    first, second = list(ensemble)[:2]
    with first.connect() as one, second.connect() as other:
        given = wire.challenge(one)
        wire.challenge(other)
        wire.assert_refused(other, answer(given, "bob", "bobsecret"))


def test_a_super_user_may_change_the_members(ensemble):
    leader = ensemble.wait_leader()
    gone = others(ensemble, leader)[0]
    line = f"server.{gone.number}={gone.line()}"
    with leader.connect() as conn:
        with expect(ERR.NO_AUTH):
            conn.reconfig(leaving=str(gone.number))
        wire.log_in(conn, "ann", "ann's \\secret")
        text, _ = conn.reconfig(joining=line)
        assert line.split(";")[0] in text


@pytest.mark.parametrize("hard", [True, False])
def test_kazoo_goes_on_while_the_leader_is_lost(ensemble, hard):
    options = {"mechanism": "DIGEST-MD5", "username": "bob", "password": "bobsecret"}
    client = KazooClient(ensemble.hosts, timeout=20, sasl_options=options)
    client.start(timeout=60)
    try:
        client.create("/lost", b"x", acl=[make_acl("sasl", "bob", all=True)])
        session = client.client_id
        leader = ensemble.wait_leader()
        if hard:
            leader.kill9()
        else:
            leader.stop()
        assert client.retry(client.get, "/lost")[0] == b"x"
        client.retry(client.set, "/lost", b"y")
        assert client.client_id == session
        leader.start()
        ensemble.wait_serving()
        client.retry(client.delete, "/lost")
    finally:
        client.stop()
        client.close()


def test_javas_client(ensemble, tmp_path):
    bob = java_client.jaas_file(tmp_path, "bob", "bobsecret")
    said = java_client.client(tmp_path, bob, ensemble, "create", "/java", "hello")
    assert (said[0], said[-1]) == ("SaslAuthenticated", "done")
    assert java_client.client(tmp_path, bob, ensemble, "read", "/java")[1] == "hello"
    assert java_client.client(tmp_path, bob, ensemble, "delete", "/java")[-1] == "done"
