"""Servers and connections for the field-report tests.

TARGET=quenda (default), genuine (ZooKeeper 3.9.5) or debian (Debian's 3.8.0) chooses the server; the other two are for
checking the tests themselves. QUENDA_LONG=1 runs the full counts of the reports instead of the reduced ones.
"""

import os
import pathlib
import random
import resource
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib import zkwire  # noqa: E402
from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.network import Namespaces  # noqa: E402
from integration.lib.target import TARGET, build_server  # noqa: E402

LONG = os.environ.get("QUENDA_LONG", "") not in ("", "0")
SEED = int(os.environ.get("QUENDA_SEED", random.SystemRandom().randrange(1 << 31)))
# super:test
SUPER_DIGEST = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
BASE = {
    "tickTime": "500",
    "minSessionTimeout": "1000",
    "maxSessionTimeout": "60000",
    "extendedTypesEnabled": "true",
    "DigestAuthenticationProvider.superDigest": SUPER_DIGEST,
    "znode.container.checkIntervalMs": "500",
    "znode.container.maxNeverUsedIntervalMs": "4000",
    # The shared server is hammered with more pipelined requests than Java's default of 1000 lets through at once.
    "globalOutstandingLimit": "10000",
}


def pytest_report_header():
    return f"target {TARGET}, seed {SEED} (QUENDA_SEED), {'full' if LONG else 'reduced'} counts (QUENDA_LONG)"


def pytest_collection_modifyitems(items):
    for item in items:
        if TARGET != "quenda":
            if only := item.get_closest_marker("quenda_only"):
                item.add_marker(pytest.mark.skip(reason=only.args[0]))
            if wrong := item.get_closest_marker("java_wrong"):
                run = wrong.kwargs.get("run", True)
                item.add_marker(pytest.mark.xfail(reason=wrong.args[0], run=run, strict=False))


@pytest.fixture(scope="session", autouse=True)
def many_files():
    """Thousands of sockets on both sides."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.fixture(scope="session")
def long():
    return LONG


@pytest.fixture
def rng(request):
    return random.Random(f"{SEED}/{request.node.name}")


@pytest.fixture(scope="session")
def shared_server():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-field-"))
    server = build_server(folder, BASE)
    try:
        yield server.start()
    finally:
        server.kill9()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def server(shared_server):
    """The server that tests share. One that a test has brought down is started again, and that test fails."""
    if not shared_server.alive():
        shared_server.start()
    yield shared_server
    assert shared_server.alive(), f"the server died: {shared_server.log_tail()}"


@pytest.fixture
def own_server():
    """own_server(key=value, …) starts a server of this test's own; `folder` and `start` are not keys."""
    servers, folders = [], []

    def make(overrides=None, folder=None, start=True):
        if folder is None:
            folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-field-"))
            folders.append(folder)
        server = build_server(folder, {**BASE, **(overrides or {})})
        servers.append(server)
        return server.start() if start else server

    yield make
    for server in servers:
        server.kill9()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def own_ensemble(request):
    """own_ensemble(cuttable=False, start=True, …) is a three-member ensemble of this test's own; `cuttable` puts each
    member into a network namespace. Members that a failed test leaves say what they logged."""
    made, folders = [], []

    def make(cfg=None, members=3, cuttable=False, start=True, **options):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-field-"))
        folders.append(folder)
        network = Namespaces() if cuttable else None
        ensemble = Ensemble(folder, members, network, cfg={**BASE, **(cfg or {})}, **options)
        made.append(ensemble)
        return ensemble.start() if start else ensemble

    yield make
    failed = getattr(request.node, "call_failed", False)
    for ensemble in made:
        if failed:
            print(ensemble.log_tails())
        ensemble.close()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.call_failed = outcome.get_result().failed


@pytest.fixture
def connect(server):
    """connect(**options) is a Conn to the shared server, closed behind the test."""
    opened = []

    def make(**options):
        conn = zkwire.Conn(server.port, **options)
        opened.append(conn)
        return conn

    yield make
    for conn in opened:
        conn.close()


@pytest.fixture
def c(connect):
    return connect()


@pytest.fixture
def root(server, request):
    """A node of this test's own; it and all below it are deleted behind the test."""
    path = "/" + request.node.name.replace("[", "_").replace("]", "").replace("/", "_")
    with zkwire.Conn(server.port) as conn:
        conn.create(path)
    yield path
    if server.alive():
        with zkwire.Conn(server.port) as conn:
            conn.auth("digest", b"super:test")
            conn.delete_all(path)
