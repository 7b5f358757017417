"""`quenda recover` after a majority is gone: from three members to one, and back to three."""

import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from kazoo.client import KazooClient  # noqa: E402
from kazoo.exceptions import NewConfigNoQuorumError  # noqa: E402

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.quenda_server import quenda_binary  # noqa: E402
from integration.operating.cli import eventually, quenda, until  # noqa: E402

CFG = {"reconfigEnabled": "true", "skipACL": "yes"}
KILLS = 20
# About as long as a recovery of so little takes.
RECOVER_SECONDS = 0.2


@pytest.fixture
def ensemble(tmp_path):
    with Ensemble(tmp_path, cfg=CFG) as ensemble:
        yield ensemble


def client(member):
    zk = KazooClient(hosts=member.address)
    zk.start(timeout=30)
    return zk


def joins(zk, member):
    """Adds a member; False while the leader has not heard of it yet, so that a majority would not be there."""
    try:
        return zk.reconfig(joining=f"server.{member.number}={member.line()}", leaving=None, new_members=None)
    except NewConfigNoQuorumError:
        return False


def configured(member):
    """The ids in the member's own configuration files."""
    text = member.server.cfg_path.read_text()
    (pointer,) = re.findall(r"^dynamicConfigFile=(.*)$", text, re.M)
    return [int(number) for number in re.findall(r"^server\.(\d+)=", pathlib.Path(pointer).read_text(), re.M)]


def recover(member, *args, answer=""):
    return quenda("recover", "--config", member.server.cfg_path, *args, answer=answer)


def lose_all_but_one(ensemble):
    """Writes, then ends everybody; the one that is left is a follower. Gives it and the zxid of the last write."""
    left = ensemble.followers()[0]
    zk = client(left)
    zk.create("/kept", b"1")
    zxid = zk.set("/kept", b"2").mzxid
    zk.stop()
    zk.close()
    ensemble.kill9()
    return left, zxid


def test_one_member_goes_on_and_grows_again(ensemble):
    left, zxid = lose_all_but_one(ensemble)
    words = f"recover member {left.number}"
    declined = recover(left, answer="yes\n")
    assert declined.code == 1 and "Nothing has changed." in declined.out, declined
    done = recover(left, answer=f"{words}\n")
    assert done.code == 0 and "is alone now" in done.out, done
    again = recover(left)
    assert again.code == 0 and "nothing to recover" in again.out, again

    assert "reconfigEnabled=true and standaloneEnabled=false" in done.out, done

    others = [member for member in ensemble if member is not left]
    left.start()
    report = until(left.address, code=0)
    assert [row["id"] for row in report["members"]] == [left.number]
    eventually(lambda: configured(left) == [left.number])
    left.kill9()
    left.start()
    zk = client(left)
    try:
        assert not joins(zk, others[0]), "it runs alone: its configuration has its own line only"
    finally:
        zk.stop()
        zk.close()
    eventually(lambda: "Set standaloneEnabled=false in its configuration" in left.log_tail(20_000))

    left.kill9()
    with left.server.cfg_path.open("a") as cfg:
        cfg.write("standaloneEnabled=false\n")
    left.start()
    zk = client(left)
    try:
        assert zk.get("/kept")[0] == b"2"
        assert zk.set("/kept", b"3").mzxid >> 32 > (zxid >> 32) + 1000
        for member in others:
            member.wipe()
            member.spawn()
            eventually(lambda member=member: joins(zk, member))
            member.wait_serving()
        report = until(left.address, code=0)
        assert [row["id"] for row in report["members"]] == [1, 2, 3]
        eventually(lambda: all(row["status"]["role"] != "joining" for row in until(left.address, code=0)["members"]))
    finally:
        zk.stop()
        zk.close()


def test_a_recovery_that_is_killed_can_be_done_again(ensemble, tmp_path):
    left, _ = lose_all_but_one(ensemble)
    kept = left.data
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    pauses = random.Random(seed)
    for attempt in range(KILLS):
        left.server.data_dir = tmp_path / f"attempt-{attempt}"
        shutil.copytree(kept.parent, left.server.data_dir)
        data = left.server.data_dir / "data"
        command = [str(quenda_binary()), "recover", "--data-dir", str(data), "--yes"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(pauses.uniform(0, RECOVER_SECONDS))
            process.kill()
        done = quenda("recover", "--data-dir", data, "--yes")
        assert done.code == 0, done
        again = quenda("recover", "--data-dir", data)
        assert again.code == 0 and "nothing to recover" in again.out, again
        assert "5 znodes" in again.out, again


def test_a_lost_member_with_its_data_is_refused(ensemble):
    left, _ = lose_all_but_one(ensemble)
    assert recover(left, "--yes").code == 0
    left.start()
    stray = next(member for member in ensemble if member is not left)
    stray.spawn()
    problem = eventually(
        lambda: [text for text in until(left.address, stray.address, code=1)["problems"] if "another cluster" in text]
    )
    assert f"member {stray.number}" in problem[0]
    assert not stray.serving()


def test_a_running_server_is_left_alone(ensemble):
    member = ensemble.leader()
    refused = recover(member, "--yes")
    assert refused.code == 3 and "in use" in refused.err, refused
    until(member.address, code=0)


def test_a_directory_without_a_store_is_refused(tmp_path):
    result = quenda("recover", "--data-dir", tmp_path, "--yes")
    assert result.code == 3 and "no store" in result.err, result
