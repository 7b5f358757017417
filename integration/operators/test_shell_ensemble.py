"""`quenda shell` at three members: a session that goes on, the configuration, a member without a quorum."""

import re

import pytest
from integration.lib.ensemble import Ensemble
from integration.lib.quenda_server import quenda_binary
from integration.lib.shell import Shell
from integration.operators.shell_session import CFG

CONFIGURATION = {**CFG, "reconfigEnabled": "true", "readonlymode.enabled": "true"}


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    with Ensemble(tmp_path_factory.mktemp("ensemble"), cfg=CONFIGURATION, target="quenda") as ensemble:
        yield ensemble


@pytest.fixture
def shell(ensemble):
    started = []

    def start(*options, hosts=ensemble.hosts):
        started.append(Shell([str(quenda_binary()), "shell", "-server", hosts, *options]))
        return started[-1]

    yield start
    for shell in started:
        shell.kill()


def test_a_session_goes_on_at_another_member_with_its_watches(ensemble, shell):
    mine = shell()
    mine.wait_for("state:SyncConnected")
    mine.run("addauth digest ann:secret")
    mine.run("create -e /mine x auth::cdrwa", "^Created /mine$")
    mine.run("get -w /mine", "^x$")
    for member in ensemble:
        # One of them is the one that the shell talks to.
        member.kill9()
        ensemble.wait_leader()
        mine.run("sync /", "^Sync is OK$|ConnectionLoss|rc=-4$")
        member.start()
    with ensemble.leader().connect() as other:
        other.auth("digest", b"ann:secret")
        other.set("/mine", b"y")
    mine.wait_for("type:NodeDataChanged path:/mine")
    mine.run("getEphemerals", r"^\[/mine\]$")
    mine.run("get /mine", "^y$")
    mine.run("quit", "state:Closed")
    assert mine.ended() == 0


def test_the_configuration_is_shown_and_changed(ensemble, shell):
    # A member that goes lets its clients go, and who leads hands over: the shell is to see neither.
    ensemble.wait_leader()
    away = ensemble.followers()[0]
    others = [member for member in ensemble if member is not away]
    operator = shell("-waitforconnection", "--auth", "digest:super:test",
                     hosts=",".join(member.address for member in others))
    lines = [re.escape(f"server.{member.number}={member.line()}") for member in ensemble]
    text = operator.run("config", *(f"^{line}$" for line in lines), r"^version=[0-9a-f]+$")
    version = re.search(r"version=([0-9a-f]+)", text)[1]
    operator.run("config -c", f"^{version} {re.escape(ensemble.hosts)}$")
    operator.run(f"reconfig -v 1 -remove {away.number}", "^version No is not valid : $")
    gone = away.line()
    stay = [f"^{re.escape(f'server.{member.number}={member.line()}')}$" for member in others]
    text = operator.run(f"reconfig -s -v {version} -remove {away.number}", "^Committed new configuration:$", *stay,
                        r"^version=[0-9a-f]+$", "^cZxid = 0x", "^numChildren = 0$")
    assert gone not in text
    operator.run(f"reconfig -add server.{away.number}={gone}", "^Committed new configuration:$",
                 f"^{re.escape(f'server.{away.number}={gone}')}$")
    operator.run("quit", "state:Closed")


def test_without_a_quorum_a_member_serves_reads_to_those_who_are_content(ensemble, shell):
    with ensemble[1].connect() as conn:
        conn.create("/kept", b"x")
    members = list(ensemble)
    for member in members[1:]:
        member.kill9()
    try:
        reader = shell("-r")
        reader.wait_for("state:ConnectedReadOnly", seconds=60)
        reader.run("get /kept", "^x$")
        reader.run("set /kept y", "^Not a read-only call: /kept$")
    finally:
        for member in members[1:]:
            member.spawn()
        ensemble.wait_serving()
    reader.wait_for("state:SyncConnected", seconds=60)
    reader.run("set /kept y")
    reader.run("get /kept", "^y$")
