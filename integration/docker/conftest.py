"""The image under test, and containers and volumes that are gone when their test is over."""

import os
import pathlib
import secrets
import sys

import pytest
from kazoo.client import KazooClient

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]
sys.dont_write_bytecode = True

from container import FAST_HEALTH, Container, docker  # noqa: E402

from integration.lib.process import free_port  # noqa: E402

IMAGE = os.environ.get("QUENDA_IMAGE", "quenda")


@pytest.fixture(scope="session")
def image():
    return IMAGE


@pytest.fixture
def run(image):
    """run(*options, command=(), port=None): a container in the background; a port is published on 127.0.0.1."""
    names = []

    def run(*options, command=(), port=None):
        name = f"quenda-test-{secrets.token_hex(4)}"
        names.append(name)
        publish = ("--publish", f"127.0.0.1:{port}:2181") if port else ("--network", "none")
        docker("run", "--detach", "--name", name, *FAST_HEALTH, *publish, *options, image, *command)
        return Container(name)

    yield run
    for name in names:
        docker("rm", "--force", "--volumes", name, check=False)


def empty_volume():
    name = f"quenda-test-{secrets.token_hex(4)}"
    docker("volume", "create", name)
    yield name
    docker("volume", "rm", "--force", name, check=False)


# Volumes go after the containers that use them: a test names `run` first.
volume = pytest.fixture(empty_volume, name="volume")
log_volume = pytest.fixture(empty_volume, name="log_volume")


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def client():
    """client(*ports): a started kazoo client of those ports, tried in random order."""
    clients = []

    def client(*ports):
        made = KazooClient(",".join(f"127.0.0.1:{port}" for port in ports), timeout=10.0)
        clients.append(made)
        made.start(timeout=30)
        return made

    yield client
    for made in clients:
        made.stop()
        made.close()
