"""Three members with TLS."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import free_port  # noqa: E402
from integration.lib.target import TARGET  # noqa: E402
from integration.tls import servers  # noqa: E402
from integration.tls.material import Material  # noqa: E402


def pytest_report_header():
    return f"target {TARGET}"


@pytest.fixture(scope="session")
def material(tmp_path_factory):
    return Material(tmp_path_factory.mktemp("material"))


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory, material):
    ports = {number: free_port() for number in (1, 2, 3)}
    own = {number: {"secureClientPort": str(port)} for number, port in ports.items()}
    cfg = servers.cfg(material)
    with Ensemble(tmp_path_factory.mktemp("ensemble"), cfg=cfg, member_cfg=own) as ensemble:
        for member in ensemble:
            member.secure_port = ports[member.number]
        yield ensemble
