"""Crash, restart, damaged and full disks."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import threading
import time

import pytest

from integration.lib.process import ServerError
from integration.lib.zkwire import ERR, FLAG, OP, Closed, Conn, create, eventually, four_letter, read, set_data


@pytest.mark.timeout(600)
def test_B86_a_kill_at_any_moment_of_a_checkpoint_loses_nothing(own_server, rng, long):
    server = own_server({"snapCount": "2000"})
    with Conn(server.port) as c:
        c.create("/n")
    acknowledged = 0
    for _ in range(20 if long else 4):
        conn = Conn(server.port)
        stop = threading.Event()
        names = iter(range(acknowledged, 10_000_000))
        counted = [0]

        def load(conn=conn, names=names, counted=counted, stop=stop):
            with contextlib.suppress(Closed, OSError):
                while not stop.is_set():
                    batch = [(OP.CREATE, create(f"/n/{next(names):08}", b"x" * 100)) for _ in range(200)]
                    for reply in conn.pipeline(batch):
                        assert reply.err in (ERR.OK, ERR.NODE_EXISTS)
                        counted[0] += 1

        worker = threading.Thread(target=load)
        worker.start()
        target = 25_000 if long else 5000
        eventually(lambda counted=counted, target=target: counted[0] >= target, 60, "writes acknowledged")
        time.sleep(rng.uniform(0.001, 0.2))
        server.kill9()
        stop.set()
        worker.join()
        conn.drop()
        acknowledged += counted[0]
        server.start()
        with Conn(server.port) as after:
            names = after.children("/n")
            assert names[:acknowledged] == [f"{number:08}" for number in range(acknowledged)]
            acknowledged = len(names)


def test_B88_everything_is_there_after_a_clean_and_a_hard_restart(own_server, rng):
    server = own_server({"snapCount": "500"})
    with Conn(server.port) as c:
        c.auth("digest", b"o:p")
        c.create("/null", None)
        c.create("/empty", b"")
        c.create("/big", rng.randbytes(900_000))
        c.create("/acl", acl=((31, "auth", ""), (1, "ip", "127.0.0.1")))
        c.create_container("/container")
        c.create("/container/child")
        c.create_ttl("/ttl", 10_000_000)
        c.pipeline((OP.CREATE, create("/s", flags=FLAG.SEQUENTIAL)) for _ in range(1000))
        c.delete("/s0000000999") if c.exists("/s0000000999") else None
        c.set("/empty", b"", 0)
        paths = ["/" + name for name in c.children("/")] + ["/", "/container/child", "/zookeeper/quota"]

        def state(conn):
            return {path: (conn.get(path), conn.get_acl(path)) for path in paths if path != "/acl"} | {
                "/acl": conn.get_acl("/acl")
            }

        before = state(c)
        next_number = int(c.create("/s", flags=FLAG.EPHEMERAL_SEQUENTIAL)[2:])
    for hard in (False, True, True):
        server.restart(hard=hard)
        with Conn(server.port) as c:
            c.auth("digest", b"o:p")
            after = state(c)
            for path in paths:
                if path == "/":  # the ephemerals of this test come and go below it
                    continue
                assert after[path] == before[path], path
            number = int(c.create("/s", flags=FLAG.EPHEMERAL_SEQUENTIAL)[2:])
            assert number > next_number
            next_number = number


def test_B91_acknowledged_counter_survives_kills(own_server, long):
    server = own_server()
    with Conn(server.port) as c:
        c.create("/counter")
    acknowledged = 0
    for _ in range(20 if long else 4):
        conn = Conn(server.port)
        sent = [(OP.SET_DATA, set_data("/counter", b"x", acknowledged + n)) for n in range(200)]
        for op, body in sent:
            conn.send(op, body)
        for _ in range(100):
            reply = conn.reply()
            assert reply.err == ERR.OK
            acknowledged += 1
        server.restart(hard=True)
        conn.drop()
        with Conn(server.port) as after:
            version = after.exists("/counter").version
            assert acknowledged <= version <= acknowledged + 100
            acknowledged = version


def test_sessions_and_zxids_survive_a_kill(own_server):
    server = own_server()
    owner = Conn(server.port, timeout=20000)
    owner.create("/e", flags=FLAG.EPHEMERAL)
    zxid = owner.last_zxid
    for hard in (True, False):
        server.restart(hard=hard)
        owner.drop()
        owner = owner.resume(last_zxid=zxid)
        assert owner.exists("/e").ephemeral_owner == owner.session
        owner.set("/e", b"x")
        assert owner.last_zxid > zxid
        zxid = owner.last_zxid
    with Conn(server.port) as other:
        owner.close()
        assert other.exists("/e") is None
    server.restart(hard=True)
    with Conn(server.port) as other:
        assert other.exists("/e") is None


def test_a_session_that_nobody_resumes_expires_after_a_restart(own_server):
    server = own_server()
    owner = Conn(server.port, timeout=2000)
    owner.create("/e", flags=FLAG.EPHEMERAL)
    server.restart(hard=True)
    with Conn(server.port) as other:
        assert other.exists("/e"), "a restart grants every session its full timeout"
        eventually(lambda: other.exists("/e") is None, 20, "expiry after the restart")


@contextlib.contextmanager
def small_disk(megabytes):
    """A file system of that size, in memory."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-small-"))
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "quenda-test", folder], check=False)
    if done.returncode != 0:
        folder.rmdir()
        pytest.fail("cannot mount a small file system: this test needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        folder.rmdir()


def fill(folder, leave):
    """A file that takes all but `leave` bytes of the file system, while others may be writing to it as well."""
    path = folder / "filler"
    with open(path, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while (stat := os.statvfs(folder)).f_bavail * stat.f_frsize > leave:
                room = stat.f_bavail * stat.f_frsize - leave
                file.write(bytes(min(max(room, 4096), 4 << 20)))
    return path


# Of a file system of 512 MB the last 128 MB are kept back; the fillers below leave a little more than that.
DISK_MEGABYTES = 512
ABOVE_THE_RESERVE = 160 << 20


def write_until_refused(conn, prefix, size=200_000, most=4000):
    """Creates nodes until one is refused with an error; returns how many were acknowledged."""
    for number in range(most):
        data = os.urandom(size)  # what can be compressed would need more of it
        reply = conn.call(OP.CREATE, create(f"{prefix}{number:05}", data))
        if reply.err != ERR.OK:
            assert reply.err != ERR.NODE_EXISTS
            assert reply.body == b""
            return number
    raise AssertionError(f"{most * size >> 20} MB were accepted")


@pytest.mark.quenda_only("Java exits when its disk is full")
@pytest.mark.timeout(180)
def test_B92_a_nearly_full_disk_refuses_growth_and_recovers_alone(own_server):
    with small_disk(DISK_MEGABYTES) as folder:
        server = own_server(folder=folder)
        c = Conn(server.port, timeout=60000)
        c.create("/small", b"kept")
        c.create("/old", b"x")
        filler = fill(folder, leave=ABOVE_THE_RESERVE)
        acknowledged = write_until_refused(c, "/big")
        # The session stands; what does not grow goes on.
        assert c.get("/small")[0] == b"kept"
        c.ping()
        assert "Mode:" in four_letter(server.port, "srvr")
        with Conn(server.port) as other:
            assert other.exists("/small")
        c.delete("/old")
        assert c.exists("/old") is None
        # A crash with a full disk loses nothing either.
        c.drop()
        server.restart(hard=True)
        c = c.resume()
        assert len([name for name in c.children("/") if name.startswith("big")]) == acknowledged
        filler.unlink()
        eventually(lambda: c.call(OP.CREATE, create("/again")).err in (ERR.OK, ERR.NODE_EXISTS), 30, "recovery")
        c.drop()
        server.restart(hard=True)
        with c.resume() as c:
            assert c.exists("/again") and c.exists("/old") is None
            assert len([name for name in c.children("/") if name.startswith("big")]) == acknowledged


@pytest.mark.quenda_only("Java exits when its disk is full")
@pytest.mark.timeout(180)
def test_B92_a_disk_that_somebody_else_fills_stops_writes_only(own_server):
    with small_disk(DISK_MEGABYTES) as folder:
        server = own_server(folder=folder)
        reader, writer = Conn(server.port, timeout=60000), Conn(server.port, timeout=60000)
        reader.create("/small", b"kept")
        stop, acknowledged = threading.Event(), [0]

        def write():
            """One after the other; a failed or undecided one (error, close) ends it."""
            with contextlib.suppress(Closed, OSError, TimeoutError):
                while not stop.is_set():
                    path = f"/n{acknowledged[0]:06}"
                    if writer.call(OP.CREATE, create(path, os.urandom(50_000))).err != ERR.OK:
                        return
                    acknowledged[0] += 1

        worker = threading.Thread(target=write)
        worker.start()
        eventually(lambda: acknowledged[0] > 50, 30, "writes acknowledged")
        filler = fill(folder, leave=0)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            assert reader.get("/small")[0] == b"kept"
            reader.ping()
            assert "zk_znode_count" in four_letter(server.port, "mntr", timeout=2)
        filler.unlink()

        def writes_again():
            try:
                with Conn(server.port, wait=5) as fresh:
                    return fresh.call(OP.CREATE, create("/again")).err in (ERR.OK, ERR.NODE_EXISTS)
            except (Closed, OSError, TimeoutError):
                return False

        eventually(writes_again, 30, "recovery")
        stop.set()
        worker.join()
        server.restart(hard=True)
        with Conn(server.port) as after:
            names = set(after.children("/"))
            assert not {f"n{number:06}" for number in range(acknowledged[0])} - names
            assert "again" in names


@pytest.mark.quenda_only("Java exits when its disk is full")
@pytest.mark.timeout(180)
def test_B92_a_start_on_a_full_disk_serves_what_it_has_or_says_why_not(own_server):
    with small_disk(256) as folder:
        server = own_server(folder=folder)
        with Conn(server.port) as c:
            c.create("/n", b"kept")
        server.kill9()
        filler = fill(folder, leave=0)
        try:
            server.start(timeout=20)
        except (ServerError, OSError):
            text = server.log_tail() if server.log_path.exists() else ""
            assert "space" in text.lower(), text
        server.kill9()
        filler.unlink()
        server.start()
        with Conn(server.port) as c:
            assert c.get("/n")[0] == b"kept"


def store_files(server):
    """Every file of the data directory, the server's own log and configuration aside, biggest first."""
    data = server.data_dir / "data"
    return sorted((path for path in data.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)


@pytest.mark.quenda_only("looks at Quenda's own store")
def test_B94_a_damaged_store_is_refused_with_advice_and_left_as_it_is(own_server):
    server = own_server()
    with Conn(server.port) as c:
        c.pipeline((OP.CREATE, create(f"/n{index}", bytes(1000))) for index in range(2000))
    server.stop()
    tables = [path for path in store_files(server) if path.suffix == ".sst"]
    manifests = [path for path in store_files(server) if path.name.startswith("MANIFEST")]
    assert manifests, "no store found"
    for damaged in (*tables[:1], manifests[0]):
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ServerError):
            server.start(timeout=20)
        assert not server.alive()
        text = server.log_tail()
        assert str(server.data_dir / "data") in text, f"does not name the store: {text}"
        assert any(word in text.lower() for word in ("restore", "backup", "move", "remove", "delete")), (
            f"does not say what to do: {text}"
        )
        damaged.write_bytes(whole)
        server.start()
        with Conn(server.port) as c:
            assert len(c.children("/")) == 2001
        server.stop()
        if not damaged.exists():
            break  # a clean stop wrote new files; the first damage has shown what was to be shown


@pytest.mark.quenda_only("looks at Quenda's own store")
def test_B94_a_damaged_middle_of_the_log_is_not_taken_for_a_torn_tail(own_server):
    server = own_server()
    with Conn(server.port) as c:
        for index in range(200):
            c.create(f"/n{index}", bytes(1000))
        server.kill9()
    log = max((path for path in store_files(server) if path.suffix == ".log"), key=lambda path: path.stat().st_size)
    whole = log.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    log.write_bytes(damaged)
    with pytest.raises(ServerError):
        server.start(timeout=20)
    assert str(server.data_dir / "data") in server.log_tail()
    log.write_bytes(whole)
    server.start()
    with Conn(server.port) as c:
        assert len(c.children("/")) == 201


@pytest.mark.quenda_only("looks at Quenda's own store")
def test_B94_a_torn_tail_of_the_log_is_cut(own_server):
    server = own_server()
    with Conn(server.port) as c:
        c.create("/n", b"kept")
        server.kill9()
    logs = [path for path in store_files(server) if path.suffix == ".log" and path.stat().st_size]
    assert logs, "no write-ahead log found"
    newest = max(logs, key=lambda path: path.stat().st_mtime_ns)
    with open(newest, "ab") as file:
        file.write(b"\x13\x37torn")
    server.start()
    with Conn(server.port) as c:
        assert c.get("/n")[0] == b"kept"
        c.create("/m")


def test_reads_go_on_while_the_log_is_busy(own_server):
    """A read of one session never waits for the writes of another for long."""
    server = own_server()
    stop = threading.Event()
    with Conn(server.port) as writer, Conn(server.port, wait=10.0) as reader:
        writer.create("/n", bytes(1000))

        def load():
            while not stop.is_set():
                writer.pipeline([(OP.SET_DATA, set_data("/n", bytes(10_000)))] * 200)

        worker = threading.Thread(target=load)
        worker.start()
        try:
            for _ in range(200):
                assert reader.call(OP.GET_DATA, read("/n")).err == ERR.OK
        finally:
            stop.set()
            worker.join()
