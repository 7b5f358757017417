"""The shell's commands that zkCli does not have: tree, find, du, locks, watch, top.

They work with a genuine server as well (TARGET=genuine), but for top.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time

import pytest
from kazoo.client import KazooClient

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from integration.lib.quenda_server import quenda_binary  # noqa: E402
from integration.lib.target import IS_QUENDA, build_server  # noqa: E402

PATIENCE = 30.0


def soon(condition):
    """The first true value of a condition."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with build_server(tmp_path_factory.mktemp("server"), {}) as server:
        yield server
        assert server.alive(), server.log_tail()


@pytest.fixture(scope="module")
def zk(server):
    client = KazooClient(server.hosts)
    client.start()
    yield client
    client.stop()
    client.close()


class Shell:
    def __init__(self, hosts):
        self.hosts = hosts

    def command(self, *words, options=()):
        return [str(quenda_binary()), "shell", "--server", self.hosts, "-q", *options, *map(str, words)]

    def run(self, *words, options=()):
        return subprocess.run(self.command(*words, options=options), capture_output=True, text=True, timeout=60,
                              check=False, stdin=subprocess.DEVNULL)

    def __call__(self, *words):
        answer = self.run(*words)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def json(self, *words):
        answer = self.run(*words, options=["--json"])
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def shell(server):
    return Shell(server.hosts)


@pytest.fixture
def client(server):
    """`client()` gives one more session."""
    with contextlib.ExitStack() as stack:

        def client():
            it = KazooClient(server.hosts)
            it.start()
            stack.callback(it.close)
            stack.callback(it.stop)
            return it

        yield client


@pytest.fixture
def waiting():
    """`waiting(function)` runs it in a thread that ends with the test."""
    threads = []

    def waiting(function, *arguments):
        def run():
            with contextlib.suppress(Exception):
                function(*arguments)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        threads.append(thread)

    yield waiting


# -- tree, find, du ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest(zk):
    zk.create("/forest/oak/leaf", b"x" * 100, makepath=True)
    zk.create("/forest/oak/leaves", b"")
    zk.create("/forest/pine", b"y" * 2000)
    zk.create("/forest/bird-", b"", ephemeral=True, sequence=True)
    return zk.get_children("/forest")


def test_tree_is_a_picture(shell, forest):
    bird = next(name for name in forest if name.startswith("bird-"))
    assert shell("tree", "/forest").splitlines() == [
        "/forest",
        f"├── {bird}  ephemeral",
        "├── oak",
        "│   ├── leaf",
        "│   └── leaves",
        "└── pine",
        "",
        "6 znodes",
    ]
    assert shell("tree", "-L", "1", "-d", "/forest").splitlines()[1:4] == [
        f"├── {bird}  0 B  ephemeral",
        "├── oak  0 B  … 2 below",
        "└── pine  2.0 KiB",
    ]
    rows = shell.json("tree", "/forest")
    assert [(row["path"], row["depth"]) for row in rows][2:5] == [
        ("/forest/oak", 1), ("/forest/oak/leaf", 2), ("/forest/oak/leaves", 2)]


def test_a_tree_that_is_missing_is_an_error(shell):
    for command in ("tree", "find", "du", "locks"):
        answer = shell.run(command, "/nowhere")
        assert answer.returncode == 1, command
        assert "Node does not exist: /nowhere" in answer.stderr, answer.stderr


def test_find_looks_at_names_and_metadata(shell, zk, forest):
    def found(*tests):
        return sorted(shell("find", "/forest", *tests).split())

    bird = next(f"/forest/{name}" for name in forest if name.startswith("bird-"))
    session = f"0x{zk.client_id[0]:x}"
    assert found() == sorted(["/forest", "/forest/oak", "/forest/oak/leaf", "/forest/oak/leaves", "/forest/pine", bird])
    assert found("-name", "lea*") == ["/forest/oak/leaf", "/forest/oak/leaves"]
    assert found("-type", "ephemeral") == [bird]
    assert found("-type", "sequential") == [bird]
    assert found("-owner", session) == [bird]
    assert found("-size", "+1k") == ["/forest/pine"]
    assert found("-size", "100") == ["/forest/oak/leaf"]
    assert found("-children", "2") == ["/forest/oak"]
    assert found("-mtime", "-1h", "-name", "oak") == ["/forest/oak"]
    assert found("-mtime", "+1h") == []
    rows = shell.json("find", "/forest", "-name", "pine")
    assert rows[0]["path"] == "/forest/pine" and rows[0]["stat"]["dataLength"] == 2000
    answer = shell.run("find", "/forest", "-type", "ttl")
    assert answer.returncode == 1 and "do not tell clients" in answer.stderr


def test_du_sums_up(shell, forest):
    rows = [line.split() for line in shell("du", "/forest").splitlines()[1:]]
    assert rows[:3] == [["2100", "6", "/forest"], ["2000", "1", "/forest/pine"], ["100", "3", "/forest/oak"]]
    rows = shell.json("du", "-depth", "2", "-n", "2", "-c", "/forest")
    assert [(row["path"], row["znodes"], row["bytes"]) for row in rows] == [("/forest", 6, 2100), ("/forest/oak", 3, 100)]


def test_a_wide_tree_that_changes_meanwhile(shell, zk, client):
    """Thousands of znodes, many of which vanish under way: the walks end well and see all that stays."""
    zk.ensure_path("/wide")
    writer = client()
    for start in range(0, 6000, 500):
        batch = writer.transaction()
        for number in range(start, start + 500):
            batch.create(f"/wide/{'go' if number % 2 else 'stay'}{number}")
        assert all(isinstance(path, str) for path in batch.commit())

    def vanish():
        for number in range(1, 6000, 2):
            writer.delete_async(f"/wide/go{number}")

    thread = threading.Thread(target=vanish)
    thread.start()
    stay = {f"/wide/stay{number}" for number in range(0, 6000, 2)}
    for command in ("find", "tree"):
        paths = {row["path"] for row in shell.json(command, "/wide")}
        assert stay <= paths, command
    thread.join()
    soon(lambda: len(zk.get_children("/wide")) == 3000)
    assert shell.json("du", "/wide", "-n", "1")[0]["znodes"] == 3001
    # One that reads no further ends the command without a word of its own.
    process = subprocess.Popen(shell.command("find", "/wide"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    process.stderr.read()
    assert process.wait(60) in (0, 1)


def test_what_may_not_be_read_is_said(shell, zk):
    from kazoo.security import make_digest_acl

    zk.create("/closed/secret/inner", b"", makepath=True)
    zk.set_acls("/closed/secret", [make_digest_acl("bob", "x", all=True)])
    answer = shell.run("find", "/closed")
    assert answer.stdout.split() == ["/closed"]
    assert "1 znode may not be read" in answer.stderr
    assert answer.returncode == 0


# -- locks -------------------------------------------------------------------------------------------------------------


def one_lock(shell, path):
    locks = [lock for lock in shell.json("locks", path) if lock["path"].startswith(path)]
    assert len(locks) <= 1, locks
    return locks[0] if locks else None


def test_a_kazoo_lock_shows_holder_and_queue(shell, client, waiting):
    holder, second, third = client(), client(), client()
    lock = holder.Lock("/locks/plain", "holder")
    lock.acquire()
    for number, (other, name) in enumerate(((second, "second"), (third, "third")), 2):
        waiting(other.Lock("/locks/plain", name).acquire)
        soon(lambda number=number: len(holder.get_children("/locks/plain")) == number)
    shown = one_lock(shell, "/locks/plain")
    assert shown["layout"] == "kazoo lock"
    assert [party["data"] for party in shown["holders"]] == ["holder"]
    assert [party["data"] for party in shown["waiting"]] == ["second", "third"]
    party = shown["holders"][0]
    assert party["session"] == f"0x{holder.client_id[0]:x}"
    assert party["token"] == holder.exists(f"/locks/plain/{party['znode']}").czxid
    assert party["client"].startswith("127.0.0.1:")
    assert 0 <= party["ageMs"] < 600_000
    text = shell("locks", "/locks/plain")
    assert "/locks/plain  kazoo lock" in text
    assert f"token 0x{party['token']:x}" in text and "waits 1" in text and '"third"' in text
    lock.release()
    soon(lambda: one_lock(shell, "/locks/plain")["holders"][0]["data"] == "second")
    token = one_lock(shell, "/locks/plain")["holders"][0]["token"]
    assert token > party["token"]
    assert "/locks/plain" in [lock["path"] for lock in shell.json("locks", "-w")]


def test_kazoos_readers_share(shell, client, waiting):
    first, second, writer, late = client(), client(), client(), client()
    first.ReadLock("/locks/shared", "r1").acquire()
    second.ReadLock("/locks/shared", "r2").acquire()
    waiting(writer.WriteLock("/locks/shared", "w").acquire)
    soon(lambda: len(first.get_children("/locks/shared")) == 3)
    waiting(late.ReadLock("/locks/shared", "r3").acquire)
    soon(lambda: len(first.get_children("/locks/shared")) == 4)
    shown = one_lock(shell, "/locks/shared")
    assert [(party["data"], party["mode"]) for party in shown["holders"]] == [("r1", "read"), ("r2", "read")]
    assert [(party["data"], party["mode"]) for party in shown["waiting"]] == [("w", "exclusive"), ("r3", "read")]


def test_kazoos_semaphore_and_election(shell, client, waiting):
    first, second, third = client(), client(), client()
    first.Semaphore("/sema/pool", "one", max_leases=2).acquire()
    second.Semaphore("/sema/pool", "two", max_leases=2).acquire()
    waiting(third.Semaphore("/sema/pool", "three", max_leases=2).acquire)
    soon(lambda: first.exists("/sema/pool-__lock__") and first.get_children("/sema/pool-__lock__"))
    shown = {lock["path"]: lock for lock in shell.json("locks", "/sema")}
    assert sorted(party["data"] for party in shown["/sema/pool"]["holders"]) == ["one", "two"]
    assert shown["/sema/pool"]["layout"] == "kazoo semaphore"
    # kazoo writes its name as Python shows bytes.
    assert ["three" in party["data"] for party in shown["/sema/pool-__lock__"]["waiting"]] == [True]
    assert not shown["/sema/pool-__lock__"]["holders"]

    over = threading.Event()
    waiting(first.Election("/vote", "president").run, over.wait)
    soon(lambda: first.exists("/vote") and first.get_children("/vote"))
    assert [party["data"] for party in one_lock(shell, "/vote")["holders"]] == ["president"]
    over.set()


def test_other_layouts_and_plain_ephemerals(shell, client):
    it = client()
    uuid = "7ef6b3a2-0f10-4c6e-9d2b-0a4a1b2c3d4e"
    for path in (f"/others/curator/_c_{uuid}-lock-", f"/others/latch/_c_{uuid}-latch-", "/others/recipe/write-",
                 "/others/recipe/read-", f"/others/solr/{it.client_id[0]}-core_node2-n_", "/others/group/member-"):
        it.create(path, b"me", ephemeral=True, sequence=True, makepath=True)
    it.create("/others/kafka/controller", b'{"brokerid":1}', ephemeral=True, makepath=True)
    it.create("/others/kafka/ids", b"", ephemeral=True)
    it.create("/others/kafka/leader-not-ephemeral", b"")

    def shown(*words):
        locks = shell.json("locks", *words)
        return {lock["path"]: (lock["layout"], len(lock["holders"]), len(lock["waiting"])) for lock in locks}

    expected = {
        "/others/curator": ("Curator mutex", 1, 0),
        "/others/latch": ("Curator leader latch", 1, 0),
        "/others/recipe": ("lock", 1, 1),
        "/others/solr": ("election", 1, 0),
        "/others/kafka/controller": ("ephemeral znode", 1, 0),
    }
    assert shown("/others") == expected
    assert shown("-a", "/others") == {**expected, "/others/group": ("ephemeral sequence", 1, 0),
                                      "/others/kafka/ids": ("ephemeral znode", 1, 0)}
    assert shown("/others/kafka/ids") == {"/others/kafka/ids": ("ephemeral znode", 1, 0)}
    assert shown("-w", "/others") == {"/others/recipe": ("lock", 1, 1)}
    assert shell("locks", "/zookeeper").strip() == "no locks"


def test_addresses_need_a_word_that_may_be_refused(tmp_path):
    with build_server(tmp_path / "server", {"4lw.commands.whitelist": "srvr"}) as server:
        zk = KazooClient(server.hosts)
        zk.start()
        zk.Lock("/lock", "me").acquire()
        answer = Shell(server.hosts).run("locks", options=["--json"])
        assert json.loads(answer.stdout)[0]["holders"][0]["client"] is None
        assert "cons is in 4lw.commands.whitelist" in answer.stderr
        zk.stop()
        zk.close()


# -- watch -------------------------------------------------------------------------------------------------------------


class Following:
    """A `watch` that runs; `lines` are what it has printed."""

    def __init__(self, shell, *words, options=("--json",)):
        self.process = subprocess.Popen(shell.command("watch", *words, options=options), stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(json.loads(line) if line.startswith("{") else line.rstrip("\n"))

    def events(self):
        return [(line["event"], line["path"]) for line in self.lines if "event" in line]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def following():
    with contextlib.ExitStack() as stack:

        def start(shell, *words, **options):
            it = Following(shell, *words, **options)
            stack.callback(it.end)
            return it

        yield start


def until_watched(server_client, following, path):
    """Touches a znode below the path until the watch is seen to be there."""
    server_client.ensure_path(path)
    server_client.ensure_path(f"{path}/probe")

    def seen():
        server_client.set(f"{path}/probe", b"")
        time.sleep(0.05)
        return following.lines

    soon(seen)
    following.lines.clear()


def test_watch_follows_a_subtree(shell, zk, following):
    it = following(shell, "-d", "/followed")
    # The znode may come later than the watch.
    until_watched(zk, it, "/followed")
    zk.create("/followed/a/b", b"one", makepath=True)
    stat = zk.set("/followed/a/b", b"two")
    zk.delete("/followed/a/b")
    zk.create("/elsewhere")
    zk.delete("/followed/a")
    expected = [("NodeCreated", "/followed/a"), ("NodeCreated", "/followed/a/b"), ("NodeDataChanged", "/followed/a/b"),
                ("NodeDeleted", "/followed/a/b"), ("NodeDeleted", "/followed/a")]
    soon(lambda: [event for event in it.events() if event[1] != "/followed/probe"] == expected)
    changed = next(line for line in it.lines if line.get("event") == "NodeDataChanged" and line["path"] == "/followed/a/b")
    assert changed["zxid"] == stat.mzxid
    assert changed["time"].startswith("20") and changed["time"].endswith("Z")


def test_watch_shows_data_and_ends_by_number(shell, zk, following):
    it = following(shell, "-d", "/counted")
    until_watched(zk, it, "/counted")
    zk.set("/counted", b"new data")
    line = soon(lambda: next((line for line in it.lines if line.get("path") == "/counted"), None))
    assert line["data"] == "new data" and line["dataVersion"] == 1
    words = following(shell, "-n", "1", "/counted", options=())

    def ended():
        zk.set("/counted", b"")
        time.sleep(0.05)
        return words.process.poll() is not None

    soon(ended)
    assert words.process.returncode == 0
    words.reader.join(PATIENCE)
    assert len(words.lines) == 1 and "NodeDataChanged" in words.lines[0] and "zxid 0x" in words.lines[0]


def test_watch_goes_on_after_the_server_was_away(tmp_path, following):
    with build_server(tmp_path / "server", {}) as server:
        zk = KazooClient(server.hosts)
        zk.start()
        it = following(Shell(server.hosts), "/kept")
        until_watched(zk, it, "/kept")
        server.restart()
        states = soon(lambda: [line["state"] for line in it.lines if "state" in line][-1:] == ["SyncConnected"])
        assert states
        soon(lambda: zk.connected)
        zk.retry(zk.create, "/kept/later")
        soon(lambda: ("NodeCreated", "/kept/later") in it.events())
        zk.stop()
        zk.close()


# -- Curator's locks ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def curator(server):
    """The sessions of two clients that have locks of all kinds below /curator."""
    here = pathlib.Path(__file__).resolve().parent
    subprocess.run([here.parent / "curator" / "install"], check=True, capture_output=True)
    cache = pathlib.Path(os.environ.get("QUENDA_CACHE") or pathlib.Path.home() / ".cache" / "quenda")
    command = ["java", "-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{cache}/curator/jars/*",
               "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", here / "java" / "CuratorLocks.java", server.hosts, "/curator"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        sessions = [process.stdout.readline().strip() for _ in range(2)]
        assert all(sessions), "it ended early"
        yield [f"0x{int(session):x}" for session in sessions]
    finally:
        process.kill()
        process.communicate()


def test_curators_locks(shell, curator):
    one, other = curator
    shown = {lock["path"].removeprefix("/curator/"): lock for lock in shell.json("locks", "/curator")}

    def sessions(path, role):
        return [party["session"] for party in shown[path][role]]

    expected = {
        "mutex": ("Curator mutex", [one], [other]),
        # A writer may read as well.
        "shared": ("Curator read-write lock", [one, one], [other]),
        # The znode of a lease comes before the lease.
        "semaphore/leases": ("Curator semaphore", [one, other], [other]),
        "semaphore/locks": ("Curator semaphore, queue for a lease", [], [other]),
        "semaphore-mutex/leases": ("Curator semaphore", [one], []),
        "latch": ("Curator leader latch", [one], [other]),
    }
    found = {path: (lock["layout"], sessions(path, "holders"), sessions(path, "waiting")) for path, lock in shown.items()}
    assert found == expected
    assert [party["data"] for party in shown["latch"]["holders"]] == ["first"]


# -- top ---------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not IS_QUENDA, reason="the word is Quenda's own")
def test_top_names_who_loads_the_server(shell, zk, client):
    busy = client()
    busy.ensure_path("/busy/counter")
    for number in range(300):
        busy.set("/busy/counter", str(number).encode())

    # What is told by path is a sample.
    def told():
        load = shell.json("top")["load"]
        return load if any(row["path"] == "/busy/counter" and row["requests"] >= 100 for row in load["hot"]["written"]) else None

    load = soon(told)
    session = f"0x{busy.client_id[0]:x}"
    assert next(row for row in load["sessions"] if row["session"] == session)["requests"] >= 300
    assert load["totals"]["requests"] >= 300
    text = shell("top", "-k", "requests", "-r", "50")
    lines = text.splitlines()
    assert shell.hosts in lines[0] and "requests under way" in lines[0]
    assert any(line.endswith("  operation") for line in lines)
    assert any("setData" in line for line in lines)
    assert any("written" in line and "/busy/counter" in line for line in lines)
    answer = shell.run("top", "-k", "colour")
    assert answer.returncode == 1 and "top [-n N]" in answer.stderr


@pytest.mark.skipif(not IS_QUENDA, reason="the word is Quenda's own")
def test_top_refreshes_a_terminal_until_ctrl_c(shell):
    main, terminal = os.openpty()
    process = subprocess.Popen(shell.command("top", "-d", "0.2"), stdin=terminal, stdout=terminal, stderr=terminal,
                               start_new_session=True)
    os.close(terminal)
    try:
        shown = b""
        while shown.count(b"\x1b[H\x1b[J") < 3:
            assert select.select([main], [], [], PATIENCE)[0], shown
            shown += os.read(main, 65536)
        assert b"requests under way" in shown
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(main)


def test_ctrl_c_ends_a_watch_well(shell, zk, following):
    it = following(shell, "/interrupted")
    until_watched(zk, it, "/interrupted")
    it.process.send_signal(signal.SIGINT)
    assert it.process.wait(PATIENCE) == 0


@pytest.mark.skipif(IS_QUENDA, reason="about a server that lacks the word")
def test_top_says_that_a_genuine_server_does_not_tell(shell):
    answer = shell.run("top")
    assert answer.returncode == 1 and "it is not Quenda" in answer.stderr, answer.stderr


def test_walks_below_a_root(shell, zk, forest):
    below = Shell(f"{shell.hosts}/forest")
    paths = below("find", "-name", "lea*").split()
    assert sorted(paths) == ["/oak/leaf", "/oak/leaves"]
    assert below("tree", "/oak").splitlines()[:3] == ["/oak", "├── leaf", "└── leaves"]
