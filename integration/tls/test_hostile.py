"""Clients that do not speak TLS, or speak it badly: they are let go, and cost nobody else anything."""

import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

from integration.lib.process import four_letter_word
from integration.lib.zkwire import Conn
from integration.tls import servers
from integration.tls.servers import IS_QUENDA, context, is_let_in

HELLO = bytes.fromhex("160301")


@pytest.fixture(scope="module")
def bounded(start):
    """A server with short patience and few places. A genuine one waits ten seconds."""
    cfg = {"maxClientCnxns": "20"}
    if IS_QUENDA:
        cfg["nio.sessionlessCnxnTimeout"] = "1500"
    return start(**{key.replace(".", "__"): value for key, value in cfg.items()})


def tcp(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def closed(sock):
    """What came until the server closed it."""
    try:
        return servers.read_to_end(sock)
    finally:
        sock.close()


def test_plain_bytes_on_the_secure_port(server, material):
    sock = tcp(server.secure_port)
    sock.sendall(struct.pack(">iiqiqi", 45, 0, 0, 30000, 0, 16) + bytes(17))
    answer = closed(sock)
    assert not answer or answer[0] == 0x15, answer  # an alert
    assert is_let_in(server.secure_port, context(material))


def test_tls_on_the_plain_port(server, material):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        servers.connect(server.port, context(material))
    assert four_letter_word(server.port, "ruok") == "imok"


@pytest.mark.parametrize("rubbish", [
    HELLO + b"\xff\xff" + b"A" * 70000,
    HELLO + b"\x00\x00" * 4000,
    HELLO + b"\x40\x00\x01\xff\xff\xff" + b"A" * 20000,
    b"\x17\x03\x03\x00\x05hello",
    b"\x80\x2e\x01\x00\x02" + bytes(60),
], ids=["huge record", "empty records", "huge hello", "data first", "SSL 2"])
def test_rubbish(bounded, material, rubbish):
    sock = tcp(bounded.secure_port)
    try:
        sock.sendall(rubbish)
    except ConnectionError:
        pass
    closed(sock)
    assert is_let_in(bounded.secure_port, context(material))


def test_half_handshakes_end_and_give_their_places_back(bounded, material):
    begun = time.monotonic()
    socks = [tcp(bounded.secure_port) for _ in range(20)]
    for sock in socks[10:]:
        sock.sendall(HELLO + b"\x00\xc8\x01")
    if IS_QUENDA:  # all places are taken, those of the other port are not; a genuine server counts behind the handshake
        assert not is_let_in(bounded.secure_port, context(material))
    assert four_letter_word(bounded.port, "ruok") == "imok"
    for sock in socks:
        closed(sock)
    assert time.monotonic() - begun < 30
    servers.soon(lambda: is_let_in(bounded.secure_port, context(material)))


def test_a_handshake_in_small_pieces_succeeds(server, material):
    """Byte after byte from the client; the server waits for each."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context(material).wrap_bio(incoming, outgoing, server_hostname="localhost")
    sock = tcp(server.secure_port)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            for byte in outgoing.read():
                sock.sendall(bytes([byte]))
            incoming.write(sock.recv(65536))
    tls.write(b"ruok")
    sock.sendall(outgoing.read())
    answer = b""
    while True:
        try:
            piece = tls.read(100)
            if not piece:
                break
            answer += piece
        except ssl.SSLWantReadError:
            received = sock.recv(65536)
            if not received:
                break
            incoming.write(received)
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            break
    sock.close()
    assert answer == b"imok"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_many_certificates_of_one_name_take_no_time(bounded, material, version):
    """There are more ways through them than can be tried."""
    begun = time.monotonic()
    assert not is_let_in(bounded.secure_port, context(material, "alike", version))
    assert is_let_in(bounded.secure_port, context(material))
    assert time.monotonic() - begun < 10


@pytest.mark.skipif(not IS_QUENDA, reason="a genuine server signs for each, and keeps the others waiting")
def test_a_flood_of_greetings_keeps_nobody_waiting(start, material):
    """A greeting whose sender hangs up costs it nothing."""
    server = start(maxClientCnxns="0")
    outgoing = ssl.MemoryBIO()
    tls = context(material).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    greeting, stop = outgoing.read(), threading.Event()

    def flood():
        while not stop.is_set():
            with tcp(server.secure_port) as sock:
                sock.sendall(greeting)

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2)
        begun = time.monotonic()
        assert is_let_in(server.secure_port, context(material))
        waited = time.monotonic() - begun
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert waited < 5, waited


def test_renegotiation_is_refused(bounded, material):
    """A client over TLS 1.2 asks for another handshake instead of a request. It gets none, and its patience ends."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{bounded.secure_port}", "-tls1_2", "-legacy_renegotiation",
               "-cert", material.path("client.pem"), "-key", material.path("client.key")]
    openssl = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = b""
    while b"Extended master secret" not in said:
        said += openssl.stdout.readline()
    openssl.stdin.write(b"R\n")
    openssl.stdin.flush()
    assert b"RENEGOTIATING" in openssl.stdout.read()
    openssl.wait(30)
    openssl.stdin.close()
    assert is_let_in(bounded.secure_port, context(material))


def test_a_flood_of_handshakes_delays_nobody_much(start, material):
    server = start(maxClientCnxns="0")
    it, stop = context(material), threading.Event()
    bad = context(material, "stranger")
    counts = []

    def flood(number):
        done = 0
        while not stop.is_set():
            try:
                if number % 3 == 0:
                    tcp(server.secure_port).close()
                else:
                    servers.connect(server.secure_port, bad if number % 3 == 1 else it).close()
            except (OSError, ssl.SSLError):
                pass
            done += 1
        counts.append(done)

    with Conn(server.port) as conn:
        conn.create("/flood", b"x")
        threads = [threading.Thread(target=flood, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        slowest, deadline = 0.0, time.monotonic() + 5
        while time.monotonic() < deadline:
            begun = time.monotonic()
            conn.get("/flood")
            slowest = max(slowest, time.monotonic() - begun)
        stop.set()
        for thread in threads:
            thread.join()
        conn.delete("/flood")
    print(f"{sum(counts)} handshakes, slowest read {slowest * 1000:.0f} ms")
    assert sum(counts) > 50 and slowest < 3
    servers.soon(lambda: "zk_outstanding_tls_handshake\t0" in four_letter_word(server.port, "mntr"), 60)
    servers.soon(lambda: is_let_in(server.secure_port, it), 60)
