"""Members that come and go, and what is left when most of them are gone for good."""

import re
import subprocess
import threading

import pytest

from integration.field_reports.ensembles import wait_until_voting, written
from integration.field_reports.test_b_ensemble_faults import fill
from integration.lib.quenda_server import quenda_binary
from integration.lib.trees import assert_same
from integration.lib.zkwire import OP, Closed, Refused, ZkError, create, eventually, set_data

RECONFIG = {"reconfigEnabled": "true"}
IN_PROGRESS, QUORUM_NOT_SYNCED = -14, -13


def changed(ensemble, joining=None, leaving=None):
    """One change of the membership, as an operator makes it: asked again while another one is under way."""

    def attempt():
        try:
            with ensemble.leader().connect() as conn:
                conn.auth("digest", b"super:test")
                return conn.reconfig(joining, leaving)
        except ZkError as error:
            if error.code in (IN_PROGRESS, QUORUM_NOT_SYNCED):
                return None
            raise
        except (Closed, Refused, OSError):
            return None

    return eventually(attempt, 30, f"reconfig +{joining} -{leaving}")


def configured(ensemble):
    """Ids of the participants in the replicated configuration."""
    with ensemble.leader().connect_soon() as conn:
        conn.sync("/")
        text = conn.get("/zookeeper/config")[0].decode()
    return sorted(int(number) for number in re.findall(r"^server\.(\d+)=\S+:participant", text, re.MULTILINE))


def wait_voters(ensemble, wanted):
    wait_until_voting(ensemble, wanted)
    assert configured(ensemble) == wanted


def remove(ensemble, number):
    changed(ensemble, leaving=str(number))
    gone = ensemble.members.pop(number)
    ensemble.wait_leader()
    assert number not in configured(ensemble)
    return gone


def serves_with(ensemble, member, path, data):
    """The member takes a write and shows it."""

    def attempt():
        try:
            with member.connect() as conn:
                return conn.set(path, data)
        except (Closed, Refused, OSError):
            return None

    eventually(attempt, 30, f"{member} takes writes")


def add(ensemble, member, wiped):
    ensemble.members[member.number] = member
    member.server.extra_cfg.update(ensemble.server_lines())
    if wiped:
        member.wipe()
        member.server.cfg_path.unlink(missing_ok=True)
    if not member.alive():
        member.spawn()
    changed(ensemble, f"server.{member.number}={member.line()}")
    member.wait_serving()


@pytest.mark.quenda_only("what a removed server of Java's needs before it is added again is another procedure")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wiped", [True, False])
def test_B104_every_id_can_be_removed_and_added_again(own_ensemble, wiped):
    ensemble = own_ensemble(RECONFIG)
    with ensemble.leader().connect() as conn:
        conn.create("/n", b"")
    for number in (1, 2, 3):
        member = remove(ensemble, number)
        member.stop()
        written(ensemble, "/n", b"without %d" % number)
        add(ensemble, member, wiped)
        serves_with(ensemble, member, "/n", b"again with %d" % number)
        wait_voters(ensemble, [1, 2, 3])
    assert_same(ensemble)


@pytest.mark.quenda_only("a genuine server does not grow from one")
@pytest.mark.timeout(300)
def test_B104_an_ensemble_grows_from_one_to_five_and_shrinks_to_three(own_ensemble, long):
    ensemble = own_ensemble({**RECONFIG, "standaloneEnabled": "false"}, members=1)
    fill(ensemble[1], "/fill", 200_000 if long else 20_000, 100)
    for number in range(2, 6):
        member = ensemble.add(number)
        member.spawn()
        changed(ensemble, f"server.{number}={member.line()}")
        member.wait_serving()
        serves_with(ensemble, member, "/fill", b"from %d" % number)
    wait_voters(ensemble, [1, 2, 3, 4, 5])
    assert_same(ensemble)
    for number in (1, 4):  # the first of all among them
        remove(ensemble, number).stop()
        written(ensemble, "/fill", b"without %d" % number)
    wait_voters(ensemble, [2, 3, 5])
    # Three of three: one may be missed.
    gone = ensemble.followers()[0]
    gone.kill9()
    written([member for member in ensemble if member is not gone], "/fill", b"by two")
    gone.start()
    assert_same(ensemble)


@pytest.mark.java_wrong("the leader of the new lines cannot commit: ZOOKEEPER-3829")
def test_B103_a_fourth_line_by_rolling_restart_never_leaves_an_ensemble_that_cannot_write(own_ensemble):
    """The membership is replicated: lines that are added to files do not change it, and nobody is harmed by them."""
    ensemble = own_ensemble()
    with ensemble.leader().connect() as conn:
        conn.create("/n", b"")
    three = list(ensemble)
    fourth = ensemble.add(4)
    fourth.spawn()
    written(three, "/n", b"the fourth runs")
    for member in three:
        member.stop()
        member.server.extra_cfg.update(ensemble.server_lines())
        member.server.cfg_path.unlink()
        written([other for other in three if other is not member], "/n", b"without one")
        member.start()
        written(three, "/n", b"with one changed")
    leader = eventually(lambda: next((m for m in three if m.mode() == "leader"), None), 20, "a leader of the three")
    leader.kill9()
    written([member for member in three if member is not leader], "/n", b"after a leader is gone", 30)
    leader.start()
    written(three, "/n", b"all")


@pytest.mark.timeout(600)
def test_B97_a_large_snapshot_is_installed_once_and_nobody_is_deposed(own_ensemble, long):
    ensemble = own_ensemble({"snapCount": "1000"})
    leader, behind = ensemble.leader(), ensemble.followers()[0]
    fill(leader, "/fill", 1000, 100)
    behind.kill9()
    megabytes = 500 if long else 60
    with leader.connect(wait=60.0) as conn:
        data = bytes(100_000)
        requests = ((OP.CREATE, create(f"/fill/big-{n}", data)) for n in range(megabytes * 10))
        for reply in conn.pipeline(requests, window=100):
            reply.ok()
        epoch = conn.set("/fill", b"").mzxid >> 32
    ended = threading.Event()
    failures = []

    def load():
        try:
            with leader.connect() as conn:
                while not ended.is_set():
                    conn.call(OP.SET_DATA, set_data("/fill", b"y" * 500)).ok()
        except Exception as error:
            failures.append(error)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        behind.start(timeout=120)
    finally:
        ended.set()
        loader.join()
    assert not failures, failures
    with leader.connect() as conn:
        assert conn.set("/fill", b"").mzxid >> 32 == epoch, "there was an election"
    assert_same(ensemble)


@pytest.mark.quenda_only("the recovery is Quenda's own")
def test_B115_what_is_left_goes_on_alone_and_grows_again(own_ensemble):
    ensemble = own_ensemble({**RECONFIG, "standaloneEnabled": "false"})
    with ensemble.leader().connect(timeout=30_000) as conn:
        conn.create("/n", b"kept")
        last = conn.create2("/last")[1].czxid
    for member in ensemble:
        with member.connect() as conn:
            conn.sync("/")
    ensemble.kill9()
    left = ensemble[1]

    def recover(*options, text=""):
        command = [str(quenda_binary()), "recover", "--config", str(left.server.cfg_path), *options]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)

    # Alone it does not serve, and without the operator's word nothing is changed.
    declined = recover(text="no\n")
    assert declined.returncode == 1, declined
    assert "lost" in declined.stdout.lower(), declined.stdout
    done = recover("--yes")
    assert done.returncode == 0, done
    again = recover("--yes")
    assert again.returncode == 0, again
    lost = [ensemble.members.pop(number) for number in (2, 3)]
    left.start()
    wait_voters(ensemble, [1])
    with left.connect() as conn:
        assert conn.get("/n")[0] == b"kept"
        assert conn.create2("/after")[1].czxid > last
    for member in lost:
        add(ensemble, member, wiped=True)
        serves_with(ensemble, member, "/n", b"with %d" % member.number)
    wait_voters(ensemble, [1, 2, 3])
    left.kill9()
    written(lost, "/n", b"without the one that was left", 30)
    left.start()
    assert_same(ensemble)
