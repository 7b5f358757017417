"""Servers with users, of TARGET's kind."""

import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.target import TARGET  # noqa: E402
from integration.lib.zkwire import Conn  # noqa: E402
from integration.sasl import servers  # noqa: E402


def pytest_report_header():
    return f"target {TARGET}"


@pytest.fixture(scope="session")
def start(tmp_path_factory):
    """`start(jaas, key=value, …)` gives a server that serves; equal ones are started once."""
    with contextlib.ExitStack() as stack:
        running = {}

        def start(jaas=servers.JAAS, **cfg):
            cfg = {name.replace("__", "."): value for name, value in cfg.items()}
            asked = (jaas, tuple(sorted(cfg.items())))
            if asked not in running:
                folder = tmp_path_factory.mktemp("server")
                running[asked] = stack.enter_context(servers.server(folder, jaas, cfg))
            return running[asked]

        yield start
        for server in running.values():
            assert server.alive(), server.log_tail()


@pytest.fixture(scope="session")
def server(start):
    return start()


@pytest.fixture
def conn(server):
    with Conn(server.port) as conn:
        yield conn


@pytest.fixture
def refused(tmp_path):
    """`refused(key=value, …)` gives what a server says that must not start."""

    def refused(jaas=servers.JAAS, **cfg):
        cfg = {name.replace("__", "."): value for name, value in cfg.items()}
        server = servers.prepared(tmp_path, jaas, cfg)
        server.port = 0
        server.spawn()
        try:
            status = server.process.wait(60)
        finally:
            server.kill9()
        assert status != 0, server.log_tail()
        return server.log_tail()

    return refused
