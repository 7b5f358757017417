"""Answers of a running server against the goldens of a genuine ZooKeeper, and what sockets do around them.

The goldens were taken by `capture.py` in the same state and are normalised in the same way. Beyond that, zxids are
compared without their epoch.
"""

import pathlib
import re
import socket
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.four_letter import capture  # noqa: E402
from integration.lib.target import TARGET, build_server  # noqa: E402
from integration.lib.zkwire import four_letter, read_to_end, tcp  # noqa: E402

GOLDENS = capture.DEFAULT_FOLDER
# Compared apart: hash has no text, in dump sessions share a set if they expire in the same second, mntr has fewer keys.
EXACT = "ruok isro gtmk srvr stat cons conf dirs envi wchs wchc wchp crst srst stmk gtmk_after_stmk".split()
NETTY = capture.NETTY if TARGET != "quenda" else {}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with build_server(tmp_path_factory.mktemp("all"), NETTY) as server:
        yield server


@pytest.fixture(scope="module")
def answers(server):
    idle = {f"{word}_idle": capture.ask(server.port, {}, word) for word in capture.IDLE_WORDS.split()}
    return {**idle, **capture.capture(server.port)}


def without_epoch(text):
    """zxids as their counter alone: the epoch of a cluster of one is ours to choose."""

    def counter(match):
        zxid = int(match[2], 16)
        return f"{match[1]}0x{zxid & 0xFFFFFFFF if zxid != 0xFFFFFFFFFFFFFFFF else zxid:x}"

    return re.sub(r"(Zxid: |lzxid=)0x([0-9a-f]+)", counter, text)


def golden(name):
    return (GOLDENS / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", EXACT + ["wchs_idle", "wchc_idle", "wchp_idle"])
def test_answer_equals_the_genuine_one(answers, name):
    answer = capture.as_slow_as(golden(name), without_epoch(answers[name]))
    assert answer == golden(name)


def test_dump_shows_sessions_and_their_ephemerals(answers):
    sessions, ephemerals = answers["dump"].split("ephemeral nodes dump:\n")
    assert ephemerals.split("Sets")[0] == golden("dump").split("ephemeral nodes dump:\n")[1].split("Sets")[0]
    heading, sets, *lines = sessions.splitlines()
    assert heading == "SessionTracker dump:"
    assert re.fullmatch(r"Session Sets \([12]\)/\(2\):", sets)
    assert sorted(line for line in lines if line.startswith("\t")) == ["\t0x100000000000001", "\t0x100000000000002"]


@pytest.mark.skipif(TARGET != "quenda", reason="the server of this test listens with Netty, whose dump has no connections")
def test_dump_shows_connections_as_the_nio_listener_does(answers):
    def lines(text):
        return [line for line in text.partition("Connections Sets")[2].splitlines() if line.startswith("\tip: ")]

    assert len(lines(golden("dump"))) == 3
    assert sorted(lines(answers["dump"])) == sorted(lines(golden("dump")))


# Of ZooKeeper 3.5; collectors read it to this day.
OF_OLDER_RELEASES = {"zk_fsync_threshold_exceed_count"}


def test_mntr_has_no_key_that_is_not_genuine(answers):
    keys = answers["mntr"].splitlines()
    unknown = set(keys) - set(golden("mntr").splitlines())
    assert {key for key in unknown if not key.startswith("zk_quenda_")} <= OF_OLDER_RELEASES
    classic = "znode_count watch_count ephemerals_count approximate_data_size open_file_descriptor_count uptime"
    assert {f"zk_{key}" for key in f"{classic} digest_mismatches_count".split()} <= set(keys)


def test_mntr_values_are_those_of_srvr(server):
    values = dict(line.split("\t") for line in four_letter(server.port, "mntr").splitlines())
    srvr = dict(line.split(": ", 1) for line in four_letter(server.port, "srvr").splitlines())
    assert values["zk_znode_count"] == srvr["Node count"]
    assert values["zk_server_state"] == srvr["Mode"] == "standalone"
    assert values["zk_version"] == srvr["Zookeeper version"]
    assert int(values["zk_open_file_descriptor_count"]) > 0


def test_resets_reset(answers):
    lines = answers["cons_after_crst"].splitlines()
    assert len([line for line in lines if "lop=NA" in line and "recved=0,sent=0" in line]) == 2
    assert "Latency min/avg/max: 0/0.0/0\n" in answers["srvr_after_srst"]


@pytest.mark.parametrize("pieces", [[b"ruok"], [b"ru", b"ok"], [b"ruok\n"], [b"ruok\r\n"], [b"r", b"u", b"o", b"k"]])
@pytest.mark.parametrize("half_close", [False, True])
def test_a_word_may_come_in_pieces_with_an_end_of_line_and_half_closed(server, pieces, half_close):
    with tcp(server.port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            sock.sendall(piece)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        assert read_to_end(sock) == b"imok"


@pytest.mark.parametrize("word", ["lead", "RUOK", "ABCD", "\xff\xf4\xff\xfd"])
def test_what_is_no_word_closes_without_an_answer(server, word):
    with tcp(server.port) as sock:
        sock.sendall(word.encode("latin-1"))
        assert read_to_end(sock) == b""


def test_a_word_that_is_not_allowed_is_refused_by_name(tmp_path):
    with build_server(tmp_path, {**NETTY, "4lw.commands.whitelist": "ruok"}) as server:
        assert four_letter(server.port, "wchc") == golden("refused")
        assert four_letter(server.port, "ruok") == "imok"
        assert "Mode: " in four_letter(server.port, "srvr"), "srvr is always allowed"
