"""Every four-letter word answers within a second, whatever the server is busy with.

    integration/operators/run -k four_letter_always
"""

import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time

import pytest

from integration.lib.certificates import Authority, server_tls
from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.quenda_server import QuendaServer, quenda_binary
from integration.lib.tamper import Tamper
from integration.lib.zkwire import OP, Closed, Conn, read_to_end, set_data, set_watches, tcp

WORDS = "ruok isro envi gtmk srvr stat cons conf dirs dump hash mntr qsta wchs wchc wchp stmk\0\0\0\0\0\0\0B srst crst".split()
PROMISED = 1.0
HOST = "127.0.0.1"
FOREVER = 3600.0
NOT_SERVING = "This ZooKeeper instance is not currently serving requests"


class Doors:
    """The ports of one server at which words are asked."""

    def __init__(self, port, secure=None, context=None):
        self.port, self.secure, self.context = port, secure, context
        self.slowest = (0.0, None)

    def ask(self, word, tls=False, seconds=30.0):
        """The answer, which has to be whole within the promised second."""
        started = time.monotonic()
        with tcp(self.secure if tls else self.port, HOST, seconds) as plain:
            sock = self.context.wrap_socket(plain, server_hostname="localhost") if tls else plain
            sock.sendall(word.encode())
            answer = read_to_end(sock, seconds).decode()
        took = time.monotonic() - started
        self.slowest = max(self.slowest, (took, word[:4]))
        assert took < PROMISED, f"{word[:4]} took {took:.2f} s (TLS: {tls})"
        return answer

    def ask_all(self):
        answers = {}
        for word in WORDS:
            for tls in (False, True) if self.secure else (False,):
                answers[word[:4]] = self.ask(word, tls)
                # `hash` has nothing to say without digests.
                assert answers[word[:4]] or word == "hash", word
        return answers

    def ask_for(self, seconds):
        """All words in turn, for a while."""
        end = time.monotonic() + seconds
        rounds = 0
        while time.monotonic() < end or not rounds:
            self.ask_all()
            rounds += 1
        print(f"{rounds} rounds, slowest {self.slowest}")
        return rounds


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def context(authority):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(str(authority.issue("client")))
    return context


@pytest.fixture(scope="module")
def start(tmp_path_factory, authority, context):
    """`start(cfg, tamper)` gives a server that serves, with a port for TLS, and its doors."""
    with contextlib.ExitStack() as stack:

        def start(cfg=None, tamper=False):
            folder = tmp_path_factory.mktemp("server")
            secure = free_port()
            tls = {**server_tls(authority), "client.portUnification": "false", "secureClientPort": str(secure)}
            server = QuendaServer(folder, {**tls, **(cfg or {})})
            server.tamper = Tamper(folder)
            if tamper:
                server.env.update(server.tamper.environment())
            server.start()
            stack.callback(server.kill9)
            return server, Doors(server.port, secure, context)

        yield start


def test_idle(start):
    server, doors = start()
    answers = doors.ask_all()
    assert answers["ruok"] == "imok" and "zk_znode_count" in answers["mntr"]
    assert server.alive()


def test_words_that_are_not_allowed(start):
    _, doors = start({"4lw.commands.whitelist": "ruok"})
    for word in WORDS:
        for tls in (False, True):
            answer = doors.ask(word, tls)
            if word == "ruok":
                assert answer == "imok"
            elif word not in ("srvr", "qsta"):  # which are always allowed
                assert answer == f"{word[:4]} is not executed because it is not in the whitelist.\n"


def test_under_full_load_with_checkpoints(start):
    """More requests in flight, of many connections, than the server gets through in a second."""
    server, doors = start()

    def bench(workload):
        words = [quenda_binary(), "bench", workload, "--hosts", f"{HOST}:{server.port}", "--connections", "128",
                 "--depth", "64", "--size", "1024", "--duration", "8"]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with bench("set") as writes, bench("get") as reads:
        try:
            rounds = 0
            while writes.poll() is None or reads.poll() is None:
                doors.ask_all()
                rounds += 1
        finally:
            writes.kill()
            reads.kill()
        assert writes.returncode == reads.returncode == 0, writes.stdout.read() + reads.stdout.read()
    written = int(fields(doors.ask("srvr"))["Zxid"], 16) & 0xFFFFFFFF
    assert written > 5000 and rounds >= 3, "there was no load"
    print(f"{written} writes, {rounds} rounds, slowest {doors.slowest}")


def fields(answer):
    return dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)


def test_while_the_disk_does_not_answer(start):
    server, doors = start(tamper=True)
    conn = Conn(server.port)
    conn.create("/n", b"")
    before = doors.ask_all()
    assert server.tamper.syncs > 0
    server.tamper.slow_disk(FOREVER)
    server.tamper.slow_looks(FOREVER)
    conn.send(OP.SET_DATA, set_data("/n", b"x"))
    answers = doors.ask_all()
    # What was seen last, for nothing newer can be.
    assert fields(answers["dirs"])["datadir_size"] == fields(before["dirs"])["datadir_size"]
    assert f"dataDirSize={fields(before['dirs'])['datadir_size']}" in answers["conf"]
    assert f"0x{conn.session:x}" in answers["dump"]
    # Long enough for whatever the server may wait for.
    doors.ask_for(6.0)
    log = json.loads(doors.ask("qsta"))["log"]
    assert log["persisted"] < log["last"], "the write got through"
    conn.drop()


def test_with_many_sessions_and_watches(start):
    server, doors = start({"maxSessionTimeout": "60000"})
    sessions, watches = 400, 250
    paths = [f"/some/folder/with/a/name/znode-{number:04}" for number in range(watches)]
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(Conn(server.port, timeout=60000)) for _ in range(sessions)]
        for conn in conns:
            conn.call(OP.SET_WATCHES, set_watches(0, exist=paths)).ok()
        conns[0].create("/parent")
        for number in range(500):
            conns[0].create(f"/parent/e{number}", b"", flags=1)
        answers = doors.ask_all()
        assert f"Total watches:{sessions * watches}" in answers["wchs"]
        for word in ("wchc", "wchp"):
            assert answers[word].count("\t") == sessions * watches
        assert answers["cons"].count(",sid=0x") == sessions
        assert answers["dump"].count("/parent/e") == 500
        # Clients that ask for much and do not read it hold up nobody else.
        idle = []
        for _ in range(20):
            sock = stack.enter_context(tcp(server.port, HOST, 20.0, receive_buffer=4096))
            sock.sendall(b"wchc")
            idle.append(sock)
        doors.ask_all()
        print(f"slowest {doors.slowest}")


def test_before_a_quorum_and_through_elections(tmp_path):
    with contextlib.closing(Ensemble(tmp_path)) as ensemble:
        first = ensemble[1]
        first.spawn()
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection((HOST, first.port)).close()
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        doors = {member: Doors(member.port) for member in ensemble}
        answers = doors[first].ask_all()
        assert answers["ruok"] == "imok" and answers["isro"] == "null" and NOT_SERVING in answers["srvr"]
        for member in ensemble:
            if member is not first:
                member.spawn()
        ensemble.wait_serving()
        stop = threading.Event()
        writer = threading.Thread(target=write, args=(ensemble, stop))
        writer.start()
        try:
            for _ in range(2):
                leader = ensemble.leader()
                leader.kill9()
                rest = [member for member in ensemble if member is not leader]
                while ensemble.find_leader() is None:
                    for member in rest:
                        doors[member].ask_all()
                leader.spawn()
                while not leader.serving():
                    for member in rest:
                        doors[member].ask_all()
        finally:
            stop.set()
            writer.join()
        print({member.number: door.slowest for member, door in doors.items()})


def write(ensemble, stop):
    """Writes at whoever serves, until it is told to stop."""
    number = 0
    while not stop.is_set():
        for member in ensemble:
            with contextlib.suppress(OSError, Closed), member.connect(wait=1.0) as conn:
                while not stop.is_set():
                    number += 1
                    conn.create(f"/w{number}", b"x" * 1000)
        time.sleep(0.05)
