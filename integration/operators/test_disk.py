"""What the server does with its disk: how many syncs writes share, what is left of the log when it dies, how it ends.

    integration/operators/run -k test_disk
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import free_port  # noqa: E402
from integration.lib.quenda_server import QuendaServer  # noqa: E402
from integration.lib.tamper import Tamper  # noqa: E402
from integration.lib.zkwire import (  # noqa: E402
    ERR, OP, Closed, Conn, create, delete, eventually, four_letter, multi, set_data,
)
from integration.operators.admin import admin_cfg, ask  # noqa: E402
from integration.operators.capture_metrics import metrics_cfg  # noqa: E402

DELAY_MS = 20
PROMISED = 1.0
FOREVER = 3600.0
# A quarter is kept back; what follows leaves a little more than that.
SMALL_DISK = 64 << 20
ABOVE_THE_RESERVE = 20 << 20
# A stop waits 10 s for writes, 10 s for the store, then for clients and members.
STOPPED = 45


def figures(port):
    return dict(line.split("\t") for line in four_letter(port, "mntr").splitlines() if "\t" in line)


def syncs(port):
    return int(figures(port)["zk_cnt_fsynctime"])


def steady_writes(port, clients, count):
    """Writes of several clients, each a few milliseconds apart; how many syncs they took, and how many seconds."""
    conns = [Conn(port) for _ in range(clients)]
    for number, conn in enumerate(conns):
        conn.create(f"/n{number}")
    before, started = syncs(port), time.monotonic()
    for _ in range(count):
        for number, conn in enumerate(conns):
            conn.send(OP.SET_DATA, set_data(f"/n{number}", b"x"))
        time.sleep(0.002)
    for conn in conns:
        for _ in range(count):
            conn.reply().ok()
    took = time.monotonic() - started
    used = syncs(port) - before
    for conn in conns:
        conn.drop()
    return used, took


def test_with_a_delay_many_writes_share_a_sync(tmp_path):
    # Nothing but the delay ends the wait: there is always a write within 2 ms, seldom one within 19 ms not.
    cfg = {"flushDelay": str(DELAY_MS), "maxWriteQueuePollTime": str(DELAY_MS - 1)}
    with QuendaServer(tmp_path / "late", cfg) as late, QuendaServer(tmp_path / "plain") as plain:
        used, took = steady_writes(late.port, clients=4, count=200)
        without, _ = steady_writes(plain.port, clients=4, count=200)
        print(f"{used} syncs within {took:.2f} s, without a delay {without}")
        # The end of a sync is the begin of the next delay; a write that changes who takes part does not wait.
        assert used <= took * 1000 / DELAY_MS + 3
        assert used * 2 < without


def test_a_bound_on_a_batch_ends_the_delay(tmp_path):
    cfg = {"flushDelay": "250", "maxWriteQueuePollTime": "250", "maxBatchSize": "10"}
    with QuendaServer(tmp_path, cfg) as server, Conn(server.port) as conn:
        conn.create("/n")
        before = syncs(server.port)
        for _ in range(400):
            conn.send(OP.SET_DATA, set_data("/n", b"x"))
            time.sleep(0.001)
        for _ in range(400):
            conn.reply().ok()
        used = syncs(server.port) - before
        assert used >= 400 / 20, "ten are enough, and hardly ever more come at once"


class Writer(threading.Thread):
    """Counts its znode up with several writes on their way, until its server is gone."""

    def __init__(self, member, number):
        super().__init__(daemon=True)
        self.path = f"/w{number}"
        self.conn = member.connect_soon(timeout=30000)
        self.conn.create(self.path)
        self.acknowledged = 0

    def run(self):
        sent = 0
        with contextlib.suppress(OSError, Closed):
            while True:
                while sent < self.acknowledged + 8:
                    sent += 1
                    self.conn.send(OP.SET_DATA, set_data(self.path, b"%d" % sent))
                self.conn.reply().ok()
                self.acknowledged += 1


@pytest.mark.parametrize("members", [1, 3])
def test_what_was_acknowledged_behind_a_delay_outlives_a_crash_of_all(tmp_path, members):
    cfg = {"flushDelay": str(DELAY_MS), "standaloneEnabled": "false", "reconfigEnabled": "true"}
    with Ensemble(tmp_path, members=members, cfg=cfg) as ensemble:
        for turn in range(3):
            writers = [Writer(member, f"{turn}-{member.number}-{client}") for member in ensemble for client in range(2)]
            for writer in writers:
                writer.start()
            eventually(lambda writers=writers: min(writer.acknowledged for writer in writers) > 40)
            ensemble.kill9()
            for writer in writers:
                writer.join(20)
                assert not writer.is_alive()
            ensemble.start()
            with ensemble.leader().connect_soon() as conn:
                for writer in writers:
                    assert int(conn.get(writer.path)[0] or 0) >= writer.acknowledged, writer.path


def test_a_stop_waits_for_no_delay_and_loses_nothing(tmp_path):
    with QuendaServer(tmp_path, {"flushDelay": "250", "maxWriteQueuePollTime": "250"}) as server:
        conn = Conn(server.port)
        conn.create("/n")
        conn.send(OP.SET_DATA, set_data("/n", b"last"))
        assert server.stop() == 0
        try:
            answered = not conn.reply().err
        except (OSError, Closed):
            answered = False
        server.start()
        with Conn(server.port) as conn:
            assert conn.get("/n")[0] == b"last" or not answered


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "quenda-test", str(folder)]
    assert subprocess.run(words, check=False).returncode == 0, "this test needs root"
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder, leave):
    """A file that takes all but `leave` bytes, while others may be writing as well."""
    path = folder / "filler"
    with open(path, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while (stat := os.statvfs(folder)).f_bavail * stat.f_frsize > leave:
            file.write(bytes(min(stat.f_bavail * stat.f_frsize - leave, 1 << 20)))
    return path


def news(server, logged):
    """What the log says behind its first so many bytes."""
    return server.log_path.read_bytes()[logged:].decode("utf-8", "replace")


def test_writes_that_a_full_disk_refuses_are_in_the_audit_log(small_disk, tmp_path):
    audit = tmp_path / "audit.log"
    cfg = {"audit.enable": "true", "quenda.audit.file": str(audit), "dataDir": str(small_disk)}
    with QuendaServer(tmp_path / "server", cfg) as server, Conn(server.port) as conn:
        conn.create("/a", b"x")
        filler = fill(small_disk, ABOVE_THE_RESERVE // 2)
        eventually(lambda: conn.call(OP.SET_DATA, set_data("/a", b"y")).err == -1, what="the disk counts as full")
        assert conn.call(OP.CREATE, create("/b")).err == -1
        assert conn.call(OP.MULTI, multi((OP.DELETE, delete("/a")), (OP.CREATE, create("/c")))).err == -1
        conn.delete("/a")
        filler.unlink()
        eventually(lambda: conn.call(OP.CREATE, create("/d")).err == ERR.OK, what="the disk has room")
        server.stop()
    records = [dict(field.split("=", 1) for field in line.split("\t") if "=" in field)
               for line in audit.read_text().replace("Logger: ", "Logger:\t").splitlines()]
    of = [(r["operation"], r.get("znode"), r["result"]) for r in records]
    assert ("setData", "/a", "failure") in of
    expected = [("create", "/b", "failure"), ("multiOperation", None, "failure"), ("delete", "/a", "success")]
    start = of.index(expected[0])
    assert of[start:start + 3] == expected
    refused = records[start]
    assert refused["session"] == f"0x{conn.session:x}" and refused["ip"] == refused["user"] == "127.0.0.1"
    assert refused["znode_type"] == "persistent"


def test_a_stop_with_a_full_disk_under_load_is_a_clean_one(small_disk, tmp_path):
    server = QuendaServer(tmp_path / "server", {"dataDir": str(small_disk)})
    acknowledged, stop = set(), threading.Event()

    def write(number):
        while not stop.is_set():
            with contextlib.suppress(OSError, Closed), Conn(server.port, timeout=30000, wait=5) as conn:
                turn = 0
                while not stop.is_set():
                    turn += 1
                    path = f"/n{number}-{time.monotonic_ns()}"
                    if conn.call(OP.CREATE, create(path, os.urandom(20_000))).err == ERR.OK:
                        acknowledged.add(path)
            time.sleep(0.02)

    for leave in (0, 300_000):
        server.start()
        stop.clear()
        before = len(acknowledged)
        writers = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(3)]
        for writer in writers:
            writer.start()
        eventually(lambda before=before: len(acknowledged) > before + 20, what="writes")
        logged = server.log_path.stat().st_size
        filler = fill(small_disk, leave)
        # Which of the two depends on what the log has laid aside.
        told = ("the log cannot be written", "the disk is nearly full")
        eventually(lambda logged=logged: any(text in news(server, logged) for text in told), what="the full disk is noticed")
        assert server.stop(STOPPED) == 0, server.log_tail()
        stop.set()
        for writer in writers:
            writer.join(20)
        filler.unlink()
        server.start()
        with Conn(server.port) as conn:
            assert acknowledged <= {f"/{name}" for name in conn.children("/")}
        assert server.stop(STOPPED) == 0


def promptly(answer):
    started = time.monotonic()
    found = answer()
    took = time.monotonic() - started
    assert took < PROMISED, f"{took:.2f} s"
    return found


def test_a_disk_that_does_not_answer_holds_up_no_question_and_ends_a_stop_as_documented(tmp_path):
    admin, metrics = free_port(), free_port()
    server = QuendaServer(tmp_path, {**admin_cfg(admin), **metrics_cfg(metrics)})
    tamper = Tamper(tmp_path)
    server.env.update(tamper.environment())
    with server:
        conn = Conn(server.port)
        conn.create("/n", b"kept")
        assert tamper.syncs > 0
        tamper.slow_disk(FOREVER)
        tamper.slow_looks(FOREVER)
        conn.send(OP.SET_DATA, set_data("/n", b"lost"))
        ends = time.monotonic() + 4
        while time.monotonic() < ends:
            assert promptly(lambda: ask(admin, "/health/live")).status == 200
            for path in ("/health/ready", "/health/leader"):
                assert promptly(lambda path=path: ask(admin, path)).status in (200, 503), path
            for path in ("/commands/monitor", "/commands/dirs", "/commands/stats", "/commands/ruok"):
                assert promptly(lambda path=path: ask(admin, path)).status == 200, path
            assert "fsynctime_count" in promptly(lambda: ask(metrics, "/metrics")).text
            for word in ("ruok", "mntr", "srvr", "stat", "dirs", "conf"):
                assert promptly(lambda word=word: four_letter(server.port, word)), word
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(STOPPED) == -signal.SIGABRT, server.log_tail()
        assert "the disk does not answer; the server ends without it" in server.log_tail()
        server.env.clear()
        server.start()
        with Conn(server.port) as again:
            assert again.get("/n")[0] in (b"kept", b"lost")
        assert server.stop() == 0
