"""The server and the shells of these sessions.

QUENDA_PORT=<port> runs them against a server that is already there (on 127.0.0.1, holding nothing else); otherwise one
of TARGET's kind is started (see integration/lib/target.py).
"""

import os
import pathlib
import shutil
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.dont_write_bytecode = True

from integration.lib import zkwire  # noqa: E402
from integration.lib.shell import Shell  # noqa: E402
from integration.lib.target import TARGET, build_server  # noqa: E402

CONFIGURATION = {
    "extendedTypesEnabled": "true",
    "DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",  # super:test
}
# A client with a small heap and a quick start: these sessions are short.
CLIENT = {"JVMFLAGS": "-Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def pytest_report_header():
    return f"target {os.environ.get('QUENDA_PORT') or TARGET}"


@pytest.fixture(scope="session")
def port():
    if os.environ.get("QUENDA_PORT"):
        yield int(os.environ["QUENDA_PORT"])
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-zkcli-"))
    server = build_server(folder, CONFIGURATION)
    try:
        yield server.start().port
        assert server.alive(), server.log_tail()
    finally:
        server.kill9()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def root(port, request):
    path = "/" + request.node.name
    with zkwire.Conn(port) as conn:
        conn.create(path)
    yield path
    with zkwire.Conn(port) as conn:
        conn.auth("digest", b"super:test")
        conn.delete_all(path)


@pytest.fixture
def other(port):
    """Another client, to change what a shell watches."""
    with zkwire.Conn(port) as conn:
        yield conn


@pytest.fixture
def zkcli(port):
    shell = Shell(["/usr/share/zookeeper/bin/zkCli.sh", "-server", f"127.0.0.1:{port}"], CLIENT)
    try:
        shell.wait_for("state:SyncConnected")
        yield shell
    finally:
        shell.kill()


@pytest.fixture
def cli_mt(port):
    shell = Shell(["/usr/lib/zookeeper/bin/cli_mt", f"127.0.0.1:{port}"])
    try:
        shell.wait_for("Got a new session id")
        yield shell
    finally:
        shell.kill()
