"""`leaderServes=no`: the leader of an ensemble leaves clients to the other members, and is well.

    integration/operators/run -k leader_serves
"""

import contextlib
import json
import pathlib
import subprocess
import threading

import pytest
from kazoo.client import KazooClient

from integration.lib.quenda_server import QuendaServer
from integration.lib.target import TARGET
from integration.lib.zkwire import FLAG, Closed, Conn, Torn, eventually
from integration.operating.cli import quenda, status
from integration.operators.admin import ask, command
from integration.operators.capture_leader_serves import FAILING, GOLDEN, answers, build, settled
from integration.operators.prometheus_text import parse

SPARED = "this member leads and serves no clients (leaderServes=no)"
SESSION_MS = 30_000
SCRIPT = pathlib.Path(__file__).parents[2] / "packaging" / "zkServer.sh"


class Three:
    def __init__(self, folder):
        self.ensemble, self.ports = build(folder, TARGET)

    @property
    def leader(self):
        return settled(self.ensemble, self.ports)

    def followers(self):
        """By number, with the leader in front of them."""
        leader = self.leader
        return leader, [member for member in self.ensemble if member is not leader]

    def port(self, member):
        return self.ports[member.number]


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    built = Three(tmp_path_factory.mktemp("three"))
    with contextlib.closing(built.ensemble):
        built.ensemble.spawn()
        yield built


def is_turned_away(member, **options):
    try:
        member.connect(**options).sock.close()
    except Closed:
        return True
    return False


def is_cut(conn):
    """Whether the server lets go of it, within the time that a test waits for anything."""
    try:
        while True:
            conn.message(wait=20.0)
    except Closed:
        return True
    except TimeoutError:
        return False


def taken_over(member, conn):
    """The session goes on at another member, as soon as that one serves."""
    def attempt():
        try:
            return member.take_over(conn)
        except (Closed, OSError):
            return None

    return eventually(attempt, seconds=30, what=f"{member} takes the session over")


def test_words_and_commands_answer_as_those_of_a_genuine_leader(three):
    leader = three.leader
    golden = json.loads(GOLDEN.read_text())
    assert answers(leader, three.port(leader)) == golden
    monitor = command(three.port(leader), "monitor").json
    assert (monitor["server_state"], monitor["quorum_size"], monitor["learners"]) == ("leader", 3, 2)
    for name in FAILING:
        assert command(three.port(leader), name).status == 200


def test_the_leader_turns_clients_away_and_the_others_read_and_write(three):
    leader, (first, second) = three.followers()
    with first.connect() as one, second.connect() as other:
        one.create("/served", b"1")
        other.sync("/served")
        assert other.get("/served")[0] == b"1"
        other.set("/served", b"2")
        one.sync("/served")
        assert one.get("/served")[0] == b"2"
        assert is_turned_away(leader) and is_turned_away(leader, read_only=True)
        with pytest.raises(Closed):
            leader.take_over(one)
        assert one.get("/served")[0] == b"2", "its session is where it was"


def test_probes_and_status_say_that_it_is_well_and_serves_nobody(three):
    leader, (follower, _) = three.followers()
    port = three.port(leader)
    assert ask(port, "/health/live").status == 200
    assert ask(port, "/health/leader").json == {"status": "leader", "reason": None}
    ready = ask(port, "/health/ready")
    assert ready.status == 503 and ready.json == {"status": "not ready", "reason": SPARED}
    assert ask(three.port(follower), "/health/ready").status == 200
    assert ask(three.port(follower), "/health/leader").status == 503
    code, report = status(follower.address)
    rows = {row["id"]: row["status"] for row in report["members"]}
    assert (code, report["problems"], report["leader"]) == (0, [], leader.number)
    assert (rows[leader.number]["role"], rows[leader.number]["service"]) == ("leader", "leads-only")
    assert {rows[id]["service"] for id in rows if id != leader.number} == {"serving"}
    assert quenda("status", "--servers", leader.address).code == 0, "asked at the leader too"
    figures = parse(ask(port, "/metrics").text)
    assert figures["quenda_leads_only"].value() == 1 and figures["quenda_is_leader"].value() == 1
    assert parse(ask(three.port(follower), "/metrics").text)["quenda_leads_only"].value() == 0
    assert f"quenda {rows[leader.number]['version']} listens on" in leader.log_tail(20_000), "the start is over"


def test_the_container_counts_it_as_healthy(three):
    for member in three.ensemble:
        mode = "leader" if member is three.leader else "follower"
        words = ["bash", SCRIPT, "--config", member.folder, "status"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"Mode: {mode}"), done


def test_sessions_move_on_when_their_member_is_made_the_leader(three):
    leader, (heir, other) = three.followers()
    with heir.connect(timeout=SESSION_MS) as conn:
        conn.create("/mine", b"", flags=FLAG.EPHEMERAL)
        moved = command(three.port(leader), f"transfer_leadership?to={heir.number}", method="POST",
                        headers={"Authorization": "ip"})
        assert moved.status == 200, moved.text
        assert is_cut(conn), "the new leader lets go of its clients"
        assert three.leader is heir and is_turned_away(heir)
        with taken_over(other, conn) as moved:
            assert moved.session == conn.session
            assert moved.exists("/mine").ephemeral_owner == conn.session
    with leader.connect() as conn:
        assert conn.get("/served")[0] == b"2", "who leads no longer serves again"


def test_a_leader_that_is_killed_is_followed_by_one_that_turns_clients_away(three):
    lost, members = three.followers()
    with contextlib.ExitStack() as stack:
        conns = {member.number: stack.enter_context(member.connect(timeout=SESSION_MS)) for member in members}
        for number, conn in conns.items():
            conn.create(f"/of-{number}", b"", flags=FLAG.EPHEMERAL)
        lost.kill9()
        eventually(lambda: len(three.ensemble.modes()) == 1, seconds=60, what="the one that follows serves")
        heir = next(member for member in members if not member.mode())
        other = next(member for member in members if member is not heir)
        eventually(lambda: ask(three.port(heir), "/health/leader").status == 200, seconds=60, what="the heir leads")
        assert is_cut(conns[heir.number]) and is_turned_away(heir)
        moved = stack.enter_context(taken_over(other, conns[heir.number]))
        stayed = stack.enter_context(taken_over(other, conns[other.number]))
        assert moved.exists(f"/of-{heir.number}").ephemeral_owner == conns[heir.number].session
        assert stayed.exists(f"/of-{other.number}").ephemeral_owner == conns[other.number].session
        moved.create("/without-it", b"")
        lost.spawn()
        with lost.connect_soon(seconds=60) as back:
            back.sync("/")
            assert back.exists("/without-it"), "who comes back serves"
        assert three.leader is heir


def test_kazoo_goes_on_through_changes_of_the_leader(three):
    """A client that knows all members keeps its session, whoever leads."""
    _, followers = three.followers()
    client = KazooClient(hosts=three.ensemble.hosts, timeout=20.0)
    client.start(timeout=30)
    try:
        session = client.client_id[0]
        client.create("/kazoo", b"0", ephemeral=True)
        seen = threading.Event()

        @client.DataWatch("/kazoo")
        def look(data, stat):
            if data == b"2":
                seen.set()

        for count, heir in enumerate(followers, 1):
            moved = command(three.port(three.leader), f"transfer_leadership?to={heir.number}", method="POST",
                            headers={"Authorization": "ip"})
            assert moved.status == 200, moved.text
            client.retry(client.set, "/kazoo", str(count).encode())
            assert client.client_id[0] == session
        assert seen.wait(20)
        assert client.retry(client.exists, "/kazoo").ephemeralOwner == session
    finally:
        client.stop()
        client.close()


def test_an_observer_serves_beside_the_only_voter_and_nobody_without_it(tmp_path):
    cfg = {"standaloneEnabled": "false", "reconfigEnabled": "true", "skipACL": "yes"}
    ensemble, ports = build(tmp_path, TARGET, members=2, observers=[2], cfg=cfg)
    voter, observer = ensemble
    with contextlib.closing(ensemble):
        ensemble.spawn()
        observer.wait_serving()
        assert observer.mode() == "observer"
        with observer.connect() as conn:
            conn.create("/a", b"1")
            assert is_turned_away(voter)
            assert status(observer.address)[0] == 0
            with contextlib.suppress(Closed, Torn):
                conn.reconfig(None, str(observer.number), None)
        report = eventually(lambda: status(voter.address)[1] if status(voter.address)[0] == 3 else None, seconds=30)
        (problem,) = report["problems"]
        assert problem.startswith("no member that answers serves clients: member 1 leads")
        assert ask(ports[1], "/health/leader").status == 200 and is_turned_away(voter)
        # The way out.
        voter.stop()
        file = voter.folder / "zoo.cfg"
        file.write_text(file.read_text().replace("leaderServes=no", "leaderServes=yes"))
        with contextlib.closing(voter.start().connect()) as conn:
            assert conn.get("/a")[0] == b"1"


def test_it_has_no_effect_on_a_server_that_runs_alone(tmp_path):
    with QuendaServer(tmp_path, {"leaderServes": "no"}) as server, Conn(server.port) as conn:
        conn.create("/a", b"1")
        assert "leaderServes=no has no effect" in server.log_tail()
