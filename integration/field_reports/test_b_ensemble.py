"""Several members: sessions that move, elections under the eyes of clients, clocks that differ."""

import concurrent.futures
import threading
import time

import pytest

from integration.field_reports.ensembles import numbers, resumed
from integration.lib.tamper import Tamper
from integration.lib.trees import assert_same
from integration.lib.zkwire import (
    EV,
    FLAG,
    OP,
    Closed,
    Conn,
    Refused,
    connect_request,
    create,
    eventually,
    four_letter,
    read,
    set_data,
    tcp,
)

ELECTION_SECONDS = 5.0  # more than one election of either server takes with the tests' ticks


def test_B04_a_member_that_lags_refuses_who_has_seen_more(own_ensemble):
    """The handshake waits in the member's socket when it wakes: it must be refused, or answered from the present."""
    ensemble = own_ensemble()
    follower = ensemble.followers()[0]
    with ensemble.leader().connect() as writer:
        writer.create("/n", b"0")
        for number in range(1, 9):
            follower.pause()
            for step in range(200):
                writer.set("/n", b"%d.%d" % (number, step))
            seen, value = writer.last_zxid, writer.get("/n")[0]
            sock = tcp(follower.port)
            sock.sendall(connect_request(last_zxid=seen))
            follower.resume()
            conn = Conn(follower.port, handshake=False)
            conn.sock.close()
            conn.sock = sock
            try:
                conn.finish_handshake()
                assert conn.get("/n")[0] == value, "it showed the past to a client that has seen more"
                conn.close()
            except Closed:
                sock.close()
            follower.wait_serving()


def test_B04_a_member_cut_off_refuses_who_has_seen_more(own_ensemble):
    ensemble = own_ensemble(cuttable=True)
    follower, leader = ensemble.followers()[0], ensemble.leader()
    with leader.connect() as writer:
        writer.create("/n", b"old")
        with follower.connect() as reader:
            reader.sync("/")
        ensemble.network.isolate(follower.number, numbers(ensemble))
        seen = writer.set("/n", b"new").mzxid
        with pytest.raises((Closed, OSError)):
            follower.connect(last_zxid=seen, wait=10.0)
        ensemble.heal()
        follower.wait_serving()

        def caught_up():
            try:
                with follower.connect(last_zxid=seen) as reader:
                    return reader.get("/n")[0] == b"new"
            except (Closed, OSError):
                return False

        eventually(caught_up, 20, "the member takes the client again")


def test_B07_new_and_resumed_handshakes_at_all_members_are_never_mixed_up(own_ensemble):
    """Each member numbers its handshakes from small numbers on: answers must not be told apart by those alone."""
    ensemble = own_ensemble()
    members = list(ensemble)
    held = []
    for index in range(100):
        conn = members[index % 3].connect()
        conn.create(f"/e{conn.session:x}", flags=FLAG.EPHEMERAL)
        held.append(conn)
    for conn in held:
        conn.drop()

    def one(index):
        member = members[index // 2 % 3]  # each member gets new ones and such as lived elsewhere
        return member.connect() if index % 2 else member.take_over(held[(index // 2 + 1) % 100])

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(one, range(200)))
    fresh = set()
    for index, conn in enumerate(answers):
        if index % 2:
            assert not conn.ephemerals(), "a new session that owns something"
            fresh.add(conn.session)
        else:
            before = held[(index // 2 + 1) % 100]
            assert (conn.session, conn.passwd) == (before.session, before.passwd)
            assert conn.ephemerals() == [f"/e{conn.session:x}"]
    assert len(fresh) == 100 and not fresh & {conn.session for conn in held}
    for conn in answers:
        conn.close()


@pytest.mark.java_wrong("handshakes in flight at an election wait for their session timeout")
def test_B08_a_handshake_at_an_election_ends_within_about_one(own_ensemble, long):
    ensemble = own_ensemble()
    slowest, granted = [0.0], [0]
    lock = threading.Lock()
    ended = threading.Event()
    failures = []

    def knock(member):
        while not ended.is_set():
            start = time.monotonic()
            try:
                conn = member.connect(wait=25.0)
                took = time.monotonic() - start
                conn.drop()
                with lock:
                    granted[0] += 1
            except (Closed, ConnectionError):
                took = time.monotonic() - start
            except Exception as error:
                failures.append(error)
                return
            with lock:
                slowest[0] = max(slowest[0], took)
            time.sleep(0.002)

    knockers = [threading.Thread(target=knock, args=(member,)) for member in ensemble for _ in range(4)]
    for knocker in knockers:
        knocker.start()
    try:
        for _ in range(10 if long else 3):
            leader = ensemble.leader()
            leader.kill9()
            ensemble.leader()
            before = granted[0]
            eventually(lambda before=before: granted[0] > before + 10, 30, "sessions are granted again")
            leader.start()
    finally:
        ended.set()
        for knocker in knockers:
            knocker.join()
    assert not failures, failures
    print(f"slowest handshake {slowest[0]:.2f} s")
    assert slowest[0] < ELECTION_SECONDS


@pytest.mark.parametrize("role", ["follower", "leader"])
def test_B13_a_stop_of_a_member_leaves_its_clients_sessions_alone(own_ensemble, role):
    ensemble = own_ensemble()
    stopped = ensemble.followers()[0] if role == "follower" else ensemble.leader()
    others = [member for member in ensemble if member is not stopped]
    clients = [stopped.connect(timeout=8000) for _ in range(20)]
    for conn in clients:
        conn.create(f"/e{conn.session:x}", b"mine", flags=FLAG.EPHEMERAL)
    stopped.stop()
    moved = [resumed(ensemble, conn, others) for conn in clients]
    for before, conn in zip(clients, moved, strict=True):
        assert (conn.session, conn.passwd) == (before.session, before.passwd)
        stat = conn.exists(f"/e{conn.session:x}")
        assert stat is not None, "the ephemeral went with the member"
        assert stat.ephemeral_owner == before.session
        assert conn.ephemerals() == [f"/e{conn.session:x}"]
    stopped.start()
    back = [stopped.take_over(conn) for conn in moved]
    for conn in back:
        conn.sync("/")
        assert conn.ephemerals() == [f"/e{conn.session:x}"]
    for conn in back:
        conn.close()
    with others[0].connect() as other:
        other.sync("/")
        assert other.children("/") == ["zookeeper"]


def test_B59_every_watch_survives_a_restart_of_the_leader(own_ensemble):
    ensemble = own_ensemble()
    with ensemble.leader().connect() as setup:
        setup.create("/w")
        setup.pipeline((OP.CREATE, create(f"/w/{number}")) for number in range(1000))
    members = list(ensemble)
    clients = [members[index % 3].connect(timeout=20_000) for index in range(10)]
    paths = {conn: [f"/w/{number}" for number in range(index, 1000, 10)] for index, conn in enumerate(clients)}
    for conn in clients:
        conn.sync("/")
        for reply in conn.pipeline((OP.GET_DATA, read(path, True)) for path in paths[conn]):
            reply.ok()
    ensemble.leader().restart()
    ensemble.wait_serving()
    current = []
    for before in clients:
        conn = before
        try:
            conn.ping()
        except (Closed, OSError, TimeoutError):
            conn.drop()
            conn = resumed(ensemble, before)
            conn.set_watches(before.last_zxid, data=paths[before])
        current.append((conn, paths[before]))
    assert any(conn is not before for (conn, _), before in zip(current, clients, strict=True))
    with ensemble.leader().connect() as writer:
        for reply in writer.pipeline((OP.SET_DATA, set_data(f"/w/{number}", b"x")) for number in range(1000)):
            reply.ok()
    for conn, watched in current:
        assert sorted(conn.taken_events()) == sorted((EV.CHANGED, path) for path in watched)
        conn.close()


@pytest.mark.parametrize("skewed", ["leader", "follower"])
@pytest.mark.parametrize("seconds", [
    60, pytest.param(-60, marks=pytest.mark.java_wrong("the timer that looks for such nodes waits for the wall clock")),
])
def test_B80_ttl_does_not_depend_on_whose_clock_is_wrong(own_ensemble, skewed, seconds):
    ensemble = own_ensemble(start=False)
    tampers = {member: Tamper(member.folder) for member in ensemble}
    for member, tamper in tampers.items():
        member.server.env.update(tamper.environment())
    ensemble.start()
    assert all(tamper.syncs for tamper in tampers.values()), "the clocks are not under control"
    wrong = ensemble.leader() if skewed == "leader" else ensemble.followers()[0]
    tampers[wrong].clock(seconds)
    creator = wrong.connect()
    creator.create("/ttl")
    # The change before is older by the skew; what counts is this node's own age.
    creator.create_ttl("/ttl/n", 2000)
    created = time.monotonic()
    watchers = [member.connect() for member in ensemble]
    for watcher in watchers:
        watcher.sync("/")
        assert watcher.exists("/ttl/n", watch=True) is not None
    gone = [watcher.event(30.0) for watcher in watchers]
    took = time.monotonic() - created
    assert all(event and (event.type, event.path) == (EV.DELETED, "/ttl/n") for event in gone), gone
    assert took >= 1.9, f"removed after {took:.1f} s"
    zxids = set()
    for watcher in watchers:
        assert watcher.taken_events() == [], "a watch fired twice"
        assert watcher.exists("/ttl/n") is None
        zxids.add(watcher.exists("/ttl").pzxid)
        watcher.close()
    assert len(zxids) == 1, "removed at different zxids"
    creator.close()
    assert_same(ensemble)


def test_B106_sync_makes_a_follower_at_least_as_new(own_ensemble):
    """A client writes at one member and tells another client, which reads at a follower that lags."""
    ensemble = own_ensemble()
    leader, follower = ensemble.leader(), ensemble.followers()[0]
    with leader.connect() as writer, follower.connect() as reader:
        writer.create("/n", b"0")
        for number in range(300):
            if number % 100 == 50:
                follower.pause()
            zxid = writer.set("/n", b"%d" % number).mzxid
            if number % 100 == 50:
                for step in range(500):
                    zxid = writer.set("/n", b"%d.%d" % (number, step)).mzxid
                follower.resume()
            reader.sync("/n")
            assert reader.get("/n")[1].mzxid >= zxid, "sync and the read behind it show the past"


def test_B110_four_letter_words_before_there_is_a_quorum(own_ensemble):
    ensemble = own_ensemble(start=False)
    ensemble[1].spawn()

    def answer(word):
        try:
            return four_letter(ensemble[1].port, word)
        except OSError:
            return ""

    assert eventually(lambda: answer("ruok"), 20, "ruok") == "imok"
    assert "Environment" in answer("envi")
    for word in ("srvr", "mntr", "stat", "cons"):
        assert "This ZooKeeper instance is not currently serving requests" in answer(word), word
    with pytest.raises((Closed, OSError)):
        ensemble[1].connect(wait=5.0)
    ensemble[2].spawn()
    ensemble.wait_serving([ensemble[1], ensemble[2]])
    assert "Mode: " in answer("srvr")


def test_B101_a_sequential_create_through_followers_is_never_made_twice(own_ensemble, long):
    """While leaders are killed: every acknowledged name exists once, and what is there beyond them is no more than
    there were requests of unknown fate."""
    ensemble = own_ensemble()
    with ensemble.leader().connect() as setup:
        setup.create("/q")
    names, unknown, failures = [], [], []
    ended = threading.Event()

    def create_some(index):
        members, count, conn = list(ensemble), 0, None
        while not ended.is_set():
            try:
                if conn is None:
                    conn = members[(index + count) % 3].connect(wait=10.0)
                tag = b"%d-%d" % (index, count)
                count += 1
                # Several in flight: their fate becomes unknown together.
                sent = [tag + b".%d" % n for n in range(8)]
                pending = list(sent)
                try:
                    for data in sent:
                        conn.send(OP.CREATE, create("/q/n-", data, FLAG.SEQUENTIAL))
                    while pending:
                        name = conn.reply().reader().ustring()
                        names.append((name, pending.pop(0)))
                except (Closed, OSError):
                    unknown.extend(pending)
                    raise
            except (Closed, Refused, OSError):
                if conn is not None:
                    conn.drop()
                conn = None
                time.sleep(0.01)
            except Exception as error:
                failures.append(error)
                return
        if conn is not None:
            conn.close()

    workers = [threading.Thread(target=create_some, args=(index,)) for index in range(6)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10 if long else 3):
            before = len(names)
            eventually(lambda before=before: len(names) > before + 300, 60, "creates go on")
            leader = ensemble.leader()
            leader.kill9()
            before = len(names)
            eventually(lambda before=before: len(names) > before + 100, 60, "creates go on without it")
            leader.start()
    finally:
        ended.set()
        for worker in workers:
            worker.join()
    assert not failures, failures
    ensemble.wait_serving()
    with ensemble.leader().connect() as reader:
        reader.sync("/q")
        found = {}
        for name in reader.children("/q"):
            found[f"/q/{name}"] = reader.get(f"/q/{name}")[0]
    acknowledged = dict(names)
    assert len(acknowledged) == len(names), "a name was given out twice"
    for name, data in names:
        assert found.get(name) == data, f"{name} was acknowledged for {data} and holds {found.get(name)}"
    extra = [data for name, data in found.items() if name not in acknowledged]
    assert len(set(extra)) == len(extra), "a request was carried out twice"
    assert set(extra) <= set(unknown), "something was carried out that nobody asked for"
    assert_same(ensemble)


def test_whoever_serves_says_as_what_from_its_first_answer_on(own_ensemble):
    """Scripts wait until all members serve and then ask which one leads: one of them must say so."""
    ensemble = own_ensemble()
    for _ in range(3):
        ensemble.kill9()
        ensemble.spawn()
        first = {}

        def all_serve():
            for member in ensemble:
                if member.number not in first:
                    first.update({member.number: mode for mode in [member.mode()] if mode})
            return len(first) == len(ensemble)

        eventually(all_serve, 60, "all members serve")
        assert "leader" in first.values(), f"all serve and none leads: {first}"
