"""`quenda shell` against the goldens of the genuine one, and what it has of its own."""

import json
import pathlib
import re
import signal
import subprocess
import time

import pytest
from integration.lib.process import free_port
from integration.lib.quenda_server import QuendaServer, quenda_binary
from integration.lib.zkwire import Conn
from integration.operators import capture_shell
from integration.operators.shell_session import CFG, SESSIONS, golden, quenda_shell, run

LIVE = next(session for session in SESSIONS if session.stem == "watches")


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.stem)
def test_sessions_read_as_the_genuine_shells(session, tmp_path):
    with QuendaServer(tmp_path / "server", CFG) as server:
        assert run(session, server.port, quenda_shell(tmp_path)) == golden(session).read_text()


def test_the_genuine_shell_itself_gives_the_same_text_at_quenda(tmp_path):
    with QuendaServer(tmp_path / "server", CFG) as server:
        assert run(LIVE, server.port, capture_shell.shell()) == golden(LIVE).read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with QuendaServer(tmp_path_factory.mktemp("server"), CFG) as server:
        yield server


@pytest.fixture
def shell(server):
    """Runs a shell to its end, with or without lines of input."""

    def call(*words, lines="", servers=None, seconds=30):
        command = [str(quenda_binary()), "shell", "-server", servers or server.hosts, *words]
        return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=seconds, check=False)

    return call


def values(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_json_has_one_value_for_each_command_that_shows_something(shell):
    lines = """
        create /json text
        get -s /json
        set /json ""
        get /json
        create /json/null
        get /json/null
        set -b /json/null /w==
        get /json/null
        ls -s /json
        ls -R /json
        stat /json
        getAcl /json
        getAllChildrenNumber /json
        getEphemerals
        setquota -n 9 /json
        listquota /json
        config
        whoami
        sync /json
        version
        printwatches
        history
        help get
        delete /json/null
    """
    shown = iter(values(shell("--json", lines=lines)))
    assert next(shown) == {"created": "/json"}
    got = next(shown)
    assert got["data"] == "text"
    assert got["stat"]["dataLength"] == 4 and got["stat"]["ephemeralOwner"] == "0x0"
    assert next(shown)["stat"]["dataVersion"] == 1
    assert next(shown) == {"data": ""}
    assert next(shown) == {"created": "/json/null"}
    assert next(shown) == {"data": None}
    assert next(shown)["stat"]["dataLength"] == 1
    assert next(shown) == {"base64": "/w=="}
    listed = next(shown)
    assert (listed["children"], listed["stat"]["numChildren"]) == (["null"], 1)
    assert next(shown) == {"paths": ["/json", "/json/null"]}
    assert next(shown)["stat"]["numChildren"] == 1
    assert next(shown) == {"acl": [{"scheme": "world", "id": "anyone", "perms": "cdrwa"}]}
    assert next(shown)["descendants"] == 1
    assert next(shown) == {"paths": []}
    quota = next(shown)
    assert quota["limits"]["count"] == 9 and quota["used"]["count"] == 2
    assert "connect" in next(shown)
    assert {"scheme": "ip", "user": "127.0.0.1"} in next(shown)["identities"]
    assert next(shown)["rc"] == 0
    assert next(shown)["version"].startswith("3.9.5-quenda.")
    assert next(shown) == {"printwatches": True}
    assert len(next(shown)["history"]) == 11
    assert next(shown)["command"] == "get"
    assert list(shown) == []


def test_watch_events_are_json_too(shell):
    shown = values(shell("--json", lines="create /seen\nstat -w /seen\ndelete /seen\n"))
    assert shown[-1]["event"]["type"] == "NodeDeleted"
    assert shown[-1]["event"]["path"] == "/seen"


def test_quiet_leaves_nothing_but_results(shell):
    done = shell("--quiet", "ls", "/zookeeper")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[config, quota]\n", "")
    done = shell("-q", lines="# a comment\n\nls /zookeeper\nget /none\n")
    assert (done.returncode, done.stdout, done.stderr) == (1, "[config, quota]\n", "Node does not exist: /none\n")


def test_read_only_refuses_what_changes_something(shell):
    writes = ["create /no", "set / x", "delete /no", "deleteall /no", "setAcl / world:anyone:r", "setquota -n 1 /no",
              "delquota /no", "reconfig -remove 9"]
    done = shell("-q", "--read-only", lines="".join(f"{line}\n" for line in [*writes, "ls /zookeeper"]))
    assert done.stdout == "[config, quota]\n"
    assert done.stderr.count("--read-only: start one without it") == len(writes), done.stderr


def test_help_names_every_command_and_unknown_ones_point_at_it(shell):
    done = shell("-q", "help")
    assert done.returncode == 0
    for name in ("addWatch", "create", "quit", "whoami", "zookeeper"):
        assert (re.search(rf"^  {name} ", done.stdout, re.MULTILINE) is not None) == (name != "zookeeper")
    done = shell("-q", "nonsense")
    assert done.returncode == 127
    assert done.stderr == "Command not found: nonsense\nType help for the list of commands\n"
    done = shell("-server")
    assert done.returncode == 2 and "a value is required for '--server" in done.stderr
    assert "no command nonsense" in shell("-q", "help", "nonsense").stderr


def test_servers_that_are_not_there_are_told_with_what_to_do(shell):
    nowhere = f"127.0.0.1:{free_port()}"
    done = shell("-q", "ls", "/", servers=nowhere)
    assert done.returncode == 1
    assert done.stderr.startswith("KeeperErrorCode = ConnectionLoss for /\n"), done.stderr
    assert nowhere in done.stderr and "quenda status" in done.stderr
    done = shell("-timeout", "1500", "-waitforconnection", "ls", "/", servers=nowhere)
    assert done.returncode == 1
    assert "KeeperErrorCode = ConnectionLoss" in done.stderr and "Check the servers" in done.stderr
    for wrong in ("127.0.0.1:port", "127.0.0.1:2181/no//root"):
        done = shell("ls", "/", servers=wrong)
        assert done.returncode == 1 and "\"" in done.stderr, done.stderr


def test_the_list_of_servers_is_gone_through_and_the_root_is_put_in_front(shell, server):
    with Conn(server.port) as conn:
        conn.create("/root")
    servers = f"127.0.0.1:{free_port()},{server.hosts}/root"
    lines = "create /inside x\nget -w /inside\nset /inside y\nls /\n"
    done = shell("-q", "-waitforconnection", lines=lines, servers=servers)
    assert "Created /inside\n" in done.stderr, done.stderr
    assert "type:NodeDataChanged path:/inside" in done.stdout
    assert done.stdout.endswith("[inside]\n")
    with Conn(server.port) as conn:
        assert conn.get("/root/inside")[0] == b"y"


def test_identities_come_by_options(shell, tmp_path):
    file = tmp_path / "identities"
    file.write_text("digest:ann:secret\n")
    done = shell("-q", "--auth-file", str(file), lines="create /hers x auth::cdrwa\nget /hers\n")
    assert done.stdout == "x\n", done.stderr
    assert "Insufficient permission : /hers" in shell("-q", "get", "/hers").stderr
    assert shell("-q", "--auth", "digest:ann:secret", "get", "/hers").stdout == "x\n"
    done = shell("-q", "--auth", "nonsense:x", "get", "/hers")
    assert done.returncode == 1 and "identity" in done.stderr, done.stderr
    done = shell("addauth", "nonsense", "x")
    assert "WatchedEvent state:AuthFailed type:None path:null" in done.stdout


def test_sessions_end_with_the_shell(shell, server):
    assert shell("-q", "create", "-e", "/passing").returncode == 0
    with Conn(server.port) as conn:
        assert conn.exists("/passing") is None


def test_a_reader_that_ends_early_ends_the_shell_quietly(server):
    with Conn(server.port) as conn:
        conn.create("/wide")
        for number in range(300):
            conn.create(f"/wide/{'x' * 200}{number}")
    command = f"{quenda_binary()} shell -q -server {server.hosts} ls -R /wide"
    done = subprocess.run(f"{command} | head -n 1", shell=True, capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("/wide\n", "")
    done = subprocess.run(f"{command} >/dev/full", shell=True, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "cannot write the output" in done.stderr


def test_ctrl_c_ends_a_script(server):
    command = [str(quenda_binary()), "shell", "-q", "-server", server.hosts]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("ls /zookeeper\n")
    process.stdin.flush()
    assert process.stdout.readline() == "[config, quota]\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    process.stdin.close()
    process.stdout.close()


def test_ctrl_c_ends_a_command_that_hangs(tmp_path):
    with QuendaServer(tmp_path / "server") as server:
        server.process.send_signal(signal.SIGSTOP)
        for words in (["ls", "/"], ["-waitforconnection", "ls", "/"]):
            command = [str(quenda_binary()), "shell", "-q", "-server", server.hosts, *words]
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            # It has begun when it is connected, which needs the system alone.
            wait_until(lambda: server.port in connected_to(process.pid))
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=10)[1] == "Interrupted\n"
            assert process.returncode == 130


def connected_to(pid):
    """Ports on 127.0.0.1 that a process has connections to."""
    sockets = {link.readlink().name for link in pathlib.Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[2].split(":")[1], 16) for row in rows if f"socket:[{row[9]}]" in sockets}


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what is waited for does not come"
        time.sleep(0.02)


def test_dates_are_those_of_the_local_zone(shell, server, monkeypatch):
    with Conn(server.port) as conn:
        conn.create("/dated")
    for zone, form in (("Asia/Tokyo", "JST"), ("UTC", "UTC")):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        stat = values(shell("--json", "stat", "/dated"))[0]["stat"]
        text = time.strftime(f"%a %b %d %H:%M:%S {form} %Y", time.localtime(stat["ctime"] / 1000))
        assert f"ctime = {text}\n" in shell("stat", "/dated").stdout
    monkeypatch.undo()
    time.tzset()


def test_large_subtrees_are_deleted_in_batches(shell, server):
    with Conn(server.port) as conn:
        conn.create("/many")
        for number in range(250):
            conn.create(f"/many/{number}")
    assert shell("-q", "deleteall", "/many", "-b", "100").returncode == 0
    with Conn(server.port) as conn:
        assert conn.exists("/many") is None
