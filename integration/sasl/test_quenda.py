"""What Quenda does beyond ZooKeeper: a plain file of users, files read again, nothing said of passwords."""

import pathlib

import pytest

from integration.lib.target import IS_QUENDA
from integration.lib.zkwire import ERR, Conn, ZkError, eventually, four_letter
from integration.sasl import servers, wire
from integration.sasl.digest_md5 import answer

pytestmark = pytest.mark.skipif(not IS_QUENDA, reason="ZooKeeper has no such thing")


def knows(port, user, password):
    with Conn(port) as conn:
        reply = wire.token(conn, answer(wire.challenge(conn), user, password))
        assert reply.err in (0, wire.AUTH_FAILED, wire.REQUIRED)
        return reply.err == 0


def plain(folder, text, **cfg):
    folder.mkdir(exist_ok=True)
    path = folder / "users"
    path.write_text(text)
    path.chmod(0o600)
    return path, servers.prepared(folder, None, {"authProvider.1": None, "quenda.saslUsers": str(path), **cfg})


def test_a_plain_file_is_enough(tmp_path):
    _, server = plain(tmp_path, "# users\nbob: bobsecret\nann:a:b\n", sessionRequireClientSASLAuth="true")
    with server:
        assert knows(server.port, "ann", "a:b") and not knows(server.port, "ann", "a")
        with Conn(server.port) as conn:
            wire.log_in(conn, "bob", "bobsecret")
            conn.create("/mine", acl=[(31, "sasl", "bob")])
            assert conn.get_acl("/mine")[0] == [(31, "sasl", "bob")]


@pytest.mark.parametrize("kind", ["plain", "jaas"])
def test_a_changed_file_counts_for_whoever_comes(tmp_path, kind):
    if kind == "plain":
        path, server = plain(tmp_path, "bob: one\n")
        texts = ["bob: two\neve: three\n", "bob\n", "eve: three\n"]
    else:
        server = servers.prepared(tmp_path, servers.jaas({"bob": "one"}), {})
        path = tmp_path / "jaas.conf"
        texts = [servers.jaas({"bob": "two", "eve": "three"}), "Server {", servers.jaas({"eve": "three"})]
    with server:
        with Conn(server.port) as conn:
            wire.log_in(conn, "bob", "one")
            path.write_text(texts[0])
            eventually(lambda: knows(server.port, "bob", "two"), what="the new password")
            assert knows(server.port, "eve", "three") and not knows(server.port, "bob", "one")
            assert ("sasl", "bob") in wire.names(conn), "who is in stays in"
        path.write_text(texts[1])
        eventually(lambda: "stay as they were" in server.log_tail(), what="a complaint")
        assert "line 1" in server.log_tail() and knows(server.port, "bob", "two")
        path.write_text(texts[2])
        eventually(lambda: not knows(server.port, "bob", "two"), what="bob is gone")
        assert knows(server.port, "eve", "three")


def test_a_file_is_replaced_as_mounted_secrets_are(tmp_path):
    path, server = plain(tmp_path, "bob: one\n")
    for number, name in enumerate(("one", "two")):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "users").write_text(f"bob: {name}\n")
    link = tmp_path / "current"
    link.symlink_to("0")
    path.unlink()
    path.symlink_to("current/users")
    with server:
        assert knows(server.port, "bob", "one")
        (tmp_path / "next").symlink_to("1")
        (tmp_path / "next").rename(link)
        eventually(lambda: knows(server.port, "bob", "two"), what="the new password")


def test_nothing_is_said_of_passwords(tmp_path):
    words = "conf cons dump envi mntr ruok srvr stat wchs qsta".split()
    users = {"bob": "verysecretone", "super": "verysecrettwo"}
    cfg = {"SASLAuthenticationProvider.superPassword": "verysecretthree",
           "DigestAuthenticationProvider.superDigest": "super:verysecretfour"}
    server = servers.prepared(tmp_path, servers.jaas(users), cfg)
    server.args += ["--log", "trace"]
    with server:
        with Conn(server.port) as conn:
            wire.log_in(conn, "super", "verysecretthree")
            conn.auth("digest", b"super:verysecretfive")
            with Conn(server.port) as other:
                wire.assert_refused(other, answer(wire.challenge(other), "bob", "verysecretsix"))
            said = "".join(four_letter(server.port, word) for word in words)
        (tmp_path / "jaas.conf").write_text(servers.jaas({"bob": "verysecretseven"}))
        eventually(lambda: knows(server.port, "bob", "verysecretseven"), what="the new password")
        (tmp_path / "jaas.conf").write_text('Server { x required user_bob "verysecreteight"; };')
        eventually(lambda: "stay as they were" in server.log_tail(), what="a complaint")
        status = pathlib.Path(f"/proc/{server.pid}/cmdline").read_bytes().decode()
        assert "verysecret" not in said + server.log_path.read_text() + status
        assert "authentication by SASL failed" in server.log_path.read_text(), "but who was cut off is"


def test_a_password_on_the_command_line_is_warned_of(tmp_path):
    server = servers.prepared(tmp_path, servers.JAAS, {})
    server.args = ["-D", "zookeeper.SASLAuthenticationProvider.superPassword=shown"]
    with server:
        assert knows(server.port, "super", "shown")
        assert "every user of this machine can read what stands on a command line" in server.log_path.read_text()


def test_flags_and_javas_own(tmp_path):
    jaas = tmp_path / "elsewhere.conf"
    jaas.write_text(servers.jaas({"bob": "x"}, "Other"))
    server = servers.prepared(tmp_path, None, {"authProvider.1": None, "sasl.serverconfig": "Other"})
    server.args = ["--jaas", str(jaas)]
    with server:
        assert knows(server.port, "bob", "x")
    server.args = []
    server.env = {"JVMFLAGS": f"-Xmx1g -Djava.security.auth.login.config=file:{jaas}"}
    server.start()
    try:
        assert knows(server.port, "bob", "x")
        with Conn(server.port) as conn, pytest.raises(ZkError) as refused:
            conn.create("/no", acl=[(31, "x509", "CN=a")])
        assert refused.value.code == ERR.INVALID_ACL
    finally:
        server.kill9()


@pytest.mark.parametrize("text, said", [
    ("Server {\n com.sun.security.auth.module.Krb5LoginModule required;\n};", "line 2: the login module"),
    ('Server {\n m required\n user_bob "x";\n};', "line 3: wanted =, found a text in quotes"),
    (servers.jaas({"a@b@c": "x"}), "is no name of a user"),
])
def test_what_is_wrong_with_a_file_is_said(refused, text, said):
    assert said in refused(jaas=text)
