"""The program: what an operator sees of it."""

import os
import re
import signal
import socket
import subprocess
import time

import pytest

from integration.lib.process import free_port
from integration.lib.quenda_server import quenda_binary
from integration.lib.zkwire import ERR, FLAG, OP, Closed, Conn, create, eventually, expect, four_letter

pytestmark = pytest.mark.quenda_only("Quenda's own command line")


class Output:
    """A started `quenda serve` whose output is a file that can be read while it runs."""

    def __init__(self, tmp_path, *args):
        self.path = tmp_path / f"output-{time.monotonic_ns()}"
        with open(self.path, "wb") as file:
            self.process = subprocess.Popen([quenda_binary(), "serve", *args], stdout=file, stderr=file)

    def text(self):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.path.read_text("utf-8", "replace"))

    def port(self):
        """The port, once it serves."""
        port = self.printed_port()

        def serves():
            try:
                Conn(port).close()
                return True
            except (Closed, OSError):
                return False

        eventually(serves, 30, "the first session")
        return port

    def printed_port(self):
        """The port, as soon as the line with it is there."""

        def found():
            assert self.process.poll() is None, self.text()
            return re.search(r"127\.0\.0\.1:(\d+)", self.text())

        return int(eventually(found, 30, "the line that says where it listens").group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def flags(tmp_path, port=0):
    return "--client-port", str(port), "--client-address", "127.0.0.1", "--data-dir", str(tmp_path / "data")


def test_one_line_says_where_it_listens_and_where_its_data_is(tmp_path):
    with Output(tmp_path, *flags(tmp_path)) as server:
        port = server.port()
        assert port != 0
        with Conn(port) as c:
            c.create("/n")
        lines = [line for line in server.text().splitlines() if f"127.0.0.1:{port}" in line]
        assert any(str(tmp_path / "data") in line for line in lines), server.text()


def test_that_line_is_printed_when_sessions_are_taken(tmp_path):
    """A script that waits for the line and then starts a client must not be turned away."""
    for _ in range(5):
        with Output(tmp_path, *flags(tmp_path)) as server, Conn(server.printed_port()) as c:
            assert c.exists("/")


def test_a_second_process_on_the_same_directory_is_refused(tmp_path):
    with Output(tmp_path, *flags(tmp_path)) as first:
        port = first.port()
        with Output(tmp_path, *flags(tmp_path)) as second:
            assert second.process.wait(30) not in (0, None)
            text = second.text().lower()
            assert str(tmp_path / "data").lower() in text, text
            assert any(word in text for word in ("another process", "in use", "already", "locked")), text
            assert "panicked" not in text
        with Conn(port) as c:
            assert c.create("/n") == "/n"


def test_a_taken_port_is_a_clear_error(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Output(tmp_path, *flags(tmp_path, port)) as server:
            assert server.process.wait(30) not in (0, None)
            assert str(port) in server.text()
            assert "panicked" not in server.text()


@pytest.mark.parametrize(
    "line, word",
    [("tickTime=abc", "tickTime"), ("clientPort=99999", "clientPort"), ("maxSessionTimeout=-5x", "maxSessionTimeout")],
)
def test_a_bad_configuration_names_its_key(tmp_path, line, word):
    cfg = tmp_path / "zoo.cfg"
    cfg.write_text(f"dataDir={tmp_path}/data\nclientPortAddress=127.0.0.1\nclientPort={free_port()}\n{line}\n")
    with Output(tmp_path, "--config", str(cfg)) as server:
        assert server.process.wait(30) not in (0, None)
        assert word in server.text(), server.text()
        assert "panicked" not in server.text()


def test_a_missing_configuration_names_the_file(tmp_path):
    with Output(tmp_path, "--config", str(tmp_path / "none.cfg")) as server:
        assert server.process.wait(30) not in (0, None)
        assert "none.cfg" in server.text()


def test_known_keys_without_effect_are_named_in_the_log(tmp_path):
    cfg = tmp_path / "zoo.cfg"
    cfg.write_text(
        f"# a comment\n\ndataDir={tmp_path}/data\nclientPortAddress=127.0.0.1\nclientPort=0\n"
        "autopurge.snapRetainCount=5\ninitLimit=10\nsyncLimit=5\nnio.numWorkerThreads=4\nadmin.enableServer=false\n"
    )
    with Output(tmp_path, "--config", str(cfg)) as server:
        with Conn(server.port()) as c:
            assert c.exists("/")
        for key in ("autopurge.snapRetainCount", "nio.numWorkerThreads"):
            assert key in server.text()


def test_data_directory_and_log_directory(tmp_path):
    cfg = tmp_path / "zoo.cfg"
    cfg.write_text(
        f"dataDir={tmp_path}/data\ndataLogDir={tmp_path}/log\nclientPortAddress=127.0.0.1\nclientPort=0\n"
    )
    for _ in range(2):
        with Output(tmp_path, "--config", str(cfg)) as server:
            with Conn(server.port()) as c:
                c.create("/n", flags=FLAG.SEQUENTIAL)
    assert os.listdir(tmp_path / "data")
    assert os.listdir(tmp_path / "log")
    with Output(tmp_path, "--config", str(cfg)) as server, Conn(server.port()) as c:
        assert len(c.children("/")) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_B13_a_clean_stop_does_not_end_sessions(tmp_path, number):
    port = free_port()
    with Output(tmp_path, *flags(tmp_path, port)) as server:
        server.port()
        owner = Conn(port, timeout=20000)
        owner.create("/e", flags=FLAG.EPHEMERAL)
        for index in range(100):
            owner.send(OP.CREATE, create(f"/n{index}"))
        replies = [owner.reply().err for _ in range(100)]
        assert replies == [0] * 100
        server.process.send_signal(number)
        assert server.process.wait(20) == 0
        owner.expect_close()
        assert "panicked" not in server.text()
    with Output(tmp_path, *flags(tmp_path, port)) as server:
        server.port()
        with owner.resume(last_zxid=owner.last_zxid) as again, Conn(port) as other:
            assert again.session == owner.session
            assert other.exists("/e").ephemeral_owner == owner.session
            assert len(other.children("/")) == 102


def test_a_stop_is_quick_with_clients_and_half_open_connections(tmp_path):
    with Output(tmp_path, *flags(tmp_path)) as server:
        port = server.port()
        held = [Conn(port) for _ in range(50)]
        half = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        start = time.monotonic()
        server.process.terminate()
        assert server.process.wait(20) == 0
        assert time.monotonic() - start < 5
        for sock in (*held, *half):
            sock.close() if isinstance(sock, socket.socket) else sock.drop()


def test_hard_quotas_are_enforced_when_asked_for(own_server):
    server = own_server({"enforceQuota": "true"})
    with Conn(server.port) as c:
        c.create("/q")
        c.create("/zookeeper/quota/q")
        c.create("/zookeeper/quota/q/zookeeper_limits", b"count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=3")
        c.create("/zookeeper/quota/q/zookeeper_stats", b"")
        assert c.get("/zookeeper/quota/q/zookeeper_stats")[0] == b"count=1,bytes=0"
        c.create("/q/a", b"12345")
        c.create("/q/b", b"12345")
        with expect(ERR.QUOTA_EXCEEDED):
            c.create("/q/c")
        with expect(ERR.QUOTA_EXCEEDED):
            c.set("/q/a", b"123456")
        assert c.get("/zookeeper/quota/q/zookeeper_stats")[0] == b"count=3,bytes=10"
        c.delete("/q/b")
        assert c.get("/zookeeper/quota/q/zookeeper_stats")[0] == b"count=2,bytes=5"
        assert c.create("/q/c") == "/q/c"


def test_skip_acl(own_server):
    server = own_server({"skipACL": "yes"})
    with Conn(server.port) as c:
        c.create("/n", b"x", acl=((0, "world", "anyone"),))
        assert c.get("/n")[0] == b"x"
        with expect(ERR.INVALID_ACL):
            c.create("/m", acl=())


@pytest.mark.parametrize("way", ["closed pipe", "full device"])
def test_output_that_cannot_be_written_does_not_stop_the_server(tmp_path, way):
    """`quenda serve | head -1`, or a log on a disk that has filled up, is no reason to end or to refuse anybody."""
    port = free_port()
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(
            [quenda_binary(), "serve", *flags(tmp_path, port)],
            stdout=subprocess.PIPE if way == "closed pipe" else full, stderr=subprocess.STDOUT,
        )
    try:
        if way == "closed pipe":
            process.stdout.readline()
            process.stdout.close()

        def serves():
            assert process.poll() is None, f"ended with {process.poll()}"
            try:
                Conn(port).close()
                return True
            except (Closed, OSError):
                return False

        eventually(serves, 30, "the server listening")
        for _ in range(20):
            with Conn(port) as c:
                assert c.exists("/")
            assert "Mode:" in four_letter(port, "srvr")
        assert process.poll() is None
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
