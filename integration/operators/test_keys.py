"""Keys of `zoo.cfg` with an effect of their own: each is set, and what an operator or a client sees of it."""

import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import four_letter_word, free_port  # noqa: E402
from integration.lib.quenda_server import QuendaServer, quenda_binary  # noqa: E402
from integration.lib import zkwire as wire  # noqa: E402
from integration.lib.zkwire import ERR, OP, Conn, eventually, expect  # noqa: E402
from integration.operators.admin import admin_cfg, command  # noqa: E402


def srvr(port):
    answer = four_letter_word(port, "srvr")
    return dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    users = folder / "users"
    users.write_text("ann: a\nbob: b\n")
    users.chmod(0o600)
    admin = free_port()
    cfg = {**admin_cfg(admin), "enableEagerACLCheck": "true", "letAnySaslUserDoX": "everybody", "quenda.saslUsers": str(users),
           "serializeLastProcessedZxid.enabled": "false", "electionAlg": "3", "snapSizeLimitInKb": "64"}
    with QuendaServer(folder / "server", cfg) as server:
        server.admin = admin
        yield server
        assert server.alive(), server.log_tail()


def test_a_forbidden_write_never_gets_into_the_log(server):
    with Conn(server.port) as owner, Conn(server.port) as other:
        owner.auth("digest", b"u:p")
        owner.create("/private", acl=((31, "auth", ""),))
        before = srvr(server.port)["Zxid"]
        for attempt in (lambda: other.set("/private", b"x"), lambda: other.create("/private/x"),
                        lambda: other.set_acl("/private", wire.OPEN_ACL)):
            with expect(ERR.NO_AUTH):
                attempt()
        assert srvr(server.port)["Zxid"] == before
        owner.set("/private", b"x")
        assert srvr(server.port)["Zxid"] != before


def test_what_one_id_may_do_every_sasl_user_may(server, tmp_path):
    def shell(user, *words):
        password = tmp_path / user
        password.write_text(user[0])
        done = subprocess.run([quenda_binary(), "shell", "--server", f"127.0.0.1:{server.port}", "--sasl-user", user,
                               "--sasl-password-file", password, *words], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    assert shell("ann", "create", "/shared", "x", "sasl:everybody:cdrwa")[0] == 0
    assert shell("ann", "create", "/anns", "x", "sasl:ann:cdrwa")[0] == 0
    assert shell("bob", "set", "/shared", "y")[0] == 0
    code, text = shell("bob", "set", "/anns", "y")
    assert code != 0 and "permission" in text, text
    with Conn(server.port) as nobody, expect(ERR.NO_AUTH):
        nobody.set("/shared", b"z")
    assert "everybody" not in shell("bob", "whoami")[1]


def test_without_the_zxid_in_snapshots_there_are_none(server):
    for name, method in (("snapshot", "GET"), ("restore", "POST")):
        answer = command(server.admin, name, method=method, headers={"Authorization": "digest u:p"})
        assert answer.status == 500
        assert answer.error == "turned off by serializeLastProcessedZxid.enabled=false"


def test_a_checkpoint_is_made_after_so_many_bytes_of_log(server):
    """Without the key one is made after 5 seconds or some megabytes."""
    def made():
        found = re.search(r"^zk_snapshottime_cnt\t(\d+)|^zk_cnt_snapshottime\t(\d+)", four_letter_word(server.port, "mntr"), re.M)
        return int(next(part for part in found.groups() if part))

    with Conn(server.port) as conn:
        conn.create("/written")
        before, rounds = made(), 0
        while made() < before + 3:
            rounds += 1
            assert rounds < 50, "5 MB of log"
            conn.pipeline([(OP.SET_DATA, wire.set_data("/written", bytes(1000)))] * 100)


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    """Three members and an observer, in one group."""
    cfg = {"group.1": "1:2:3", "weight.1": "1", "weight.2": "1", "quorumCnxnTimeoutMs": "3000", "cnxTimeout": "500",
           "leaderConnectDelayDuringRetryMs": "20", "leader.maxConcurrentSnapSyncs": "2", "observer.reconnectDelayMs": "100",
           "multiAddress.enabled": "false"}
    with Ensemble(tmp_path_factory.mktemp("members"), members=4, observers=[4], cfg=cfg) as ensemble:
        yield ensemble


def test_a_group_of_all_is_a_plain_ensemble(ensemble):
    for member in ensemble:
        assert "come to what counts without them" in member.server.log_path.read_text()
    with ensemble[4].connect() as conn:
        conn.create("/through-the-observer")
    with ensemble.wait_leader().connect() as conn:
        conn.sync()
        conn.get("/through-the-observer")


def test_a_silent_member_is_let_go_when_the_settings_say(ensemble):
    leader = ensemble.wait_leader()
    silent = next(member for member in ensemble if member not in (leader, ensemble[4]))
    silent.pause()
    try:
        told = re.compile(rf"connection to the peer lost.*peer={silent.number}\b.*nothing was heard for 3 s")
        eventually(lambda: any(told.search(line) for line in leader.server.log_path.read_text().splitlines()),
                   what=f"{leader} lets {silent} go")
    finally:
        silent.resume()
    silent.wait_serving()
