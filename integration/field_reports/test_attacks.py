"""Attacks on the order, the sessions and the resources of one member, found by trying to break it."""

import contextlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from integration.lib.zkwire import (
    FLAG, OP, PING_XID, Closed, Conn, Refused, ZkError, connect_request, create, eventually, four_letter, multi, read,
    request, set_data, tcp, ustring,
)

QUENDA = pytest.mark.quenda_only("the bound is Quenda's")

# Syncs hang while the file named by STALL exists: a disk that is stuck but gives no error.
STALL_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void hang(void) { const char *file = getenv("STALL"); while (file && access(file, F_OK) == 0) usleep(2000); }
int fdatasync(int fd) { hang(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
int fsync(int fd) { hang(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
"""


def resident_mib(server):
    with open(f"/proc/{server.pid}/status") as status:
        return next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmRSS:"))


def connections(port):
    """Open sockets as the server counts them, the one that asks left out."""
    figures = dict(line.split("\t", 1) for line in four_letter(port, "mntr").splitlines())
    return int(figures["zk_num_alive_connections"]) - 1


@contextlib.contextmanager
def threads(*works):
    """Runs each until the block has ended; an exception in one fails the test."""
    stop, failures = threading.Event(), []

    def guarded(work):
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001 - reported below
            failures.append(error)
            stop.set()

    started = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in started:
        thread.start()
    try:
        yield stop
    finally:
        stop.set()
        for thread in started:
            thread.join()
    if failures:
        raise failures[0]


def pinging(conns, seconds, receive=False):
    """Pings from all of them for a while, as clients do that live."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for conn in conns:
            conn.send(OP.PING, xid=PING_XID)
            if receive:
                conn.reply()
        time.sleep(0.1)


def sets_behind(conn, path, data):
    """The next write is answered, whatever replies come first."""
    xid = conn.send(OP.SET_DATA, set_data(path, data))
    while (reply := conn.reply()).xid != xid:
        reply.ok()
    reply.ok()


# --- who is not silent lives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [1.4, 2.2])
def test_a_paused_server_costs_no_session(own_server, pause):
    server = own_server()
    clients = [Conn(server.port, timeout=1000) for _ in range(20)]
    watcher = Conn(server.port)
    for number, client in enumerate(clients):
        client.create(f"/e{number}", flags=FLAG.EPHEMERAL)
    pinging(clients, 0.3, receive=True)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        pinging(clients, pause)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    for number, client in enumerate(clients):
        sets_behind(client, f"/e{number}", b"alive")
    assert all(watcher.exists(f"/e{number}") for number in range(20))


@pytest.fixture
def stuck_disk(own_server, tmp_path):
    """A server, and a file whose existence makes its syncs hang."""
    source, library, stall = tmp_path / "stall.c", tmp_path / "stall.so", tmp_path / "stall"
    source.write_text(STALL_SOURCE)
    subprocess.run([shutil.which("cc") or "gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    server = own_server(start=False)
    server.env.update(LD_PRELOAD=str(library), STALL=str(stall))
    yield server.start(), stall
    stall.unlink(missing_ok=True)


@QUENDA
def test_a_stuck_disk_costs_no_session(stuck_disk):
    server, stall = stuck_disk
    watcher = Conn(server.port, timeout=60000)
    owners = {name: Conn(server.port, timeout=1000) for name in ("idle", "gone", "busy")}
    watcher.create("/data")
    for name, owner in owners.items():
        owner.create(f"/{name}", flags=FLAG.EPHEMERAL)
    stall.touch()
    busy = owners["busy"]
    writes = 1500
    busy.send_bytes(b"".join(request(number, OP.SET_DATA, set_data("/data", b"x")) for number in range(1, writes + 1)))
    owners["gone"].drop()
    resumes = []
    for _ in range(6):
        resume = Conn(server.port, handshake=False)
        resume.send_bytes(connect_request(1000, owners["gone"].session, owners["gone"].passwd))
        resumes.append(resume)
        pinging([owners["idle"]], 0.35, receive=True)
        busy.send(OP.PING, xid=PING_XID)
    stall.unlink()
    for resume in resumes:
        resume.finish_handshake()
    resumes[-1].set("/gone", b"alive")
    owners["idle"].set("/idle", b"alive")
    assert [busy.reply().xid for _ in range(writes)] == list(range(1, writes + 1))
    assert all(watcher.exists(f"/{name}") for name in owners)


@QUENDA
def test_a_stop_with_a_stuck_disk_ends(stuck_disk, long):
    if not long:
        pytest.skip("takes as long as the server's patience; QUENDA_LONG=1")
    server, stall = stuck_disk
    conn = Conn(server.port)
    conn.create("/acknowledged")
    stall.touch()
    conn.send(OP.CREATE, create("/undecided"))
    assert server.stop(timeout=20) != 0
    stall.unlink()
    server.start()
    assert conn.resume().exists("/acknowledged")


def test_a_slow_reader_that_pings_lives(own_server):
    server = own_server()
    writer = Conn(server.port)
    writer.create("/n")
    for part in range(12):
        names = [f"/n/{part:03}-{number:05}-" + "x" * 190 for number in range(2500)]
        writer.multi(*((OP.CREATE, create(name)) for name in names))
    reader = Conn(server.port, timeout=1000, receive_buffer=32768)
    reader.create("/reader", flags=FLAG.EPHEMERAL)
    reader.send(OP.GET_CHILDREN, read("/n"))
    taken, deadline, ping = 0, time.monotonic() + 2.5, 0.0
    while time.monotonic() < deadline:
        if time.monotonic() > ping:
            reader.send(OP.PING, xid=PING_XID)
            ping = time.monotonic() + 0.3
        piece = reader.sock.recv(8192)
        assert piece, "the server closed the connection of a slow reader"
        taken += len(piece)
        time.sleep(0.02)
    assert taken < 6 << 20, "the reply must still be under way"
    assert writer.exists("/reader").ephemeral_owner == reader.session


def test_expiry_and_resume_agree_on_the_moment(own_server, rng, long):
    """A resume, a ping or a write about when the session expires: it lives with all it owns, or is gone with it."""
    server = own_server({"tickTime": "200", "minSessionTimeout": "400"})
    with Conn(server.port) as conn:
        conn.create("/x")
    outcomes = set()

    def attack(seed):
        def run(stop):
            random_of_thread, number = random.Random(seed), 0
            watcher = Conn(server.port, timeout=60000)
            while not stop.is_set():
                number += 1
                path = f"/x/{seed}-{number}"
                owner = Conn(server.port, timeout=400)
                owner.create(path, flags=FLAG.EPHEMERAL)
                time.sleep(0.36 + random_of_thread.random() * 0.2)
                try:
                    survivor = owner.resume(timeout=20000) if random_of_thread.random() < 0.7 else owner
                    survivor.create(f"{path}-later", flags=FLAG.EPHEMERAL)
                except Refused:
                    assert watcher.exists(path) is None
                    outcomes.add("expired")
                except (Closed, ZkError, OSError):
                    # Only without a resume: a session that was resumed has its whole timeout.
                    assert survivor is owner
                    eventually(lambda: watcher.exists(path) is None, 5, "expiry")
                    outcomes.add("expired")
                else:
                    assert survivor is owner or survivor.exists(path)
                    outcomes.add("lives")
                    with contextlib.suppress(Closed, OSError):
                        survivor.call(OP.CLOSE_SESSION)
                finally:
                    owner.drop()
                    survivor = owner

        return run

    with threads(*(attack(rng.randrange(1 << 30)) for _ in range(12))) as stop:
        stop.wait(20 if long else 2.5)
    assert outcomes == {"expired", "lives"}
    with Conn(server.port) as conn:
        eventually(lambda: not conn.children("/x"), 10, "end of all ephemerals")


# --- a session that moves ---------------------------------------------------------------------------------------------


def test_a_takeover_with_writes_in_flight_splits_cleanly(connect, root, rng, long):
    """What the old connection had acknowledged is seen by the new one; what was not applied by then never is."""
    current = connect()
    watcher = connect()
    current.create(f"{root}/owner", flags=FLAG.EPHEMERAL)
    value = 0
    for _ in range(1500 if long else 150):
        count = rng.randrange(1, 400)
        old = current
        writes = (request(value + n, OP.SET_DATA, set_data(root, str(value + n).encode())) for n in range(1, count + 1))
        old.send_bytes(b"".join(writes))
        time.sleep(rng.choice((0, 0, 0.0005, 0.002)))
        current = old.resume()
        seen = int(current.get(root)[0] or 0)
        acknowledged = 0
        with contextlib.suppress(Closed):
            while True:
                acknowledged = old.reply().ok().xid
        assert acknowledged <= max(seen, value)
        old.drop()
        value += count + 1
        current.set(root, str(value).encode())
        assert int(current.get(root)[0]) == value
    assert watcher.exists(f"{root}/owner").ephemeral_owner == current.session
    current.close()


def test_a_storm_of_resumes_ends_no_session(own_server, rng):
    server = own_server()
    count = 150
    owners = [Conn(server.port, timeout=10000) for _ in range(count)]
    for number, owner in enumerate(owners):
        owner.create(f"/e{number}", flags=FLAG.EPHEMERAL)

    def storm(seed):
        def run(_stop):
            order = list(range(count))
            random.Random(seed).shuffle(order)
            kept = []
            for number in order:
                with contextlib.suppress(Closed):  # another thread was quicker
                    kept.append(owners[number].resume())

        return run

    with threads(*(storm(rng.randrange(1 << 30)) for _ in range(6))):
        pass
    with Conn(server.port) as conn:
        assert len([name for name in conn.children("/") if name.startswith("e")]) == count


# --- order ------------------------------------------------------------------------------------------------------------


def test_deep_pipelines_of_mixed_requests_keep_their_order(server, rng, long):
    """Each reply in its place, each read between two writes with exactly the value between them, zxids upwards."""

    def run_with(seed):
        def run(stop):
            random_of_thread, conn, xid, value = random.Random(seed), Conn(server.port, wait=30), 10, 0
            path = f"/pipe-{seed}"
            conn.create(path, b"0", flags=FLAG.EPHEMERAL)
            while not stop.is_set():
                expected, frames = [], []
                for _ in range(random_of_thread.randrange(1, 2500)):
                    xid += 1
                    kind = random_of_thread.randrange(9)
                    if kind < 3:
                        value += 1
                        frames.append(request(xid, OP.SET_DATA, set_data(path, str(value).encode())))
                    elif kind < 6:
                        frames.append(request(xid, OP.GET_DATA, read(path)))
                    elif kind == 6:
                        frames.append(request(PING_XID, OP.PING))
                    elif kind == 7:
                        frames.append(request(xid, OP.SYNC, ustring("/")))
                    else:
                        frames.append(request(xid, OP.MULTI_READ, multi((OP.GET_DATA, read(path)))))
                    expected.append((PING_XID if kind == 6 else xid, value if 3 <= kind < 6 else None))
                sender = threading.Thread(target=conn.send_bytes, args=(b"".join(frames),))
                sender.start()
                newest = 0
                for wanted, value_there in expected:
                    reply = conn.reply()
                    assert reply.xid == wanted, f"seed {seed}: reply {reply.xid} in the place of {wanted}"
                    assert wanted == PING_XID or reply.zxid >= newest
                    newest = max(newest, reply.zxid)
                    if value_there is not None:
                        assert int(reply.reader().buffer()) == value_there, f"seed {seed}, xid {wanted}"
                sender.join()
            conn.close()

        return run

    with threads(*(run_with(rng.randrange(1 << 30)) for _ in range(4))) as stop:
        stop.wait(20 if long else 1.5)


def test_no_reply_shows_a_change_before_its_event(server, root, long):
    changes = [0]

    def one_shot(stop):
        conn, other = Conn(server.port), 0
        while not stop.is_set():
            conn.events.clear()
            before, _ = conn.get(root, watch=True)
            shown = False
            while not shown and not stop.is_set():
                for _ in range(20):
                    conn.send(OP.GET_DATA, read(root))
                for _ in range(20):
                    shown |= conn.reply().reader().buffer() != before
                    assert not shown or len(conn.events) == 1
            other += shown
        assert other > 0
        conn.close()

    def recursive(stop):
        conn, newest = Conn(server.port), 0
        conn.add_watch(root, recursive=True)
        while not stop.is_set():
            for _ in range(10):
                conn.send(OP.GET_DATA, read(root))
            for _ in range(10):
                reader = conn.reply().reader()
                reader.buffer()
                while conn.events:
                    zxid = conn.events.popleft().zxid
                    assert zxid > newest
                    newest = zxid
                assert newest in (0, reader.stat().mzxid)
        assert newest > 0
        conn.close()

    def writer(stop):
        conn = Conn(server.port)
        while not stop.is_set():
            changes[0] += 1
            conn.set(root, str(changes[0]).encode())
        conn.close()

    with threads(writer, *[one_shot] * 4, *[recursive] * 3) as stop:
        stop.wait(10 if long else 1.5)
    assert changes[0] > 10


# --- resources --------------------------------------------------------------------------------------------------------


@QUENDA
def test_logs_that_nobody_reads_stop_nothing(own_server):
    server = own_server({"maxClientCnxns": "2"}, start=False)
    server.start()
    server.stop()
    end, pipe = os.pipe()
    try:
        with open(os.devnull, "wb") as nowhere:
            server.process = subprocess.Popen(
                server.command(), stdin=subprocess.DEVNULL, stdout=nowhere, stderr=pipe, start_new_session=True
            )
        eventually(lambda: server._wait_ready(10), 20, "start")
        with Conn(server.port) as conn, tcp(server.port):
            for _ in range(1000):
                # The third from one address: refused, and logged.
                with tcp(server.port, timeout=5) as refused:
                    assert refused.recv(1) == b""
            conn.create("/still-there")
        assert server.stop(timeout=15) == 0
    finally:
        os.close(pipe)
        os.close(end)


@QUENDA
def test_connections_leave_the_log_its_descriptors(own_server):
    server = own_server(start=False)
    plain = server.command
    server.command = lambda: ["prlimit", "--nofile=200:200", *plain()]
    server.start()
    conn = Conn(server.port)
    conn.create("/a")
    crowd = [tcp(server.port) for _ in range(250)]
    # Enough for several files of the log and a checkpoint.
    for _ in range(40):
        for _ in range(20):
            conn.send(OP.SET_DATA, set_data("/a", os.urandom(50000)))
        for _ in range(20):
            conn.reply().ok()
    for sock in crowd:
        sock.close()
    eventually(lambda: connections(server.port) == 1, 10, "end of the crowd")


@QUENDA
def test_listings_that_nobody_reads_are_bounded(own_server):
    server = own_server()
    owner = Conn(server.port)
    owner.create("/w")
    for part in range(6):
        names = (f"/w/{part}-{number}-" + "y" * 150 for number in range(5000))
        owner.multi(*((OP.CREATE, create(name, flags=FLAG.EPHEMERAL)) for name in names))
    before = resident_mib(server)
    unread = [tcp(server.port, receive_buffer=4096) for _ in range(100)]
    for sock in unread:
        sock.sendall(b"dump")
    peak, deadline = before, time.monotonic() + 1.5
    while time.monotonic() < deadline:
        owner.ping()
        assert four_letter(server.port, "ruok") == "imok"
        peak = max(peak, resident_mib(server))
    for sock in unread:
        sock.close()
    assert peak < before + 150, f"{before} MiB became {peak} MiB"


def test_writes_in_front_of_a_half_close_count(server, root):
    """The client has ended its side; what it had sent before is applied, however much it was."""
    for count in (1, 50, 3000):
        sender = Conn(server.port)
        writes = (request(n, OP.SET_DATA, set_data(root, f"{count}:{n}".encode())) for n in range(1, count + 1))
        sender.send_bytes(b"".join(writes))
        sender.sock.shutdown(socket.SHUT_WR)
        with Conn(server.port) as conn:
            last = f"{count}:{count}".encode()
            eventually(lambda: conn.get(root)[0] == last, 10, f"the last of {count} writes")
        sender.drop()


def test_connections_that_end_in_every_way_leave_nothing(own_server, rng, long):
    server = own_server()
    with Conn(server.port) as conn:
        conn.create("/c")

    def flood(stop):
        conn = Conn(server.port)
        while not stop.is_set():
            for _ in range(100):
                conn.send(OP.SET_DATA, set_data("/c", b"q" * 100))
            for _ in range(100):
                conn.reply().ok()
        conn.close()

    def reset(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def churn(seed):
        def run(stop):
            random_of_thread = random.Random(seed)
            while not stop.is_set():
                kind = random_of_thread.randrange(7)
                with contextlib.suppress(OSError, Closed):
                    if kind < 4:
                        sock = tcp(server.port)
                        hello = connect_request()
                        cut = len(hello) if kind == 1 else random_of_thread.randrange(1, len(hello))
                        sock.sendall((b"", hello, hello[:cut], b"ruok")[kind])
                        random_of_thread.choice((reset, socket.socket.close))(sock)
                        continue
                    conn = Conn(server.port, timeout=1000)
                    if kind == 4:
                        conn.add_watch("/c", recursive=True)
                    elif kind == 5:
                        conn.send(OP.SET_DATA, set_data("/c", b"z"))
                    else:
                        conn.call(OP.CLOSE_SESSION)
                    random_of_thread.choice((reset, socket.socket.close))(conn.sock)

        return run

    with threads(flood, *(churn(rng.randrange(1 << 30)) for _ in range(8))) as stop:
        stop.wait(20 if long else 1.5)
    eventually(lambda: connections(server.port) == 0, 10, "end of all connections")
    assert "Total watches:0" in four_letter(server.port, "wchs")


def test_a_client_of_just_before_the_kill_comes_back(own_server, rng, long):
    """What it saw last is there: no lasting refusal for a zxid ahead, no zxid twice, nothing acknowledged lost."""
    server = own_server()
    conn = Conn(server.port)
    conn.create("/k", b"0")
    newest, value = 0, 0
    for _ in range(40 if long else 4):
        killer = threading.Timer(rng.random() * 0.2, server.kill9)
        killer.start()
        with contextlib.suppress(Closed, OSError):
            while True:
                for n in range(1, 51):
                    conn.send(OP.SET_DATA, set_data("/k", str(value + n).encode()))
                for _ in range(50):
                    reply = conn.reply(5).ok()
                    assert reply.zxid > newest
                    newest, value = reply.zxid, value + 1
        killer.join()
        for _ in range(rng.randrange(3)):
            # Killed again while it starts.
            server.spawn()
            time.sleep(rng.random() * 0.05)
            server.kill9()
        server.start()
        conn = conn.resume(last_zxid=newest)
        stored = int(conn.get("/k")[0])
        assert stored >= value
        value = stored
