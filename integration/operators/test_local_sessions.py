"""Sessions that only their member knows: `localSessionsEnabled`, `localSessionsUpgradingEnabled`.

    integration/operators/run -k local_sessions
    TARGET=genuine integration/operators/run -k local_sessions      # the same of Apache ZooKeeper

What a test says without looking at the target is what a genuine ensemble does as well.
"""

import contextlib
import json
import os
import random
import re
import time
import urllib.request

import pytest

from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.target import IS_QUENDA, build_server
from integration.lib.zkwire import (
    ERR,
    FLAG,
    OP,
    Closed,
    Conn,
    Refused,
    ZkError,
    create,
    eventually,
    expect,
    four_letter,
    int64,
    set_data,
    ustring,
)

EPHEMERAL_ON_LOCAL_SESSION = -120
SHORT_MS = 2000
CFG = {"4lw.commands.whitelist": "*", "localSessionsEnabled": "true", "reconfigEnabled": "true", "skipACL": "yes"}
UPGRADING = {**CFG, "localSessionsUpgradingEnabled": "true"}


@contextlib.contextmanager
def started(folder, cfg):
    with Ensemble(folder, cfg=cfg) as ensemble:
        # Members of a genuine one show no common zxid before the first entry.
        with ensemble.leader().connect() as client:
            client.create("/first")
        yield ensemble


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    with started(tmp_path_factory.mktemp("local"), CFG) as running:
        yield running


@pytest.fixture(scope="module")
def upgrading(tmp_path_factory):
    with started(tmp_path_factory.mktemp("upgrading"), UPGRADING) as running:
        yield running


def place(ensemble, name):
    """The leader, or a member that follows."""
    return ensemble.leader() if name == "leader" else ensemble.followers()[0]


def another(ensemble, member):
    return next(other for other in ensemble.followers() if other is not member)


def figures(member):
    lines = four_letter(member.port, "mntr").splitlines()
    found = dict(line.split("\t", 1) for line in lines)
    return {"local": int(found["zk_local_sessions"]), "global": int(found["zk_global_sessions"])}


def caught_up(ensemble):
    """Until all members show the same zxid: no entry is on its way. It is given."""

    def common():
        zxids = {member.zxid() for member in ensemble}
        return len(zxids) == 1 and zxids.pop()

    return eventually(common, what="the same zxid everywhere")


def cut(conn):
    conn.sock.close()


def is_resumed(member, conn):
    """Whether the member goes on with the session, once it has seen what the client has."""
    try:
        with contextlib.closing(resume(member, conn).sock):
            return True
    except Refused:
        return False


def resume(member, conn):
    keep = {"session": conn.session, "passwd": conn.passwd, "timeout": conn.timeout, "last_zxid": conn.last_zxid}
    found = member.connect_soon(**keep)
    assert (found.session, found.passwd) == (conn.session, conn.passwd)
    return found


def close(conn):
    reply = conn.call(OP.CLOSE_SESSION).ok()
    cut(conn)
    return reply


def ephemeral(path):
    return create(path, b"", FLAG.EPHEMERAL)


def owners(member):
    """session id → paths of its ephemeral znodes, and all ids of sessions of the cluster, by one `dump` of the leader."""
    text = four_letter(member.port, "dump")
    sessions, rest = text.split("ephemeral nodes dump:\n")
    sessions = sessions[sessions.index("Global ") :]
    ids = set(re.findall(r"^\t?(0x[0-9a-f]+)", sessions, re.M))
    owned = set(re.findall(r"^(0x[0-9a-f]+):$", rest.split("Connections dump:")[0], re.M))
    return owned, ids


@pytest.mark.parametrize("name", ["leader", "follower"])
def test_only_the_member_knows_it(ensemble, name):
    member = place(ensemble, name)
    before, counted = caught_up(ensemble), figures(member)
    client = member.connect()
    client.ping()
    assert figures(member) == {"local": counted["local"] + 1, "global": counted["global"]}
    assert figures(another(ensemble, member))["global"] == counted["global"]
    close(client)
    assert caught_up(ensemble) == before
    assert eventually(lambda: figures(member) == counted, what="the end of the session")


@pytest.mark.parametrize("name", ["leader", "follower"])
def test_it_reads_writes_and_watches(ensemble, name):
    member, top = place(ensemble, name), f"/reads-{name}"
    client, elsewhere = member.connect(), another(ensemble, member).connect()
    before = caught_up(ensemble)
    client.create(top, b"1")
    client.get(top, watch=True)
    client.sync(top)
    elsewhere.sync(top)
    elsewhere.set(top, b"2")
    client.sync(top)
    assert [event.path for event in client.events] == [top]
    assert client.get(top)[0] == b"2"
    client.multi((OP.SET_DATA, set_data(top, b"3")), (OP.CREATE, create(top + "/a")))
    with expect(ERR.BAD_VERSION):
        client.set(top, b"4", version=9)
    assert client.get("/zookeeper/config")[1].version == -1
    assert caught_up(ensemble) == before + 4
    close(client)
    close(elsewhere)


@pytest.mark.parametrize("name", ["leader", "follower"])
def test_it_owns_no_ephemeral_znode(ensemble, name):
    member, top = place(ensemble, name), f"/owns-{name}"
    client = member.connect()
    client.create(top)
    before = caught_up(ensemble)
    for op, path in (
        (OP.CREATE, top + "/e"),
        (OP.CREATE2, top + "/e"),
        (OP.CREATE, top),
        (OP.CREATE, "/none/e"),
        (OP.CREATE, "no path"),
    ):
        with expect(EPHEMERAL_ON_LOCAL_SESSION):
            client.call(op, ephemeral(path)).ok()
    codes = [
        result.err
        for result in client.multi(
            (OP.SET_DATA, set_data(top, b"x")), (OP.CREATE, ephemeral(top + "/e")), (OP.SET_DATA, set_data(top, b"y"))
        )
    ]
    # Through a follower the genuine one shows the leader's view, which does not know the session.
    expected = EPHEMERAL_ON_LOCAL_SESSION if IS_QUENDA or name == "leader" else ERR.SESSION_EXPIRED
    assert codes == [0, expected, ERR.RUNTIME_INCONSISTENCY]
    assert caught_up(ensemble) == before + 6
    assert client.get(top)[0] == b"" and client.children(top) == []
    assert member.connect().ephemerals() == []
    close(client)


@pytest.mark.parametrize("name", ["leader", "follower"])
def test_it_is_resumed_at_its_member_alone(ensemble, name):
    member = place(ensemble, name)
    client = member.connect()
    client.create(f"/resumed-{name}")
    before = caught_up(ensemble)
    assert not is_resumed(another(ensemble, member), client)
    client.ping()
    second = resume(member, client)
    with pytest.raises(Closed):
        client.ping()
    cut(second)
    third = resume(member, second)
    assert third.get(f"/resumed-{name}")[0] == b""
    with pytest.raises(Refused):
        member.take_over(third, passwd=bytes(16))
    if not IS_QUENDA:
        # There a wrong password is enough to end a connection.
        third = resume(member, third)
    third.ping()
    assert caught_up(ensemble) == before
    close(third)
    assert not is_resumed(member, third)


def test_it_ends_by_silence(ensemble):
    member = place(ensemble, "follower")
    counted = figures(member)["local"]
    before = caught_up(ensemble)
    quiet, speaks, gone = (member.connect(timeout=SHORT_MS) for _ in range(3))
    cut(gone)
    until = time.monotonic() + 2.5 * SHORT_MS / 1000
    while time.monotonic() < until:
        speaks.ping()
        time.sleep(0.2)
    with pytest.raises(Closed):
        quiet.frame()
    assert not is_resumed(member, quiet) and not is_resumed(member, gone)
    assert figures(member)["local"] == counted + 1
    assert caught_up(ensemble) == before
    close(speaks)


def test_what_an_earlier_connection_has_sent_comes_first(ensemble):
    """A client that comes again at once sees its write, or never does."""
    member = place(ensemble, "follower")
    client = member.connect()
    client.create("/order", b"0")
    for number in range(1, 60):
        client.send(OP.SET_DATA, set_data("/order", str(number).encode()))
        if number % 2:
            cut(client)
        client = resume(member, client)
        seen = client.get("/order")[0]
        client.set("/order", b"after")
        client.sync("/order")
        assert client.get("/order")[0] == b"after", f"{number}: {seen}"
    close(client)


def test_watches_come_back_with_the_client(ensemble):
    member = place(ensemble, "follower")
    client, other = member.connect(), another(ensemble, member).connect()
    client.create("/watched")
    client.create("/recursive")
    client.get("/watched", watch=True)
    client.add_watch("/recursive", recursive=True)
    cut(client)
    other.sync("/")
    other.set("/watched", b"x")
    seen = client.last_zxid
    client = resume(member, client)
    client.sync("/")
    client.set_watches(seen, data=["/watched"], persistent=[], recursive=["/recursive"])
    other.create("/recursive/a")
    client.sync("/")
    assert [event.path for event in client.events] == ["/watched", "/recursive/a"]
    close(client)
    close(other)


def test_dump_shows_them_apart(ensemble):
    for member in ensemble:
        leads = member is ensemble.leader()
        client = member.connect()
        text = four_letter(member.port, "dump")
        local, rest = re.fullmatch(
            r"SessionTracker dump:\nLocal (Session Sets.*?)\n(Global .*?)ephemeral nodes dump:.*", text, re.S
        ).groups()
        assert re.match(r"Session Sets \(\d+\)/\(\d+\):", local)
        assert re.search(rf"^\t{client.session:#x}$", local, re.M), text
        assert re.match(r"Global Session Sets \(\d+\)/\(0\):" if leads else r"Global Sessions\(0\):", rest), text
        assert f"sid={client.session:#x}" in four_letter(member.port, "cons")
        close(client)


def test_http_shows_them_with_the_others(tmp_path_factory):
    ports = {number: free_port() for number in (1, 2, 3)}
    own = {number: {"admin.enableServer": "true", "admin.serverPort": str(port)} for number, port in ports.items()}
    with Ensemble(tmp_path_factory.mktemp("http"), cfg=CFG, member_cfg=own) as running:
        for member in running:
            client = member.connect()
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[member.number]}/commands/dump", timeout=20) as answer:
                expiries = json.load(answer)["expiry_time_to_session_ids"]
            shown = [session for sessions in expiries.values() for session in sessions]
            # A genuine follower shows none at all.
            assert client.session in shown or not (IS_QUENDA or member is running.leader())


def test_it_may_change_the_members(ensemble):
    client = place(ensemble, "follower").connect()
    client.call(OP.RECONFIG, ustring("") + ustring("9") + ustring(None) + int64(-1)).ok()
    close(client)


@pytest.mark.parametrize("name", ["leader", "follower"])
def test_an_ephemeral_znode_makes_it_global(upgrading, name):
    member, top = place(upgrading, name), f"/upgrade-{name}"
    client = member.connect(timeout=6000)
    client.create(top)
    assert not is_resumed(another(upgrading, member), client)
    before, counted = caught_up(upgrading), figures(member)
    client.call(OP.CREATE, ephemeral(top + "/e")).ok()
    assert caught_up(upgrading) == before + 2
    assert figures(member) == {"local": counted["local"] - 1, "global": counted["global"] + 1}
    assert client.exists(top + "/e").ephemeral_owner == client.session
    moved = resume(another(upgrading, member), client)
    if IS_QUENDA:
        # A genuine member lets the client read on.
        with pytest.raises(Closed):
            client.frame()
    assert moved.exists(top + "/e").ephemeral_owner == moved.session
    moved.call(OP.CREATE, ephemeral(top + "/f")).ok()
    close(moved)
    assert caught_up(upgrading) == before + 4
    with member.connect() as reader:
        assert reader.children(top) == []


def test_what_upgrades_and_what_does_not(upgrading):
    member = place(upgrading, "follower")

    def zxids(*operations):
        """How many zxids these take in a new session, its end apart, and the errors."""
        client = member.connect()
        before, errors = caught_up(upgrading), []
        for op, body in operations:
            if op == OP.MULTI:
                errors.append([result.err for result in client.multi(*body)])
            else:
                errors.append(client.call(op, body).err)
        taken = caught_up(upgrading) - before
        close(client)
        return taken, errors

    assert zxids((OP.CREATE, create("/plain"))) == (1, [0])
    assert zxids((OP.MULTI, [(OP.SET_DATA, set_data("/plain", b"x"))])) == (1, [[0]])
    assert zxids((OP.MULTI, [(OP.CREATE, ephemeral("/m"))])) == (2, [[0]])
    assert zxids((OP.CREATE2, create("/s-", b"", FLAG.EPHEMERAL_SEQUENTIAL))) == (2, [0])
    # Also in vain.
    assert zxids((OP.CREATE, ephemeral("/none/e"))) == (2, [ERR.NO_NODE])
    # Once is enough.
    assert zxids((OP.CREATE, ephemeral("/a")), (OP.CREATE, ephemeral("/b"))) == (3, [0, 0])


def test_two_ephemeral_znodes_in_one_go(upgrading):
    member = place(upgrading, "follower")
    client = member.connect()
    before = caught_up(upgrading)
    for path in ("/go-1", "/go-2"):
        client.send(OP.CREATE, ephemeral(path))
    client.send(OP.CLOSE_SESSION)
    assert [client.reply().err for _ in range(3)] == [0, 0, 0]
    assert caught_up(upgrading) == before + 4
    with member.connect() as reader:
        assert reader.exists("/go-1") is None and reader.exists("/go-2") is None


def test_no_ephemeral_znode_is_without_an_owner(upgrading):
    """Clients leave, come again here and elsewhere, and end their sessions while an upgrade is under way."""
    seed = int(os.environ.get("QUENDA_SEED") or time.time_ns() % 1_000_000)
    print(f"QUENDA_SEED={seed}")
    dice = random.Random(seed)
    members = list(upgrading)
    with members[0].connect() as maker:
        maker.create("/race")
    for number in range(120):
        client = dice.choice(members).connect_soon(timeout=SHORT_MS)
        client.send(OP.CREATE, ephemeral(f"/race/{number}"))
        for _ in range(dice.randrange(3)):
            client.send(OP.CREATE, ephemeral(f"/race/{number}-"))
        what = dice.randrange(4)
        if what == 0:
            client.send(OP.CLOSE_SESSION)
        if what != 1:
            cut(client)
        with contextlib.suppress(Refused):
            cut(resume(dice.choice(members), client))
        if number % 10 == 0:
            owned, sessions = owners(upgrading.leader())
            assert owned <= sessions
    owned, sessions = owners(upgrading.leader())
    assert owned <= sessions
    # Nobody speaks for them any more.
    with members[0].connect() as reader:
        eventually(lambda: reader.sync("/") and reader.children("/race") == [], seconds=30, what="the end of all")


def test_a_member_that_starts_again_knows_none(upgrading):
    member = place(upgrading, "follower")
    clients = [member.connect(timeout=20000) for _ in range(20)]
    with_ephemeral = clients.pop()
    with_ephemeral.call(OP.CREATE, ephemeral("/kept")).ok()
    member.restart(hard=True)
    assert not any(is_resumed(member, client) for client in clients)
    # One that has become the cluster's lives on.
    kept = resume(member, with_ephemeral)
    assert kept.exists("/kept").ephemeral_owner == kept.session
    fresh = {member.connect().session for _ in range(20)}
    assert len(fresh) == 20 and not fresh & {client.session for client in clients}
    close(kept)


def test_another_leader(upgrading):
    leader = upgrading.leader()
    member, client = upgrading.followers()[0], None
    client = member.connect(timeout=20000)
    client.create("/led", b"0")
    leader.kill9()
    acknowledged = 0
    try:
        for number in range(1, 1000):
            client.set("/led", str(number).encode())
            acknowledged = number
    except (Closed, OSError, ZkError):
        pass
    upgrading.wait_leader()
    member.wait_serving()
    if not IS_QUENDA:
        # Its members forget them with every election.
        assert not is_resumed(member, client)
        leader.start()
        return
    client = resume(member, client)
    client.sync("/led")
    assert int(client.get("/led")[0]) in (acknowledged, acknowledged + 1)
    client.call(OP.CREATE, ephemeral("/led-e")).ok()
    leader.start()
    moved = resume(leader, client)
    assert moved.exists("/led-e").ephemeral_owner == moved.session
    close(moved)


@pytest.mark.skipif(not IS_QUENDA, reason="a genuine member forgets its local sessions without a quorum")
def test_without_a_quorum(upgrading):
    """An upgrade that nobody can decide: the client is let go, and no ephemeral znode stays without its session."""
    leader, member = upgrading.leader(), upgrading.followers()[0]
    other = another(upgrading, member)
    client, quiet = member.connect(timeout=30000), member.connect(timeout=30000)
    client.create("/alone")
    leader.kill9()
    other.kill9()
    try:
        client.send(OP.CREATE, ephemeral("/alone/e"))
        with pytest.raises((Closed, OSError)):
            client.reply()
        eventually(lambda: not member.serving(), what="a member that knows that it is alone")
    finally:
        leader.start()
        other.start()
    upgrading.wait_serving()
    # This one had nothing under way.
    assert is_resumed(member, quiet)
    resumed = is_resumed(member, client)
    with member.connect() as reader:
        reader.sync("/")
        stat = reader.exists("/alone/e")
        assert stat is None or (resumed and stat.ephemeral_owner == client.session)


def test_throttled_by_their_own_weight(tmp_path_factory):
    cfg = {
        **CFG,
        "connection_throttle_tokens": "20",
        "connection_throttle_fill_time": "100000",
        "connection_throttle_weight_enabled": "true",
        "connection_throttle_local_session_weight": "5",
        "connection_throttle_global_session_weight": "20",
    }
    if not IS_QUENDA:
        pytest.skip("a genuine one reads these as system properties")
    with Ensemble(tmp_path_factory.mktemp("throttled"), cfg=cfg) as ensemble:
        member, taken = ensemble.leader(), 0
        with pytest.raises((Closed, OSError)):
            for _ in range(10):
                member.connect()
                taken += 1
        assert taken == 4


def test_a_server_that_runs_alone_has_none(tmp_path):
    server = build_server(tmp_path / "alone", UPGRADING, heap="200m")
    server.start()
    try:
        before = four_letter(server.port, "srvr")
        client = Conn(server.port)
        client.call(OP.CREATE, ephemeral("/e")).ok()
        text = four_letter(server.port, "dump")
        assert "Local" not in text and f"\t{client.session:#x}\n" in text
        assert "Zxid: 0x" in before and "zk_local_sessions\t0" in four_letter(server.port, "mntr")
    finally:
        server.kill9()
