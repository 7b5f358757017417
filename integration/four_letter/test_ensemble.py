"""Answers of the members of an ensemble against the goldens of a genuine one (`capture_ensemble.py`)."""

import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.four_letter import capture, capture_ensemble  # noqa: E402
from integration.lib.process import four_letter_word  # noqa: E402
from integration.lib.target import IS_QUENDA  # noqa: E402
from integration.lib.zkwire import eventually  # noqa: E402

GOLDENS = capture.DEFAULT_FOLDER / "ensemble"
# Compared apart: in dump sessions share a set if they expire in the same second. Our own founding is a proposal already.
APART = {"leader_dump", "leader_srvr_fresh"}
NAMES = sorted(path.stem for path in GOLDENS.glob("*.txt") if path.stem not in APART)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return capture_ensemble.capture_all(tmp_path_factory.mktemp("ensembles"))


def golden(name):
    return (GOLDENS / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_answer_equals_the_genuine_one(answers, name):
    assert capture.as_slow_as(golden(name), answers[name]) == golden(name)


def test_a_leader_dumps_sessions_by_expiry(answers):
    sessions, ephemerals = answers["leader_dump"].split("ephemeral nodes dump:\n")
    assert ephemerals == golden("leader_dump").split("ephemeral nodes dump:\n")[1]
    assert sorted(line for line in sessions.splitlines() if line.startswith("\t")) == [
        "\t0x100000000000001",
        "\t0x100000000000002",
    ]


def test_a_leader_shows_its_proposals(answers):
    assert "Proposal sizes last/min/max: " in answers["leader_srvr_fresh"]
    assert "Proposal sizes" not in answers["follower_srvr"]


@pytest.mark.skipif(not IS_QUENDA, reason="qsta is Quenda's own word")
def test_qsta_is_answered_in_every_state(tmp_path):
    with capture_ensemble.Ensemble(tmp_path, members=2, cfg={"4lw.commands.whitelist": "srvr"}) as ensemble:
        member = ensemble.leader()
        status = json.loads(four_letter_word(member.port, "qsta"))
        assert (status["member"], status["role"], status["service"]) == (member.number, "leader", "serving")
        assert status["membership"] == {"voters": [1, 2], "outgoing_voters": [], "learners": []}
        capture_ensemble.left_alone(ensemble)

        def served_by_nobody():
            return json.loads(four_letter_word(member.port, "qsta"))["service"] == "no-quorum"

        eventually(served_by_nobody, seconds=60)
