"""The command line as a client: over TLS, with logins, and what it says where that fails."""

import contextlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from integration.lib.certificates import Authority, server_tls  # noqa: E402
from integration.lib.process import free_port  # noqa: E402
from integration.lib.quenda_server import QuendaServer, quenda_binary  # noqa: E402


def quenda(*words, **options):
    options = {"timeout": 60, "capture_output": True, "text": True, **options}
    return subprocess.run([str(quenda_binary()), *map(str, words)], check=False, **options)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(tmp_path_factory, authority):
    """A port for plain clients and one for TLS, which demands certificates."""
    port = free_port()
    cfg = {**server_tls(authority), "client.portUnification": None, "secureClientPort": str(port)}
    with QuendaServer(tmp_path_factory.mktemp("server"), cfg) as server:
        server.secure = f"127.0.0.1:{port}"
        yield server
        assert server.alive(), server.log_tail()


@pytest.fixture(scope="module")
def files(authority):
    return ["--ca", authority.certificate, "--cert", authority.issue("operator")]


def test_status_over_tls(server, files):
    answer = quenda("status", "--servers", server.secure, "--json", *files)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads(answer.stdout)
    assert report["health"] == "healthy"
    assert report["members"][0]["address"] == server.secure


def test_bench_over_tls(server, files):
    answer = quenda("bench", "mixed", "--hosts", server.secure, "--requests", 2000, "--size", 20000, "--znodes", 10,
                    "--connections", 2, "--json", *files)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads(answer.stdout)
    assert report["operations"] == 2000 and not report["errors"], report


def test_zkclis_properties_file_serves(server, authority, tmp_path):
    properties = tmp_path / "client.properties"
    properties.write_text(
        "zookeeper.client.secure=true\n"
        "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n"
        f"zookeeper.ssl.keyStore.location={authority.issue('app')}\n"
        f"zookeeper.ssl.trustStore.location={authority.certificate}\n"
    )
    answer = quenda("status", "--servers", server.secure, "--client-configuration", properties)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_each_failure_says_what_to_do(server, authority, files, tmp_path):
    def says(*words):
        answer = quenda("status", "--servers", *words)
        assert answer.returncode == 3
        return answer.stdout + answer.stderr

    stranger = Authority(tmp_path / "stranger")
    plain = server.hosts
    assert "(--tls)" in says(server.secure)
    assert "may not speak TLS" in says(plain, *files)
    assert "client certificate" in says(server.secure, "--ca", authority.certificate)
    assert "client certificate" in says(server.secure, "--ca", authority.certificate, "--cert", stranger.issue("nobody"))
    assert "none of the trusted certificates" in says(server.secure, "--ca", stranger.certificate, *files[2:])
    assert "/nowhere/ca.pem" in says(server.secure, "--ca", "/nowhere/ca.pem")


def test_bench_names_the_wrong_port_too(server, files):
    answer = quenda("bench", "get", "--hosts", server.secure, "--requests", 1)
    assert answer.returncode == 1 and "--tls" in answer.stderr, answer.stderr
    answer = quenda("bench", "get", "--hosts", server.hosts, "--requests", 1, *files)
    assert answer.returncode == 1 and "may not speak TLS" in answer.stderr, answer.stderr


def test_host_names_are_checked(authority, files):
    """A server whose certificate is good for 127.0.0.1, at another address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("elsewhere"))

    def serve(listener):
        for _ in range(2):
            with contextlib.suppress(OSError):
                with context.wrap_socket(listener.accept()[0], server_side=True) as sock:
                    sock.recv(4)
                    sock.sendall(b"no status")

    with socket.create_server(("127.0.0.2", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        address = f"127.0.0.2:{listener.getsockname()[1]}"
        refused = quenda("status", "--servers", address, *files).stdout
        taken = quenda("status", "--servers", address, *files, "--no-hostname-check").stdout
        thread.join()
    assert "does not name this host" in refused, refused
    assert "answers what is no status" in taken, taken


def test_insecure_takes_every_server(server, authority):
    words = ["--servers", server.secure, "--insecure", "--cert", authority.issue("careless")]
    assert quenda("status", *words).returncode == 0


def shell(server, *words, **options):
    address = server if isinstance(server, str) else server.hosts
    return quenda("shell", "--server", address, "-q", *words, **options)


def test_the_shell_over_tls_is_who_its_certificate_names(server, files):
    answer = shell(server.secure, *files, "whoami")
    assert answer.returncode == 0, answer.stderr
    assert "x509: CN=operator" in answer.stdout


def test_the_shell_takes_what_scripts_give_javas_client(server, authority):
    flags = ["-Xmx64m", "-Dzookeeper.client.secure=true", f"-Dzookeeper.ssl.keyStore.location={authority.issue('script')}",
             "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
             f"-Dzookeeper.ssl.trustStore.location={authority.certificate}"]
    answer = shell(server.secure, "--zkcli", "whoami", env={**os.environ, "CLIENT_JVMFLAGS": " ".join(flags)})
    assert answer.returncode == 0, answer.stderr
    assert "x509: CN=script" in answer.stdout


def test_identities_are_proved_before_the_first_request(server, tmp_path):
    identities = tmp_path / "identities"
    identities.write_text("# two of them\ndigest:ann:y\n")
    answer = shell(server, "--auth", "digest:bob:x", "--auth-file", identities, "whoami")
    assert answer.returncode == 0, answer.stderr
    assert "digest: bob" in answer.stdout and "digest: ann" in answer.stdout
    answer = shell(server, "--auth", "nonsense:x", "ls", "/")
    assert answer.returncode == 1, answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def demanding(tmp_path_factory):
    """A server that serves nobody who has not logged in by SASL."""
    folder = tmp_path_factory.mktemp("demanding")
    users = folder / "users"
    users.write_text("bob: bob's secret, \\ and \"all\"\n")
    users.chmod(0o600)
    cfg = {"quenda.saslUsers": str(users), "sessionRequireClientSASLAuth": "true"}
    with QuendaServer(folder / "server", cfg) as server:
        yield server
        assert server.alive(), server.log_tail()


def test_logins_by_sasl(demanding, server, tmp_path):
    password = tmp_path / "password"
    password.write_text("bob's secret, \\ and \"all\"\n")
    login = ["--sasl-user", "bob", "--sasl-password-file", password]
    answer = shell(demanding, *login, "whoami")
    assert answer.returncode == 0, answer.stderr
    assert "sasl: bob" in answer.stdout
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(
        "Client {\n"
        "    org.apache.zookeeper.server.auth.DigestLoginModule required\n"
        '    username="bob" password="bob\'s secret, \\\\ and \\"all\\"";\n'
        "};\n"
    )
    answer = shell(demanding, "--jaas", jaas, "whoami")
    assert answer.returncode == 0, answer.stderr
    assert "sasl: bob" in answer.stdout

    flags = f"-Xmx64m -Djava.security.auth.login.config={jaas}"
    answer = shell(demanding, "--zkcli", "whoami", env={**os.environ, "CLIENT_JVMFLAGS": flags})
    assert "sasl: bob" in answer.stdout, answer.stderr
    answer = shell(demanding, "--jaas", tmp_path / "password", "whoami")
    assert answer.returncode != 0 and "password" in answer.stderr

    def refusal(server, *words):
        answer = shell(server, *words, "ls", "/")
        assert answer.returncode == 1, answer.stdout + answer.stderr
        return answer.stderr

    password.write_text("another")
    assert "user or password are wrong" in refusal(demanding, *login)
    assert "takes no logins by SASL" in refusal(server, *login)
    assert "prove who they are" in refusal(demanding)
