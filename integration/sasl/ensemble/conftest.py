"""Three members that know the same users."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.target import TARGET  # noqa: E402
from integration.sasl import servers  # noqa: E402


def pytest_report_header():
    return f"target {TARGET}"


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensemble")
    jaas = folder / "jaas.conf"
    jaas.write_text(servers.JAAS)
    jaas.chmod(0o600)
    cfg = {**servers.CFG, "java.security.auth.login.config": str(jaas), "reconfigEnabled": "true"}
    with Ensemble(folder, cfg=cfg) as ensemble:
        yield ensemble
