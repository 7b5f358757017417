"""The audit log: the same lines as a genuine ZooKeeper's for the same session, JSON, rotation, a disk that fails."""

import datetime
import getpass
import json
import pathlib
import re
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.quenda_server import QuendaServer  # noqa: E402
from integration.lib.zkwire import FLAG, Conn, eventually  # noqa: E402
from integration.operators.audit_session import CFG, SUPER, normalised, session  # noqa: E402

GOLDEN = pathlib.Path(__file__).parent / "golden" / "audit.txt"
# The line of ZooKeeper's logback.xml: %d{ISO8601} %p %c{2}: %m
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (INFO|ERROR) o\.a\.z\.a\.Slf4jAuditLogger: (.*)")
NAME = "zookeeper_audit.log"
# Secrets of the session: they must never get into a log.
SECRETS = (b"never shown", b"secret data", b"bobsecret", b"evesecret", SUPER.encode())


def lines_of(path):
    """Level and message of each line; every line has the whole form."""
    found = []
    for line in path.read_text().splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        found.append(f"{match[1]}\t{match[2]}")
    return found


def operations(path):
    return [dict(field.split("=", 1) for field in line.split("\t")[1:]) for line in lines_of(path)]


def quenda(folder, cfg=None, **options):
    return QuendaServer(folder, {**CFG, "extendedTypesEnabled": "true", **(cfg or {})}, **options)


def test_the_same_session_leaves_the_same_lines_as_on_a_genuine_server(tmp_path):
    with quenda(tmp_path) as server:
        session(server.port)
        server.stop()
    path = tmp_path / "data" / NAME
    ours = normalised(lines_of(path), getpass.getuser())
    genuine = GOLDEN.read_text().splitlines()
    # Ephemerals go in another order there: that of a hash table.
    assert in_order(ours) == in_order(genuine)
    text = path.read_bytes()
    assert not [secret for secret in SECRETS if secret in text]
    assert path.stat().st_mode & 0o007 == 0, "others can read it"


def in_order(lines):
    """Runs of lines about ephemerals sorted."""
    result, run = [], []
    for line in lines:
        if "operation=ephemeral" in line:
            run.append(line)
        else:
            result += [*sorted(run), line]
            run = []
    return result + sorted(run)


def test_json_has_the_same_fields_and_the_time(tmp_path):
    before = datetime.datetime.now(datetime.timezone.utc)
    with quenda(tmp_path, {"quenda.audit.format": "json", "quenda.audit.file": str(tmp_path / "a.json")}) as server:
        session(server.port)
        server.stop()
    ours = [json.loads(line) for line in (tmp_path / "a.json").read_text().splitlines()]
    for record in ours:
        time = datetime.datetime.fromisoformat(record.pop("time").replace("Z", "+00:00"))
        assert before - datetime.timedelta(seconds=1) < time < before + datetime.timedelta(minutes=5)
    texts = ["\t".join(f"{key}={value}" for key, value in record.items()) for record in ours]
    expected = [line.split("\t", 1)[1] for line in GOLDEN.read_text().splitlines()]
    assert in_order(normalised(texts, getpass.getuser())) == in_order(expected)


def test_a_forged_path_stays_one_line_and_one_field(tmp_path):
    forged = "/a\tresult=success\n2026-01-01 00:00:00,000 INFO o.a.z.a.Slf4jAuditLogger: user=nobody"
    with quenda(tmp_path) as server:
        with Conn(server.port) as conn:
            with pytest.raises(Exception):
                conn.create(forged)
        server.stop()
    (record,) = [record for record in operations(tmp_path / "data" / NAME) if record["operation"] == "create"]
    assert record["result"] == "failure" and record["znode"].startswith("/a\\u0009result=success\\u000a2026")


def test_the_file_is_turned_over_and_follows_a_rename(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    cfg = {"quenda.audit.maxFileSizeMb": "1", "quenda.audit.maxFiles": "2"}
    with quenda(tmp_path, cfg, env={"ZOO_LOG_DIR": str(logs)}) as server:
        path = logs / NAME
        with Conn(server.port) as conn:
            conn.create("/" + "x" * 2000)
            # What logrotate does.
            path.rename(logs / "moved")
            conn.set("/" + "x" * 2000, b"")
            eventually(path.exists, what="a new file")
            for _ in range(1100):
                conn.set("/" + "x" * 2000, b"")
            eventually((logs / f"{NAME}.2").exists, what="two old files")
        server.stop()
    assert sorted(file.name for file in logs.iterdir()) == ["moved", NAME, f"{NAME}.1", f"{NAME}.2"]
    sizes = [(logs / f"{NAME}.{number}").stat().st_size for number in (1, 2)]
    assert all((1 << 20) <= size < (1 << 20) + 300_000 for size in sizes), sizes
    count = sum(len(operations(logs / name)) for name in ("moved", f"{NAME}.2", f"{NAME}.1", NAME))
    assert count == 1 + 1 + 1 + 1100 + 1, "no line is lost or twice"


def test_a_log_that_cannot_be_written_does_not_stop_the_service_and_gets_all_once_it_can(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    with quenda(tmp_path, {"quenda.audit.file": str(logs / "audit.log")}) as server:
        with Conn(server.port) as conn:
            conn.create("/a")
            eventually(lambda: "znode=/a" in (logs / "audit.log").read_text(), what="the line")
            shutil.rmtree(logs)
            for number in range(50):
                conn.create(f"/b{number}")
            eventually(lambda: "the audit log cannot be written" in server.log_tail(), what="a word in the log")
            logs.mkdir()
            eventually(lambda: "can be written again" in server.log_tail(), what="a word in the log")
        server.stop()
    made = [record["znode"] for record in operations(logs / "audit.log") if record["operation"] == "create"]
    assert made == [f"/b{number}" for number in range(50)]


def test_a_file_that_cannot_be_opened_stops_the_start_and_names_the_key(tmp_path):
    server = quenda(tmp_path, {"quenda.audit.file": str(tmp_path / "none" / "audit.log")}, port=1)
    server.port = 0
    server.data_dir.mkdir(exist_ok=True)
    server.spawn()
    assert server.process.wait(30) == 2
    assert "quenda.audit.file" in server.log_tail() and "Invalid config, exiting abnormally" in server.log_tail()


def test_a_start_that_is_refused_is_told(tmp_path):
    (tmp_path / "data").mkdir()
    server = quenda(tmp_path, {"oraclePath": "/x"}, port=1)
    server.spawn()
    assert server.process.wait(30) == 2
    (record,) = operations(tmp_path / "data" / NAME)
    assert record == {"user": getpass.getuser(), "operation": "serverStart", "result": "failure"}


def test_every_member_tells_of_ephemerals_and_a_restart_repeats_nothing(tmp_path):
    cfg = {"audit.enable": "true"}
    with Ensemble(tmp_path, cfg=cfg) as ensemble:
        conn = ensemble[1].connect(timeout=4000)
        conn.create("/plain")
        conn.create("/mortal", b"", FLAG.EPHEMERAL)
        name = f"0x{conn.session:x}"
        conn.drop()
        paths = [member.data / NAME for member in ensemble]

        def told(path):
            return [r for r in operations(path) if r["operation"].startswith("ephemeral")]

        eventually(lambda: all(told(path) for path in paths), seconds=30, what="the expiry on every member")
        for path in paths:
            (record,) = told(path)
            assert (record["session"], record["znode"]) == (name, "/mortal") and "ip" not in record
        creates = [[r["znode"] for r in operations(path) if r["operation"] == "create"] for path in paths]
        assert creates == [["/plain", "/mortal"], [], []], "only the member that the client was connected to"
        before = [len(operations(path)) for path in paths]
        ensemble.kill9()
        ensemble.start()
        after = [len(operations(path)) for path in paths]
        assert [now - then for then, now in zip(before, after)] == [1, 1, 1], "serverStart alone"
