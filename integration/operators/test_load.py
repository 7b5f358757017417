"""Who loads the server: the report names the right client, session, path and operation; herds, slow requests and misuse
are told; throttles act and let go again; a small client is served beside a flood; memory stays bounded.

The mix of requests is drawn from a seed that is printed; QUENDA_SEED sets it.
"""

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time

import pytest

from integration.lib.ensemble import Ensemble
from integration.lib.quenda_server import QuendaServer
from integration.lib.zkwire import (
    FLAG,
    OP,
    Closed,
    Conn,
    create,
    four_letter,
    multi,
    read,
    request,
    set_data,
)

PATIENCE = 20.0
# Threads that serve clients: each may look at a sum over all connections at the same moment, and take what there is room for.
AT_ONCE = len(os.sched_getaffinity(0))


def wait_for(condition, what, patience=PATIENCE):
    """The first true value of `condition()`."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: not within {patience} s"
        time.sleep(0.05)


def top(port, host="127.0.0.1"):
    answer = four_letter(port, "qtop", host)
    assert answer.count("\n") == 1 and answer.endswith("\n"), answer
    return json.loads(answer)


def figures(port):
    lines = four_letter(port, "mntr").splitlines()
    return {name: value for name, value in (line.split("\t", 1) for line in lines)}


def row(rows, **wanted):
    found = [one for one in rows if all(one[key] == value for key, value in wanted.items())]
    assert len(found) == 1, f"{wanted} in {rows}"
    return found[0]


@contextlib.contextmanager
def server(tmp_path_factory, **cfg):
    cfg = {key.replace("__", "."): value for key, value in cfg.items()}
    with QuendaServer(tmp_path_factory.mktemp("load"), cfg) as started:
        yield started


THRESHOLDS = {
    "quenda__load__herdWatchers": "20",
    "quenda__load__largeWriteBytes": "50000",
    "quenda__load__hotWritesPerSecond": "40",
    "quenda__load__manyChildren": "300",
    "quenda__load__sequentialCreatesPerSecond": "40",
    "quenda__load__slowRequestMs": "300",
}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """One member that tells early; its whitelist allows no word of its own accord but those of tools."""
    with server(tmp_path_factory, **THRESHOLDS, **{"4lw__commands__whitelist": "srvr,mntr"}) as started:
        yield started


def address(conn):
    host, port = conn.sock.getsockname()[:2]
    return f"{host}:{port}"


def mixed_load(connect, seed):
    """Three clients with a known mix; the connections and how many requests each has made."""
    print(f"seed {seed}")
    dice = random.Random(seed)
    heavy, light, writer = connect(), connect(), connect()
    for path in ("/shop", "/shop/carts", "/shop/orders", "/other"):
        with contextlib.suppress(Exception):
            heavy.create(path, b"x" * 10)
    plan = [(heavy, OP.GET_DATA, read("/shop/carts"))] * 600
    plan += [(light, OP.EXISTS, read("/other"))] * 40
    plan += [(writer, OP.SET_DATA, set_data("/shop/orders", b"y" * 500))] * 90
    dice.shuffle(plan)
    for conn, op, body in plan:
        conn.call(op, body)
    return heavy, light, writer


def check_mix(report, heavy, light, writer):
    session = row(report["sessions"], session=f"{heavy.session:#x}")
    assert report["sessions"][0] == session, "the heaviest comes first"
    assert session["client"] == address(heavy)
    assert 604 <= session["requests"] <= 620 and session["missed_at_most"] == 0
    assert row(report["sessions"], session=f"{light.session:#x}")["requests"] in range(40, 50)
    assert row(report["sessions"], session=f"{writer.session:#x}")["bytes_in"] > 90 * 500
    assert row(report["operations"], name="getData")["requests"] >= 600
    assert row(report["operations"], name="setData")["requests"] >= 90
    assert report["operations"][0]["name"] == "getData"
    assert sum(session["latency"]) == session["requests"]
    # Paths are estimated from samples beyond some dozens a second.
    assert report["prefixes"][0]["name"] == "/shop/carts"
    assert 400 <= report["prefixes"][0]["requests"] <= 800
    assert report["hot"]["read"][0]["path"] == "/shop/carts"
    hot = report["hot"]["written"][0]
    assert hot["path"] == "/shop/orders" and hot["session"] == f"{writer.session:#x}"
    assert hot["client"] == address(writer)
    assert report["sampled"].startswith("1/")


def test_one_member_names_client_session_path_and_operation(watched):
    seed = int(os.environ.get("QUENDA_SEED", random.randrange(1 << 30)))
    clients = mixed_load(lambda: Conn(watched.port), seed)
    report = top(watched.port)
    assert report["clients"][0]["name"] == "127.0.0.1"
    assert report["clients"][0]["requests"] == report["totals"]["requests"]
    check_mix(report, *clients)
    for conn in clients:
        conn.sock.close()


def test_each_of_three_members_tells_of_its_own_clients(tmp_path):
    with Ensemble(tmp_path, cfg={"4lw.commands.whitelist": "*"}) as ensemble:
        seed = int(os.environ.get("QUENDA_SEED", random.randrange(1 << 30)))
        follower = next(member for member in ensemble if member.mode() == "follower")
        clients = mixed_load(follower.connect, seed)
        check_mix(top(follower.port, follower.host), *clients)
        for member in ensemble:
            if member is not follower:
                report = top(member.port, member.host)
                assert report["totals"]["requests"] == 0, report["operations"]


def test_the_word_is_for_the_own_machine_or_by_the_whitelist(tmp_path_factory):
    own = [one for one in addresses() if not one.startswith("127.")]
    if not own:
        pytest.skip("this machine has no other address")
    cfg = {"4lw.commands.whitelist": "ruok", "clientPortAddress": "0.0.0.0"}
    with QuendaServer(tmp_path_factory.mktemp("word"), cfg) as started:
        assert four_letter(started.port, "qtop", own[0]) == (
            "qtop is not executed because it is not in the whitelist.\n"
        )
        assert top(started.port)["member"] == 1
    cfg["4lw.commands.whitelist"] = "qtop"
    with QuendaServer(tmp_path_factory.mktemp("listed"), cfg) as started, Conn(started.port, host=own[0]) as conn:
        conn.create("/seen-from-elsewhere", b"")
        report = top(started.port, own[0])
        assert row(report["sessions"], session=f"{conn.session:#x}")["requests"] >= 1


def addresses():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return []
        return [probe.getsockname()[0]]


def test_a_herd_is_told_with_its_path(watched):
    owner = Conn(watched.port)
    owner.create("/herd", b"")
    watchers = [Conn(watched.port) for _ in range(25)]
    for conn in watchers:
        conn.get("/herd", watch=True)
    assert {"path": "/herd", "watchers": 25} in top(watched.port)["hot"]["watched"]
    before = top(watched.port)["counts"]["herds"]
    owner.call(OP.SET_DATA, set_data("/herd", b"x"))
    for conn in watchers:
        assert conn.event().path == "/herd"
    herd = wait_for(lambda: top(watched.port)["herds"], "the herd in the report")[0]
    assert (herd["path"], herd["watchers"]) == ("/herd", 25)
    assert top(watched.port)["counts"]["herds"] == before + 1
    wait_for(lambda: 'herd' in watched.log_tail(20000) and 'path="/herd" watchers=25' in watched.log_tail(20000), "the log line")
    # Those who watch no more wake nobody.
    owner.call(OP.SET_DATA, set_data("/herd", b"y"))
    assert top(watched.port)["counts"]["herds"] == before + 1
    for conn in [owner, *watchers]:
        conn.sock.close()


def test_misuse_is_named_with_path_and_client(watched):
    conn = Conn(watched.port)
    for path in ("/blob", "/counter", "/queue", "/many"):
        conn.create(path, b"")
    secret = b"do not log me " * 5000
    conn.call(OP.SET_DATA, set_data("/blob", secret)).ok()
    many = [(OP.CREATE, create(f"/many/{number}")) for number in range(400)]
    for reply in conn.pipeline(many):
        reply.ok()
    # Above 40 a second for as long as it takes to fill five seconds of the window.
    sequential = [(OP.CREATE, create("/queue/n-", flags=FLAG.EPHEMERAL_SEQUENTIAL))] * 60
    wanted = {("large-write", "/blob"), ("hot-writes", "/counter"), ("many-children", "/many"), ("sequential-creates", "/queue")}

    def named():
        for _ in range(5):
            conn.pipeline([(OP.SET_DATA, set_data("/counter", b"1"))] * 60)
        conn.pipeline(sequential)
        conn.create(f"/many/more{time.monotonic_ns()}", b"")
        return wanted <= {(one["kind"], one["path"]) for one in top(watched.port)["misuse"]}

    wait_for(named, "all kinds of misuse", 40.0)
    for one in top(watched.port)["misuse"]:
        if one["path"] in ("/blob", "/counter"):
            assert one["session"] == f"{conn.session:#x}" and one["client"] == address(conn)
            assert one["value"] > one["limit"] > 0
    log = watched.log_path.read_text("utf-8", "replace")
    for kind, path in wanted:
        lines = [line for line in log.splitlines() if f'kind="{kind}" path="{path}"' in line]
        assert 1 <= len(lines) <= 3, f"{kind} {path}: {lines}"
    assert "do not log me" not in log
    conn.sock.close()


def test_slow_requests_are_logged_with_all_but_the_data(tmp_path_factory):
    with server(tmp_path_factory, quenda__load__slowRequestMs="200") as started:
        conn = Conn(started.port)
        conn.create("/slow", b"")
        # The whole process stands still while the answer is due: for the client that is a slow server.
        conn.pipeline([(OP.SET_DATA, set_data("/slow", b"secret"))] * 10)
        attempts = 0
        while not top(started.port)["slow"]:
            attempts += 1
            assert attempts < 30
            stop = threading.Timer(0.02 + 0.001 * (attempts % 7), os.kill, (started.pid, signal.SIGSTOP))
            go_on = threading.Timer(0.5, os.kill, (started.pid, signal.SIGCONT))
            stop.start()
            go_on.start()
            # Enough that some of them are under way when it stops, whatever the moment.
            conn.pipeline([(OP.SET_DATA, set_data("/slow", b"secret"))] * 10_000, window=200)
            stop.join()
            go_on.join()
        slow = top(started.port)["slow"][0]
        assert (slow["operation"], slow["path"]) == ("setData", "/slow")
        assert slow["session"] == f"{conn.session:#x}" and slow["client"] == address(conn)
        assert slow["total_ms"] == slow["queue_ms"] + slow["commit_ms"] >= 200
        line = next(line for line in started.log_tail(20000).splitlines() if "slow requests" in line)
        assert 'op="setData" path="/slow"' in line and "secret" not in line
        conn.sock.close()


def test_many_paths_and_sessions_cost_no_memory(tmp_path_factory):
    with server(tmp_path_factory, maxClientCnxns="0") as started:
        conn = Conn(started.port)

        def read_others(first, count):
            frames = [(OP.EXISTS, read(f"/no/such/{number}/{'x' * 60}")) for number in range(first, first + count)]
            conn.pipeline(frames, window=2000)

        read_others(0, 40_000)
        top(started.port)
        before = resident(started.pid)
        for part in range(1, 5):
            read_others(part * 40_000, 40_000)
            top(started.port)
        for _ in range(2000):
            with Conn(started.port) as one:
                one.call(OP.EXISTS, read("/"))
        report = top(started.port)
        grown = resident(started.pid) - before
        assert grown < 24 << 20, f"{grown >> 20} MiB more for 200 000 paths and 2 000 sessions"
        assert len(report["hot"]["read"]) <= 20 and len(report["sessions"]) <= 20
        assert row(report["sessions"], session=f"{conn.session:#x}")["requests"] >= 150_000
        assert report["prefixes"][0]["name"] == "/no/such"
        conn.sock.close()


def resident(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- throttles --------------------------------------------------------------------------------------------------------


def test_sessions_are_opened_as_fast_as_the_bucket_fills(tmp_path_factory):
    cfg = {"connectionMaxTokens": "6", "connection_throttle_fill_time": "2000", "connection_throttle_fill_count": "6"}
    with QuendaServer(tmp_path_factory.mktemp("tokens"), cfg) as started:
        opened, refused = [], 0
        while not refused and len(opened) < 50:
            try:
                opened.append(Conn(started.port))
            except Closed:
                refused += 1
        assert refused and 1 <= len(opened) <= 20, f"{len(opened)} opened"
        # Those who have a session keep it, and the bucket fills again.
        opened[0].create("/kept", b"")

        def opens():
            try:
                return Conn(started.port)
            except Closed:
                return None

        wait_for(opens, "another session").sock.close()
        told = figures(started.port)
        assert int(told["zk_connection_rejected"]) >= refused
        assert float(told["zk_connection_drop_probability"]) == 0.0
        assert float(told["zk_max_connection_token_deficit"]) >= 5


@pytest.fixture
def stopped_disk(tmp_path_factory):
    """Three members of which one serves clients and the others stand still: what is written waits."""
    with Ensemble(
        tmp_path_factory.mktemp("throttle"),
        cfg={
            "request_throttle_max_requests": "40",
            "request_throttle_stall_time": "20",
            "throttledOpWaitTime": "100",
            "largeRequestThreshold": "100000",
            "largeRequestMaxBytes": "250000",
            "tickTime": "2000",
        },
    ) as ensemble:
        yield ensemble


def test_throttles_of_requests_act_and_let_go(stopped_disk):
    leader = stopped_disk.wait_leader()
    clients = [leader.connect() for _ in range(4)]
    clients[0].create("/t", b"")
    before = figures(leader.port)
    others = [member for member in stopped_disk if member is not leader]
    for member in others:
        member.pause()
    # Nothing is committed now: what is asked for waits, up to the bound, and the rest is not taken.
    frames = b"".join(request(number, OP.SET_DATA, set_data("/t", b"x")) for number in range(1, 200))
    for conn in clients:
        conn.send_bytes(frames)

    def waits():
        return int(figures(leader.port)["zk_request_throttle_wait_count"]) > int(before["zk_request_throttle_wait_count"])

    wait_for(waits, "connections that are held back")
    assert before["zk_cnt_request_throttle_queue_time_ms"] == "0"
    told = int(figures(leader.port)["zk_outstanding_requests"])
    assert told <= AT_ONCE * 40, f"{told} requests wait, the bound is 40"
    time.sleep(0.3)  # longer than throttled_op_wait_time
    for member in others:
        member.resume()
    errors = []
    for conn in clients:
        for _ in range(1, 200):
            try:
                errors.append(conn.reply().err)
            except Closed:
                break  # the leader gave up leading meanwhile
    assert errors, "nobody was answered"
    assert -127 in errors, f"answers: {sorted(set(errors))}"
    assert set(errors) <= {0, -127}
    # Notes are handed over once in a second.
    wait_for(lambda: int(figures(leader.port)["zk_max_request_throttle_queue_time_ms"]) >= 300, "how long requests waited")
    leader = stopped_disk.wait_leader()
    fresh = leader.connect()
    fresh.call(OP.SET_DATA, set_data("/t", b"free again")).ok()


def test_no_more_than_the_limit_wait_and_a_single_request_is_taken(tmp_path):
    # Two other voters: each member takes half of the limit.
    with Ensemble(tmp_path, cfg={"globalOutstandingLimit": "80"}) as ensemble:
        leader = ensemble.wait_leader()
        clients = [leader.connect() for _ in range(4)]
        modest = leader.connect()
        modest.create("/bound", b"")
        others = [member for member in ensemble if member is not leader]
        for member in others:
            member.pause()
        frames = b"".join(request(number, OP.SET_DATA, set_data("/bound", b"x")) for number in range(1, 200))
        for conn in clients:
            conn.send_bytes(frames)

        def waiting():
            return int(figures(leader.port)["zk_outstanding_requests"])

        wait_for(lambda: waiting() >= 40, "as many requests as may wait")
        floods = waiting()
        modest.send_bytes(request(1, OP.SET_DATA, set_data("/bound", b"one")))
        wait_for(lambda: waiting() > floods, "the request of a client that has no other")
        assert waiting() <= AT_ONCE * 40 + 1
        for member in others:
            member.resume()
        # Whoever is held back goes on, unless the leader has given up leading meanwhile: then it closed all connections.
        for conn in clients:
            with contextlib.suppress(Closed):
                assert [conn.reply().err for _ in range(1, 200)] == [0] * 199


def test_large_requests_in_flight_are_bounded(stopped_disk):
    leader = stopped_disk.wait_leader()
    clients = [leader.connect() for _ in range(4)]
    small = leader.connect()
    small.create("/large", b"")
    others = [member for member in stopped_disk if member is not leader]
    for member in others:
        member.pause()
    big = request(1, OP.SET_DATA, set_data("/large", b"x" * 110_000))
    for conn in clients:
        conn.send_bytes(big)

    def rejected():
        return int(figures(leader.port)["zk_large_requests_rejected"]) >= 1

    wait_for(rejected, "a large request that is refused")
    for member in others:
        member.resume()
    served = 0
    for conn in clients:
        with contextlib.suppress(Closed):
            served += conn.reply().err == 0
    assert served <= 2
    leader = stopped_disk.wait_leader()
    again = leader.connect()
    again.call(OP.SET_DATA, set_data("/large", b"x" * 110_000)).ok()


# --- fairness ---------------------------------------------------------------------------------------------------------


class Flood:
    """A client that pipelines without end and reads its answers, in a thread."""

    def __init__(self, port, frame):
        self.conn = Conn(port)
        self.frame = frame
        self.answered = 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.send, daemon=True), threading.Thread(target=self.receive, daemon=True)]
        for thread in self.threads:
            thread.start()

    def send(self):
        with contextlib.suppress(OSError):
            while not self.over.is_set():
                self.conn.sock.sendall(self.frame)

    def receive(self):
        with contextlib.suppress(OSError):
            while not self.over.is_set():
                piece = self.conn.sock.recv(1 << 20)
                if not piece:
                    return
                self.answered += len(piece)

    def stop(self):
        self.over.set()
        self.conn.sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(5)
        self.conn.sock.close()


FLOODS = {
    "small writes": b"".join(request(number, OP.SET_DATA, set_data("/flood", b"x" * 20)) for number in range(1, 2000)),
    "writes of 900 kB": request(1, OP.SET_DATA, set_data("/flood", b"x" * 900_000)),
    "reads": b"".join(request(number, OP.GET_DATA, read("/flood")) for number in range(1, 2000)),
    "multis": request(1, OP.MULTI, multi(*[(OP.SET_DATA, set_data("/flood", b"x" * 100))] * 500)),
}


@pytest.mark.parametrize("kind", FLOODS)
def test_a_small_client_is_served_beside_a_flood(watched, kind):
    small = Conn(watched.port)
    for path in ("/flood", "/small"):
        with contextlib.suppress(Exception):
            small.create(path, b"")
    flood = Flood(watched.port, FLOODS[kind])
    try:
        wait_for(lambda: flood.answered > 0, "the flood")
        slowest = 0.0
        for number in range(40):
            started = time.monotonic()
            small.call(OP.SET_DATA, set_data("/small", b"%d" % number)).ok()
            data, _ = small.get("/small")
            slowest = max(slowest, time.monotonic() - started)
            assert data == b"%d" % number
        before = flood.answered
        wait_for(lambda: flood.answered > before, "the flood goes on")
    finally:
        flood.stop()
    print(f"{kind}: the slowest of 40 pairs took {slowest * 1000:.0f} ms")
    assert slowest < 5.0
    small.sock.close()


def test_floods_share_the_limit_alike(tmp_path_factory):
    limit, clients = 50, 6
    with server(tmp_path_factory, globalOutstandingLimit=str(limit)) as started:
        Conn(started.port).create("/flood", b"")
        floods = [Flood(started.port, FLOODS["small writes"]) for _ in range(clients)]
        try:
            wait_for(lambda: all(flood.answered for flood in floods), "answers for each")
            before = [flood.answered for flood in floods]
            most = 0

            def served():
                nonlocal most
                most = max(most, int(figures(started.port)["zk_outstanding_requests"]))
                return [flood.answered - then for flood, then in zip(floods, before, strict=True)]

            # Some hundred turns each, were it alike.
            wait_for(lambda: sum(served()) > clients * 500 * 6 * 88, "answers")
            bytes_each = served()
        finally:
            for flood in floods:
                flood.stop()
    print(f"bytes of answers for each: {bytes_each}; {most} requests waited at most")
    assert min(bytes_each) * 3 > max(bytes_each), bytes_each
    assert most <= AT_ONCE * limit, f"{most} requests waited, the limit is {limit}"


def test_soft_quotas_are_told_in_zookeepers_words(watched):
    conn = Conn(watched.port)
    conn.create("/soft", b"")
    conn.create("/zookeeper/quota/soft", b"")
    conn.create("/zookeeper/quota/soft/zookeeper_limits", b"count=3,bytes=-1=;byteHardLimit=-1;countHardLimit=-1")
    conn.create("/zookeeper/quota/soft/zookeeper_stats", b"count=0,bytes=0")
    for number in range(6):
        conn.create(f"/soft/{number}", b"")  # never refused
    wanted = "Quota exceeded: /soft [current count=4, softCountLimit=3]"
    wait_for(lambda: wanted in watched.log_path.read_text("utf-8", "replace"), "the warning")
    assert watched.log_path.read_text("utf-8", "replace").count("Quota exceeded: /soft") == 1
    data, _ = conn.get("/zookeeper/quota/soft/zookeeper_stats")
    assert data == b"count=7,bytes=0"
    conn.sock.close()
