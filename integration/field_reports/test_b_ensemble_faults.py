"""Several members whose network is cut, whose disks are emptied, that are killed while they agree."""

import concurrent.futures
import threading
import time

import pytest

from integration.field_reports.ensembles import numbers, resumed, wait_until_voting, written
from integration.lib.trees import assert_same
from integration.lib.zkwire import FLAG, OP, Closed, Refused, create, eventually, set_data


def cut_off(ensemble, member):
    ensemble.network.isolate(member.number, numbers(ensemble))


def fill(member, path, count, size=1000):
    """`count` acknowledged writes; half of them on new nodes."""
    with member.connect() as conn:
        if conn.exists(path) is None:
            conn.create(path)
        start = conn.exists(path).cversion
        data = b"f" * size
        requests = [(OP.CREATE, create(f"{path}/{start + n:08}", data)) for n in range(count // 2)]
        requests += [(OP.SET_DATA, set_data(path, data)) for _ in range(count - len(requests))]
        for reply in conn.pipeline(requests, window=200):
            reply.ok()


@pytest.mark.parametrize("way", ["log", "snapshot"])
def test_B85_ephemerals_that_expired_behind_a_members_back_are_gone_there_too(own_ensemble, long, way):
    ensemble = own_ensemble({"snapCount": "1000"} if way == "snapshot" else {}, cuttable=True)
    leader, away = ensemble.leader(), ensemble.followers()[0]
    owners = [leader.connect(timeout=2000) for _ in range(5)]
    for conn in owners:
        for number in range(20):
            conn.create(f"/e{conn.session:x}-{number}", b"x" * 100, flags=FLAG.EPHEMERAL)
    with away.connect() as seen:
        seen.sync("/")
        assert len(seen.children("/")) == 101
    cut_off(ensemble, away)
    for conn in owners:
        conn.drop()
    with leader.connect() as conn:
        eventually(lambda: conn.children("/") == ["zookeeper"], 20, "expiry of the owners")
    if way == "snapshot":
        fill(leader, "/fill", 60_000 if long else 12_000, 200)
    ensemble.heal()
    ensemble.wait_serving()
    for member in ensemble:
        with member.connect_soon() as conn:
            conn.sync("/")
            left = [name for name in conn.children("/") if name.startswith("e")]
            assert not left, f"{member} still has {len(left)} ephemerals"
    assert_same(ensemble)


@pytest.mark.timeout(600)
def test_B89_a_kill_while_a_deposed_leaders_log_is_corrected(own_ensemble, rng, long):
    ensemble = own_ensemble(cuttable=True)
    with ensemble.leader().connect() as setup:
        setup.create("/n", b"")
        setup.create("/c")
    acknowledged = 0
    for number in range(10 if long else 3):
        old = ensemble.leader()
        others = [member for member in ensemble if member is not old]
        lonely = old.connect()
        cut_off(ensemble, old)
        try:  # these never reach a majority
            for step in range(500):
                lonely.send(OP.CREATE, create(f"/c/lost-{number}-{step}", b"x" * 500))
        except OSError:
            pass
        written(others, "/n", b"%d" % number)
        fill(eventually(lambda others=others: next((m for m in others if m.mode() == "leader"), None), 20, "a leader"),
             "/fill", 200)
        acknowledged += 100
        ensemble.network.heal()
        time.sleep(rng.uniform(0.0, 0.4))
        old.kill9()
        lonely.drop()
        old.spawn()
        if number % 2:
            time.sleep(rng.uniform(0.0, 0.4))
            old.kill9()
            old.spawn()
        ensemble.wait_serving()
        for member in ensemble:
            with member.connect_soon() as conn:
                conn.sync("/")
                assert conn.get("/n")[0] == b"%d" % number
                assert conn.children("/c") == []
                assert conn.exists("/fill").num_children == acknowledged
    assert_same(ensemble)


@pytest.mark.java_wrong("a wiped member votes with what it has, which is nothing")
def test_B95_a_wiped_member_does_not_help_to_lose_what_was_acknowledged(own_ensemble):
    """Two of three have acknowledged; one of the two is wiped, the other is down. The wiped one and the one that
    was away are a majority by number and must not act as one."""
    ensemble = own_ensemble()
    behind = ensemble.followers()[0]
    keeper, wiped = [member for member in ensemble if member is not behind]
    with keeper.connect() as conn:
        conn.create("/n", b"old")
    with behind.connect() as conn:
        conn.sync("/")
    behind.kill9()
    written([keeper, wiped], "/n", b"acknowledged")
    keeper.kill9()
    wiped.kill9()
    wiped.wipe()
    wiped.spawn()
    behind.spawn()
    deadline = time.monotonic() + 6.0
    while time.monotonic() < deadline:
        for member in (behind, wiped):
            try:
                with member.connect(wait=1.0) as conn:
                    assert conn.get("/n")[0] == b"acknowledged", f"{member} serves without what was acknowledged"
            except (Closed, Refused, OSError):
                pass
        time.sleep(0.1)
    keeper.start()
    ensemble.wait_serving()
    for member in ensemble:
        with member.connect_soon() as conn:
            conn.sync("/")
            assert conn.get("/n")[0] == b"acknowledged"
    assert_same(ensemble)


def test_B95_a_wiped_member_is_filled_again_and_counts_again(own_ensemble):
    ensemble = own_ensemble()
    leader = ensemble.leader()
    fill(leader, "/fill", 2000)
    wiped = ensemble.followers()[0]
    wiped.kill9()
    wiped.wipe()
    wiped.start()
    assert_same(ensemble)
    # With the third one gone it is needed for a majority.
    third = next(member for member in ensemble if member not in (wiped, leader))

    def counts():
        try:
            with wiped.connect() as conn:
                return conn.set("/fill", b"with the wiped one")
        except (Closed, Refused, OSError):
            return None

    eventually(counts, 20, "the wiped member takes writes")
    wait_until_voting(ensemble, [1, 2, 3])
    third.kill9()
    written([leader, wiped], "/fill", b"by two", 30)
    third.start()
    assert_same(ensemble)


def test_B100_clients_of_a_cut_off_follower_are_not_left_hanging(own_ensemble):
    ensemble = own_ensemble(cuttable=True)
    away = ensemble.followers()[0]
    timeout = 6000
    with ensemble.leader().connect() as setup:
        setup.create("/n")
    clients = [away.connect(timeout=timeout) for _ in range(8)]
    for conn in clients:
        conn.create(f"/e{conn.session:x}", flags=FLAG.EPHEMERAL)
    cut_off(ensemble, away)
    start = time.monotonic()

    def write(conn):
        """An acknowledged write would be a lie unless it came through; a close is what is due."""
        try:
            return conn.call(OP.SET_DATA, set_data("/n", b"from behind the cut")).err == 0
        except (Closed, OSError):
            return False

    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        answers = list(pool.map(write, clients))
    assert time.monotonic() - start < timeout / 1000, "a client hung for its whole session timeout"
    assert not any(answers), "a member without a majority acknowledged a write"
    others = [member for member in ensemble if member is not away]
    for conn in clients:
        conn.drop()
        moved = resumed(ensemble, conn, others)
        assert moved.exists(f"/e{conn.session:x}").ephemeral_owner == conn.session
        moved.close()


def test_B107_a_peer_that_swallows_packets_does_not_slow_an_election(own_ensemble, long):
    """Five members; nothing that is sent to one of them arrives, and nothing refuses it either."""
    ensemble = own_ensemble(members=5, cuttable=True, cfg={"connectToLearnerMasterLimit": "4"})
    with ensemble.leader().connect() as setup:
        setup.create("/n", b"")

    def kill_and_write(silent=None):
        leader = ensemble.leader()
        others = [member for member in ensemble if member not in (leader, silent)]
        leader.kill9()
        start = time.monotonic()
        written(others, "/n", b"x", 60)
        took = time.monotonic() - start
        leader.spawn()
        leader.wait_serving()
        return took

    rounds = 5 if long else 2
    with_all = [kill_and_write() for _ in range(rounds)]
    silent = ensemble.followers()[0]
    cut_off(ensemble, silent)
    without = [kill_and_write(silent) for _ in range(rounds)]
    print(f"all reachable {with_all}, one silent {without}")
    assert min(without) < max(with_all) + 1.5, f"{without} s against {with_all} s"


def test_B98_a_member_far_behind_deposes_nobody(own_ensemble, long):
    ensemble = own_ensemble({"snapCount": "1000"})
    leader, behind = ensemble.leader(), ensemble.followers()[0]
    fill(leader, "/fill", 2000)
    behind.kill9()
    fill(leader, "/fill", 60_000 if long else 12_000)
    with leader.connect() as conn:
        epoch = conn.set("/fill", b"").mzxid >> 32
    ended = threading.Event()

    def load():
        with leader.connect() as conn:
            while not ended.is_set():
                for reply in conn.pipeline(((OP.SET_DATA, set_data("/fill", b"y" * 500)) for _ in range(100)), 50):
                    reply.ok()
                time.sleep(0.02)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        loader = pool.submit(load)
        try:
            for _ in range(10 if long else 3):
                behind.start()
                behind.kill9()
            behind.start()
        finally:
            ended.set()
        loader.result()
    assert ensemble.leader() is leader
    with leader.connect() as conn:
        assert conn.set("/fill", b"").mzxid >> 32 == epoch, "the term changed"
    assert_same(ensemble)
