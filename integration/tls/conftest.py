"""Servers of TARGET's kind with TLS, and the material for it."""

import contextlib
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.target import TARGET, build_server  # noqa: E402
from integration.tls import servers  # noqa: E402
from integration.tls.material import Material  # noqa: E402


def pytest_report_header():
    return f"target {TARGET}"


@pytest.fixture(scope="session")
def material(tmp_path_factory):
    return Material(tmp_path_factory.mktemp("material"))


@pytest.fixture(scope="session")
def start(tmp_path_factory, material):
    """`start(key_store=…, key=value, …)` gives a server that serves; equal ones are started once."""
    with contextlib.ExitStack() as stack:
        running = {}

        def start(**options):
            asked = tuple(sorted(options.items()))
            if asked not in running:
                server = servers.start(tmp_path_factory.mktemp("server"), servers.cfg(material, **options))
                stack.callback(server.kill9)
                running[asked] = server
            return running[asked]

        yield start
        for server in running.values():
            assert server.alive(), server.log_tail()


@pytest.fixture(scope="session")
def server(start):
    return start(X509AuthenticationProvider__superUser="CN=self")


@pytest.fixture
def refused(tmp_path, material):
    """`refused(key=value, …)` gives what a server says that must not start."""

    def refused(**options):
        cfg = {"secureClientPort": "0", **servers.cfg(material, **options)}
        server = build_server(tmp_path, cfg, port=0)
        tmp_path.mkdir(exist_ok=True)
        server.spawn()
        try:
            status = server.process.wait(60)
        except subprocess.TimeoutExpired:
            raise AssertionError("it started") from None
        finally:
            server.kill9()
        assert status == 2, server.log_tail()
        return server.log_tail()

    return refused
