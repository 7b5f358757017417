"""The operator's interface."""

import contextlib
import socket
import threading
import time

import pytest

from integration.lib.zkwire import (
    ERR, FLAG, OP, Closed, Conn, create, eventually, four_letter, read_to_end, set_data, set_watches, tcp,
)

NOT_ALLOWED = "{} is not executed because it is not in the whitelist.\n"
WORDS = ("ruok", "srvr", "stat", "mntr", "conf", "cons", "envi", "isro", "wchs", "dump")


@contextlib.contextmanager
def writes(port, path="/load"):
    """Sets of 10 KB, as fast as they are answered, while the block runs."""
    stop = threading.Event()
    failures = []
    with Conn(port) as conn:
        conn.create(path)

        def load():
            try:
                while not stop.is_set():
                    conn.pipeline([(OP.SET_DATA, set_data(path, bytes(10_000)))] * 100)
            except (Closed, OSError, AssertionError) as error:
                failures.append(error)

        worker = threading.Thread(target=load)
        worker.start()
        try:
            yield
        finally:
            stop.set()
            worker.join()
    assert not failures, failures


def test_B109_mntr_answers_within_a_second_under_write_load(own_server, long):
    server = own_server()
    with writes(server.port):
        slowest, until = 0.0, time.monotonic() + (30 if long else 4)
        while time.monotonic() < until:
            start = time.monotonic()
            assert "zk_znode_count" in four_letter(server.port, "mntr")
            slowest = max(slowest, time.monotonic() - start)
            time.sleep(0.1)
    assert slowest < 1.0


def test_B112_words_that_are_not_allowed(own_server):
    server = own_server({"4lw.commands.whitelist": "ruok, conf"})
    assert four_letter(server.port, "ruok") == "imok"
    assert "clientPort=" in four_letter(server.port, "conf")
    for word in WORDS:
        if word not in ("ruok", "conf", "srvr"):
            assert four_letter(server.port, word) == NOT_ALLOWED.format(word)
    # `srvr` cannot be switched off: probes count on it.
    assert "Mode: standalone" in four_letter(server.port, "srvr")
    for word in ("wchc", "wchp", "crst", "srst", "dirs", "gtmk", "stmk"):
        assert four_letter(server.port, word) == NOT_ALLOWED.format(word)


def test_B112_by_default_nothing_heavy_is_answered(own_server):
    server = own_server({"4lw.commands.whitelist": None})
    assert "Mode: standalone" in four_letter(server.port, "srvr")
    for word in ("wchc", "wchp", "crst", "srst"):
        assert four_letter(server.port, word) == NOT_ALLOWED.format(word)


def test_B112_listing_many_watches_does_not_stall_the_service(own_server, long):
    server = own_server()
    count = 1_000_000 if long else 100_000
    with Conn(server.port, timeout=60000) as watcher, writes(server.port):
        for first in range(0, count, 20_000):
            paths = [f"/w/{number}" for number in range(first, min(first + 20_000, count))]
            assert watcher.call(OP.SET_WATCHES, set_watches(0, exist=paths)).err == ERR.OK
        assert f"Total watches:{count}" in four_letter(server.port, "wchs")
        slowest, done = 0.0, threading.Event()
        answers = []

        def ask():
            answers.extend(four_letter(server.port, word, timeout=60) for word in ("wchc", "wchp", "dump"))
            done.set()

        asking = threading.Thread(target=ask)
        asking.start()
        with Conn(server.port, timeout=60000) as c:
            while not done.is_set():
                start = time.monotonic()
                c.ping()
                slowest = max(slowest, time.monotonic() - start)
                time.sleep(0.01)
        asking.join()
        assert all(answers)
        assert slowest < 2.0


@pytest.mark.parametrize("piece", [1, 2, 3])
def test_B112_a_word_may_come_in_pieces(server, piece):
    with tcp(server.port) as sock:
        for start in range(0, 4, piece):
            sock.sendall(b"ruok"[start : start + piece])
            time.sleep(0.05)
        assert read_to_end(sock) == b"imok"


def test_B112_a_word_may_be_followed_by_a_half_close_or_a_newline(server):
    for text in (b"ruok", b"ruok\n", b"ruok\r\n"):
        with tcp(server.port) as sock:
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
            assert read_to_end(sock) == b"imok"


def test_words_srvr_and_stat(own_server):
    server = own_server()
    with Conn(server.port) as c:
        c.create("/n", b"x")
        zxid = c.last_zxid
        text = four_letter(server.port, "srvr")
        lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        assert lines["Mode"] == "standalone"
        assert int(lines["Zxid"], 16) == zxid
        assert int(lines["Node count"]) == 6  # the root counts twice, as in Apache ZooKeeper
        # The word's own connection is counted or not, at the server's choice.
        assert int(lines["Connections"]) in (1, 2)
        assert {"Received", "Sent", "Outstanding"} <= lines.keys()
        # The form that client libraries parse: "3.x.y-…, built on …" and min/avg/max.
        version, _, built = lines["Zookeeper version"].partition(", built on ")
        assert version.split("-")[0].split(".")[0] == "3" and built
        low, average, high = lines["Latency min/avg/max"].split("/")
        assert int(low) <= float(average) <= int(high)
        stat = four_letter(server.port, "stat")
        assert "Clients:\n" in stat and "(queued=0,recved=" in stat and "127.0.0.1:" in stat
        assert text.splitlines()[-1] in stat.splitlines()


def test_words_mntr(own_server):
    server = own_server()
    with Conn(server.port) as c:
        c.create("/n", b"12345")
        c.create("/e", flags=FLAG.EPHEMERAL)
        c.get("/n", watch=True)
        pairs = dict(line.split("\t", 1) for line in four_letter(server.port, "mntr").splitlines())
        assert pairs["zk_server_state"] == "standalone"
        assert int(pairs["zk_ephemerals_count"]) == 1
        assert int(pairs["zk_watch_count"]) == 1
        assert int(pairs["zk_znode_count"]) == 7
        for key in ("zk_version", "zk_avg_latency", "zk_min_latency", "zk_max_latency", "zk_packets_received",
                    "zk_packets_sent", "zk_num_alive_connections", "zk_outstanding_requests",
                    "zk_approximate_data_size", "zk_open_file_descriptor_count", "zk_max_file_descriptor_count"):
            assert key in pairs, key


def test_words_the_others(own_server):
    server = own_server()
    with Conn(server.port, timeout=30000) as c:
        c.create("/e", flags=FLAG.EPHEMERAL)
        c.exists("/watched", watch=True)
        assert four_letter(server.port, "ruok") == "imok"
        assert four_letter(server.port, "isro") == "rw"
        conf = dict(line.split("=", 1) for line in four_letter(server.port, "conf").splitlines() if "=" in line)
        assert conf["clientPort"] == str(server.port)
        assert {"dataDir", "dataLogDir", "tickTime", "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout",
                "serverId"} <= conf.keys()
        cons = four_letter(server.port, "cons")
        assert f"sid=0x{c.session:x}" in cons and "to=30000" in cons
        assert "Environment:" in four_letter(server.port, "envi")
        assert "1 connections watching 1 paths\nTotal watches:1" in four_letter(server.port, "wchs")
        dump = four_letter(server.port, "dump")
        assert f"0x{c.session:x}" in dump and "/e" in dump


def test_words_are_lengths_once_a_session_stands(connect):
    c = connect()
    c.send_bytes(b"ruok")
    c.expect_close()


@pytest.mark.quenda_only("the memory limit is Quenda's own")
def test_B113_no_growth_near_the_limit_but_everything_else(own_server):
    """The limit that this member has is room on its disk; B92 shows the refusal itself, this the rest of the service."""
    from test_b8_crash import ABOVE_THE_RESERVE, DISK_MEGABYTES, fill, small_disk, write_until_refused

    with small_disk(DISK_MEGABYTES) as folder:
        server = own_server(folder=folder)
        held = Conn(server.port, timeout=60000)
        held.create("/shrink", b"x" * 1000)
        held.create("/gone", b"x")
        filler = fill(folder, leave=ABOVE_THE_RESERVE)
        write_until_refused(held, "/grow")
        held.drop()
        held = held.resume()  # a session can be moved,
        with Conn(server.port) as fresh:  # opened,
            fresh.ping()  # kept alive,
            fresh.delete("/gone")  # relieved,
            assert fresh.set("/shrink", b"").data_length == 0  # and made smaller
            assert fresh.children("/")
        filler.unlink()
        eventually(lambda: held.call(OP.CREATE, create("/after")).err in (0, ERR.NODE_EXISTS), 30, "recovery")
        held.close()


def test_B116_no_zxid_is_taken_and_nothing_stalls_while_state_is_written_out(own_server):
    server = own_server({"snapCount": "1000"})
    with Conn(server.port) as c:
        c.pipeline((OP.CREATE, create(f"/n{number}", bytes(500))) for number in range(10_000))
        c.sync()
        zxid, slowest, until = c.last_zxid, 0.0, time.monotonic() + 6
        while time.monotonic() < until:
            start = time.monotonic()
            c.sync()
            slowest = max(slowest, time.monotonic() - start)
            assert c.last_zxid == zxid
            time.sleep(0.005)
        assert slowest < 1.0
