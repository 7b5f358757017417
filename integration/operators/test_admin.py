"""Administration over HTTP: the commands of ZooKeeper's AdminServer against goldens of a genuine one, and more.

    integration/operators/run -k test_admin
"""

import contextlib
import http.client
import json
import pathlib
import signal
import socket
import ssl
import subprocess
import time

import pytest

from integration.lib.certificates import Authority
from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.quenda_server import QuendaServer, quenda_binary
from integration.lib.zkwire import OP, Conn, four_letter
from integration.operators.admin import COMMANDS, HOST, admin_cfg, ask, command, described, pretty
from integration.operators.capture_admin import EPHEMERAL, OBSERVER, prepare

GOLDEN = pathlib.Path(__file__).parent / "golden" / "admin"
NOT_SERVING = "This ZooKeeper instance is not currently serving requests"
# What Zabbix's template reads of `monitor`, by the state in which it is there.
ZABBIX = """server_state uptime version approximate_data_size open_file_descriptor_count outstanding_requests
num_alive_connections global_sessions avg_latency min_latency max_latency znode_count ephemerals_count watch_count
packets_received packets_sent""".split()
ZABBIX_LEADER = "pending_syncs quorum_size synced_followers synced_non_voting_followers synced_observers learners".split()
ALIASES = {
    "conf": "configuration", "config": "configuration", "crst": "connection_stat_reset", "cons": "connections",
    "env": "environment", "envi": "environment", "gtmk": "get_trace_mask", "icfg": "initial_configuration",
    "isro": "is_read_only", "lsnp": "last_snapshot", "lead": "leader", "mntr": "monitor",
    "orst": "observer_connection_stat_reset", "obsr": "observers", "srvr": "server_stats", "stmk": "set_trace_mask",
    "srst": "stat_reset", "stat": "stats", "sysp": "system_properties", "wchs": "watch_summary", "wchc": "watches",
    "wchp": "watches_by_path",
}  # fmt: skip


class Alone:
    """One server with administration."""

    def __init__(self, folder, cfg=None):
        self.admin = free_port()
        self.server = QuendaServer(folder, {**admin_cfg(self.admin), **(cfg or {})})

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.kill9()

    @property
    def port(self):
        return self.server.port


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    with Alone(tmp_path_factory.mktemp("alone")) as server, Conn(server.port) as conn:
        prepare(conn)
        server.conn = conn
        yield server


class Four:
    def __init__(self, folder):
        self.ports = {number: free_port() for number in range(1, OBSERVER + 1)}
        own = {number: admin_cfg(port) for number, port in self.ports.items()}
        self.ensemble = Ensemble(folder, members=OBSERVER, observers=[OBSERVER], member_cfg=own)

    def port(self, member):
        return self.ports[member.number]


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    built = Four(tmp_path_factory.mktemp("four"))
    with built.ensemble, contextlib.ExitStack() as conns:
        first = conns.enter_context(built.ensemble.leader().connect_soon())
        prepare(first)
        for member in built.ensemble:
            wait(lambda member=member: member.zxid() >= first.last_zxid)
            other = conns.enter_context(member.connect_soon())
            other.get("/a", watch=True)
        yield built


def wait(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.02)


def same_as_genuine(port, state):
    golden = json.loads((GOLDEN / f"{state}.json").read_text())
    for name, expected in golden.items():
        answer = command(port, name)
        assert answer.text == pretty(answer.json), name
        found = described(answer)
        if name in ("monitor", "system_properties") and "version" in expected["shape"]:
            both = set(expected["shape"]) & set(found["shape"])
            expected["shape"] = {key: expected["shape"][key] for key in both}
            found["shape"] = {key: found["shape"][key] for key in both}
        elif name == "system_properties":
            keys = [key for key in found["shape"] if key not in ("command", "error")]
            assert keys == sorted(keys) and "user.dir" in keys
            del expected["shape"], found["shape"]
        elif name == "initial_configuration":
            # A genuine member of an ensemble does not know its own.
            for answered in (expected, found):
                answered["shape"].pop("initial_configuration", None)
        elif name == "hash":
            # Those of past changes; a tree that has just begun has none.
            found["shape"].pop("digests", None)
            expected["shape"].pop("digests", None)
        assert json.dumps(found) == json.dumps(expected) or found == expected and name == "monitor", name


def test_a_member_that_runs_alone(alone):
    same_as_genuine(alone.admin, "standalone")


@pytest.mark.parametrize("state", ["leader", "follower", "observer"])
def test_members_of_an_ensemble(four, state):
    members = {"leader": four.ensemble.leader(), "follower": four.ensemble.followers()[0]}
    same_as_genuine(four.port(members.get(state, four.ensemble[OBSERVER])), state)


def test_the_index_names_all_commands(alone):
    for path in ("/commands", "/commands/"):
        answer = ask(alone.admin, path)
        names = [line.split(">")[1].split("<")[0] for line in answer.text.split("\n<br/>\n") if line]
        assert answer.status == 200 and names == sorted(names)
        assert set(COMMANDS) <= set(names)
        for name in names:
            assert f'<a href="/commands/{name}">{name}</a>\n<br/>\n' in answer.text
            assert command(alone.admin, name).json["error"] != f"Unknown command: {name}"


def test_aliases_answer_as_their_commands(alone):
    for alias, name in ALIASES.items():
        assert command(alone.admin, alias).json["command"] == name
        assert list(command(alone.admin, alias).json) == list(command(alone.admin, name).json), alias


def test_what_is_no_command(alone):
    for path in ("nope", "RUOK", "ruok/", "ruok/x", "/ruok", "a<b>"):
        answer = command(alone.admin, path.replace("<", "%3C").replace(">", "%3E"))
        assert answer.status == 200 and answer.headers["content-type"] == "application/json"
        assert answer.text == pretty({"command": path, "error": f"Unknown command: {path}"})
    assert command(alone.admin, "%zz").status == 400
    for path in ("/", "/x", "/commandsx", "/health", "/health/x"):
        assert ask(alone.admin, path).status == 404


def test_methods(alone):
    post = command(alone.admin, "ruok", method="POST")
    assert post.status == 405 and post.headers["allow"] == "GET" and "is for GET" in post.error
    assert command(alone.admin, "ruok", method="TRACE").status == 403
    for method in ("PUT", "DELETE", "PATCH"):
        assert command(alone.admin, "ruok", method=method).status == 405
    head = command(alone.admin, "ruok", method="HEAD")
    assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) > 0
    assert "GET" in command(alone.admin, "ruok", method="OPTIONS").headers["allow"]


def test_values_are_those_of_the_words(alone):
    port = alone.admin
    session = alone.conn.session
    alone.conn.get("/a", watch=True)
    stats = command(port, "server_stats").json
    words = dict(line.split(": ", 1) for line in four_letter(alone.port, "srvr").splitlines())
    assert stats["version"] == words["Zookeeper version"] and stats["node_count"] == int(words["Node count"])
    assert stats["server_stats"]["last_processed_zxid"] == int(words["Zxid"], 16)
    (connection,) = command(port, "connections").json["connections"]
    assert connection["session_id"] == session and connection["last_operation"] == "GETD"
    assert connection["remote_socket_address"] == "%s:%d" % alone.conn.sock.getsockname()
    assert command(port, "watches").json["session_id_to_watched_paths"] == {str(session): ["/a"]}
    assert command(port, "watches_by_path").json["path_to_session_ids"] == {"/a": [session]}
    dump = command(port, "dump").json
    assert dump["session_id_to_ephemeral_paths"] == {str(session): ["/e"]}
    ((expiry, sessions),) = dump["expiry_time_to_session_ids"].items()
    assert sessions == [session] and int(expiry) % 2000 == 0
    assert command(port, "configuration").json["client_port"] == alone.port
    assert "admin.serverPort" in command(port, "initial_configuration").json["initial_configuration"]
    zxid = int(command(port, "last_snapshot").json["zxid"], 16)
    assert zxid >= 0


def test_the_trace_mask(alone):
    assert command(alone.admin, "set_trace_mask?traceMask=5").json["tracemask"] == 5
    assert four_letter(alone.port, "gtmk") == "5"
    wrong = command(alone.admin, "stmk?traceMask=x")
    assert wrong.status == 200 and wrong.error == "setTraceMask requires long traceMask argument, got x"
    assert command(alone.admin, "get_trace_mask").json["tracemask"] == 5


def test_zabbix_finds_its_figures(alone, four):
    monitor = command(alone.admin, "monitor").json
    assert not [key for key in ZABBIX if key not in monitor]
    leader = command(four.port(four.ensemble.leader()), "monitor").json
    assert not [key for key in ZABBIX + ZABBIX_LEADER if key not in leader]
    assert leader["server_state"] == "leader" and leader["synced_followers"] == 2 and leader["synced_observers"] == 1


def test_members_see_each_other(four):
    ensemble = four.ensemble
    leader = ensemble.leader()
    for member in ensemble:
        answer = command(four.port(member), "leader").json
        assert answer["is_leader"] == (member is leader) and answer["leader_id"] == leader.number
        view = command(four.port(member), "voting_view").json["current_config"]
        assert list(view) == ["1", "2", "3"]
        assert view["1"] == {
            "server_addresses": [f"{HOST}:{ensemble[1].quorum_port}"],
            "election_addresses": [f"{HOST}:{ensemble[1].election_port}"],
            "client_address": ensemble[1].address,
            "learner_type": "participant",
        }
        state = command(four.port(member), "zabstate").json
        assert state["myid"] == member.number and state["voting"] == (member.number != OBSERVER)
        assert state["quorum_address"]["one"] == f"{HOST}:{member.quorum_port}"


def test_what_passes_to_an_observer_is_counted(four):
    leader = four.port(four.ensemble.leader())

    def observer():
        (one,) = command(leader, "observers").json["observers"]
        return one

    wait(lambda: len(command(leader, "observers").json["observers"]) == 1)
    before = observer()
    assert before["sid"] == OBSERVER
    now = time.time() * 1000
    assert now - 600_000 < before["established"] <= now
    with four.ensemble[OBSERVER].connect_soon() as conn:
        for number in range(5):
            conn.create(f"/through-the-observer-{number}", b"")
    after = observer()
    assert after["requests"] >= before["requests"] + 5
    assert after["packets_received"] > before["packets_received"] and after["packets_sent"] > before["packets_sent"]
    assert command(leader, "orst").status == 200
    assert observer()["requests"] < after["requests"]


def test_secrets_are_not_shown(tmp_path):
    secret = "cmVkYWN0ZWQ"
    cfg = {
        "DigestAuthenticationProvider.superDigest": f"super:{secret}",
        "ssl.keyStore.password": secret,
        "SASLAuthenticationProvider.superPassword": secret,
    }
    with Alone(tmp_path, cfg) as server:
        for name in COMMANDS:
            assert secret not in command(server.admin, name).text, name
        shown = command(server.admin, "system_properties").json
        assert shown["zookeeper.ssl.keyStore.password"] == "***"
        assert shown["zookeeper.admin.serverPort"] == str(server.admin)


def test_who_may_use_guarded_commands(tmp_path):
    # The digest of super:test.
    cfg = {"DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU="}
    with Alone(tmp_path, cfg) as server, Conn(server.port) as conn:

        def shed(header):
            headers = {"Authorization": header} if header is not None else {}
            body = json.dumps({"percentage": 0})
            answer = command(server.admin, "shed", method="POST", body=body, headers=headers)
            return answer.status, answer.error

        missing = (401, "Auth info is missing for the command")
        nobody = (401, "Not authenticated")
        refused = (403, "Not authorized")
        fine = (200, None)
        assert shed(None) == missing
        # The root is open to everybody, so whoever says who it is may do all.
        for header in ("digest a:b", "ip", "ip x"):
            assert shed(header) == fine, header
        for header in ("", "digest", "digest a:b c", "nope x", "x509", "sasl x", "world anyone"):
            assert shed(header) == nobody, header
        conn.auth("digest", b"owner:pw")
        # Everybody may read, only the owner may do all.
        acl = [(31, "auth", ""), (1, "world", "anyone")]
        conn.set_acl("/", acl)
        assert shed("digest owner:pw") == fine and shed("digest super:test") == fine
        assert shed("digest owner:wrong") == refused and shed("ip") == refused
        conn.set_acl("/", [(31, "ip", HOST)])
        assert shed("ip") == fine and shed("digest owner:pw") == refused
        assert command(server.admin, "shed").status == 401
        assert command(server.admin, "shed", headers={"Authorization": "ip"}).status == 405


def test_clients_can_be_sent_away(tmp_path):
    with Alone(tmp_path) as server, contextlib.ExitStack() as stack:

        def shed(body):
            return command(server.admin, "shed_connections", method="POST", body=body, headers={"Authorization": "ip"})

        def clients():
            return len(command(server.admin, "connections").json["connections"])

        conns = [stack.enter_context(Conn(server.port)) for _ in range(10)]
        for body in (b"", b"{}", b"[1]", b'{"percentage": 101}', b'{"percentage": "x"}', b"x" * 100_000):
            answer = shed(body)
            assert answer.status == 400 and answer.error, body[:20]
        assert clients() == len(conns)
        answer = shed(json.dumps({"percentage": 50})).json
        assert answer["connections_shed"] == 5 and answer["percentage_requested"] == 50
        wait(lambda: clients() == 5)


def test_health_of_one_that_runs_alone(alone):
    for probe, status in (("live", "alive"), ("ready", "ready"), ("leader", "leader")):
        answer = ask(alone.admin, f"/health/{probe}")
        assert answer.status == 200 and answer.json == {"status": status, "reason": None}
        assert ask(alone.admin, f"/health/{probe}", method="POST").status == 405
    status = ask(alone.admin, "/status")
    assert status.status == 200 and status.json["role"] == "standalone" and status.json["service"] == "serving"
    assert status.json.keys() == json.loads(four_letter(alone.port, "qsta")).keys()


def test_leadership_is_moved(four):
    ensemble = four.ensemble
    auth = {"Authorization": "ip"}

    def transfer(member, query=""):
        return command(four.port(member), f"transfer_leadership{query}", method="POST", headers=auth)

    leader, heir = ensemble.leader(), ensemble.followers()[0]
    assert command(four.port(leader), "transfer_leadership", method="POST").status == 401
    for query, status, text in (
        (f"?to={leader.number}", 409, "leads already"),
        (f"?to={OBSERVER}", 409, "has no vote"),
        ("?to=9", 409, "has no vote"),
        ("?to=x", 400, "x is not the id"),
    ):
        answer = transfer(leader, query)
        assert answer.status == status and text in answer.error, query
    elsewhere = transfer(heir)
    assert elsewhere.status == 409 and f"ask member {leader.number}" in elsewhere.error
    moved = transfer(leader, f"?to={heir.number}")
    assert moved.status == 200, moved.text
    assert moved.json["leader_before"] == leader.number and moved.json["leader"] == heir.number
    wait(lambda: ask(four.port(heir), "/health/leader").status == 200)
    assert ensemble.wait_leader() is heir
    behind = ask(four.port(leader), "/health/leader")
    assert behind.status == 503 and behind.json == {"status": "not the leader", "reason": f"member {heir.number} leads"}
    assert ask(four.port(leader), "/health/ready").status == 200
    assert transfer(heir).json["leader"] in {1, 2, 3} - {heir.number}


def test_without_a_quorum(tmp_path):
    built = Four(tmp_path)
    with contextlib.closing(built.ensemble):
        first = built.ensemble[1]
        first.spawn()
        port = built.port(first)
        wait(lambda: is_up(port))
        same_as_genuine(port, "not_serving")
        # Under the name that was asked for.
        assert command(port, "srvr").text == pretty({"command": "srvr", "error": NOT_SERVING})
        assert command(port, "monitor").text == pretty({"command": "monitor", "error": NOT_SERVING})
        assert ask(port, "/health/live").status == 200
        for probe in ("ready", "leader"):
            answer = ask(port, f"/health/{probe}")
            assert answer.status == 503 and "waits for the others" in answer.json["reason"]
        assert ask(port, "/status").json["service"] == "no-quorum"


def is_up(port):
    with contextlib.suppress(OSError):
        return command(port, "ruok").status == 200
    return False


def run(folder, cfg, port=None):
    server = QuendaServer(folder, cfg, port=port)
    server.data_dir.mkdir(parents=True, exist_ok=True)
    server.port = port or free_port()
    server.spawn()
    return server


def test_a_port_that_is_taken_stops_one_that_asked_for_it(tmp_path):
    with socket.create_server((HOST, 0)) as taken:
        server = run(tmp_path, admin_cfg(taken.getsockname()[1]))
        assert server.process.wait(20) == 4
    lines = server.log_path.read_text().splitlines()
    assert lines[-1] == "Unable to start AdminServer, exiting abnormally"
    assert any("choose another port (admin.serverPort)" in line for line in lines)
    assert not (server.data_dir / "data" / "version-2").exists() and server.process.returncode == 4


def test_a_port_that_is_taken_is_no_matter_for_others(tmp_path):
    """A member of an ensemble warns; so does a server that has not asked for the port, here 8080."""
    with contextlib.ExitStack() as stack:
        taken = stack.enter_context(socket.create_server((HOST, 0))).getsockname()[1]
        with contextlib.suppress(OSError):  # Whoever has it, it is taken.
            stack.enter_context(socket.create_server((HOST, 8080)))
        ensemble = Ensemble(tmp_path / "two", members=2, member_cfg={1: admin_cfg(taken)})
        with ensemble:
            assert "there is no administration over HTTP" in ensemble[1].log_tail(20_000)
        silent = {"admin.enableServer": None, "admin.serverAddress": HOST}
        server = QuendaServer(tmp_path / "silent", silent)
        server.start()
        try:
            assert "there is no administration over HTTP" in server.log_tail(20_000)
            assert "admin.enableServer=false" in server.log_tail(20_000)
        finally:
            server.kill9()


def test_it_is_there_unless_it_is_turned_off(tmp_path):
    port = free_port()
    # Without a file, and without a word about it but the port.
    process = subprocess.Popen(
        [quenda_binary(), "serve", "--client-port", "0", "--data-dir", tmp_path / "data", f"-Dadmin.serverPort={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait(lambda: is_up(port) and ask(port, "/health/ready").status == 200)
        assert command(port, "initial_configuration").json["initial_configuration"] == ""
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()


def test_another_path(tmp_path):
    with Alone(tmp_path, {"admin.commandURL": "/ops/zk"}) as server:
        assert ask(server.admin, "/ops/zk/ruok").status == 200
        assert '<a href="/ops/zk/ruok">ruok</a>' in ask(server.admin, "/ops/zk").text
        assert command(server.admin, "ruok").status == 404


# --- Snapshots ---

OWNER = {"Authorization": "digest owner:pw"}


def restore(port, body, headers=OWNER):
    return command(port, "restore", method="POST", body=body, headers=headers)


def test_snapshots_out_and_in(tmp_path):
    cfg = {"admin.rateLimiterIntervalInMS": "0"}
    with Alone(tmp_path / "one", cfg) as server, Conn(server.port) as conn:
        conn.auth("digest", b"owner:pw")
        conn.create("/kept", b"value")
        conn.set_acl("/", [(31, "auth", "")])
        assert command(server.admin, "snapshot").status == 401
        assert command(server.admin, "snapshot", headers={"Authorization": "ip"}).status == 403
        taken = command(server.admin, "snapshot", headers=OWNER)
        assert taken.status == 200 and taken.headers["content-type"] == "application/octet-stream"
        assert taken.headers["last_zxid"] == hex(conn.last_zxid)
        assert int(taken.headers["snapshot_size"]) == int(taken.headers["content-length"]) == len(taken.body)
        assert taken.body.startswith(b"ZKSN")
        assert command(server.admin, "snap", headers=OWNER).status == 200
        assert command(server.admin, "snapshot", method="HEAD", headers=OWNER).status == 405
        kept = command(server.admin, "snapshot?streaming=false", headers=OWNER)
        assert kept.text == pretty({"command": "snapshot", "error": None})
        assert int(kept.headers["snapshot_size"]) == len(taken.body)
        conn.create("/later", b"")
        assert restore(server.admin, taken.body, {}).status == 401
        assert restore(server.admin, taken.body, {"Authorization": "ip"}).status == 403
        assert command(server.admin, "restore", headers=OWNER).status == 405
        for damaged in (b"", b"junk", taken.body[:-20], taken.body[:100] + b"\xff" * 50 + taken.body[150:]):
            answer = restore(server.admin, damaged)
            assert answer.status == 500 and "nothing was changed" in answer.error, damaged[:10]
        # Whoever breaks off changes nothing.
        with socket.create_connection((HOST, server.admin)) as sock:
            head = f"POST /commands/restore HTTP/1.1\r\nAuthorization: digest owner:pw\r\nContent-Length: {len(taken.body)}"
            sock.sendall(head.encode() + b"\r\n\r\n" + taken.body[:50])
        assert conn.exists("/later")
        answers = []
        # The server may still be about to notice.
        wait(lambda: answers.append(restore(server.admin, taken.body)) or answers[-1].status != 409)
        answer = answers[-1]
        assert answer.status == 200 and answer.json["last_zxid"] > conn.last_zxid, answer.text
    with Alone(tmp_path / "one", cfg) as server, Conn(server.port) as conn:
        conn.auth("digest", b"owner:pw")
        assert conn.get("/kept")[0] == b"value" and sorted(conn.children("/")) == ["kept", "zookeeper"]


def test_snapshots_have_an_interval_and_can_be_turned_off(tmp_path):
    auth = {"Authorization": "ip"}
    with Alone(tmp_path / "one") as server:
        taken = command(server.admin, "snapshot", headers=auth)
        assert taken.status == 200
        limited = command(server.admin, "snapshot", headers=auth)
        assert limited.status == 429 and "one snapshot in 300 s" in limited.error
        assert 290 < int(limited.headers["retry-after"]) <= 300
        # What fails may be tried again at once.
        assert restore(server.admin, b"junk", auth).status == 500
        assert restore(server.admin, taken.body, auth).status == 200
        assert restore(server.admin, taken.body, auth).status == 429
        monitor = command(server.admin, "monitor").json
        assert (monitor["snapshot_rate_limited_count"], monitor["restore_rate_limited_count"]) == (1, 1)
    off = {"admin.snapshot.enabled": "false", "admin.restore.enabled": "false"}
    with Alone(tmp_path / "off", off) as server:
        for answer in (command(server.admin, "snapshot", headers=auth), restore(server.admin, taken.body, auth)):
            assert answer.status == 503 and "turned off by admin." in answer.error


def test_metrics(alone):
    answer = ask(alone.admin, "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    figures = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert float(figures["znode_count"]) == command(alone.admin, "monitor").json["znode_count"]


def test_top(alone):
    for _ in range(20):
        alone.conn.get("/a", watch=True)
    top = command(alone.admin, "top")
    assert top.status == 200 and top.text == pretty(top.json)
    assert list(top.json)[:3] == ["member", "time_ms", "window_ms"] and list(top.json)[-2:] == ["command", "error"]
    wait(lambda: any(row["requests"] >= 20 for row in command(alone.admin, "top").json["sessions"]))


# --- TLS ---


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def https(authority, name=None):
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if name:
        context.load_cert_chain(str(authority.issue(name)))
    return context


def stores(authority, **keys):
    return {
        "ssl.quorum.keyStore.location": str(authority.issue("server")),
        "ssl.quorum.trustStore.location": str(authority.certificate),
        **{key.replace("__", "."): value for key, value in keys.items()},
    }


def test_tls_alone_and_certificates(tmp_path, authority):
    cfg = stores(authority, admin__forceHttps="true", admin__needClientAuth="true")
    cfg["authProvider.x509"] = "org.apache.zookeeper.server.auth.X509AuthenticationProvider"
    with Alone(tmp_path, cfg) as server, Conn(server.port) as conn:
        answer = command(server.admin, "ruok", context=https(authority, "bob"))
        assert answer.status == 200
        assert answer.headers["strict-transport-security"] == "max-age=86400; includeSubDomains"
        for wrong in (None, https(authority)):
            with pytest.raises((OSError, http.client.HTTPException)):
                command(server.admin, "ruok", context=wrong)
        conn.set_acl("/", [(31, "x509", "CN=bob")])
        auth = {"Authorization": "x509"}
        assert command(server.admin, "snapshot", headers=auth, context=https(authority, "bob")).status == 200
        assert command(server.admin, "snapshot", headers=auth, context=https(authority, "eve")).status == 403
        (tmp_path / "taken").write_bytes(bytes(8 << 20))

        def said(*words):
            words = [quenda_binary(), *words, "--server", f"{HOST}:{server.admin}"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1, done.stdout + done.stderr
            return done.stderr

        for words in (["snapshot", "-o", tmp_path / "new"], ["restore", "--yes", tmp_path / "taken"]):
            assert "TLS" in (text := said(*words)) and "--tls" in text, text
            assert "--cert, --key" in (text := said(*words, "--ca", authority.certificate)), text


def test_both_on_one_port_and_new_certificates(tmp_path, authority):
    cfg = stores(authority, admin__portUnification="true", sslQuorumReloadCertFiles="true")
    with Alone(tmp_path, cfg) as server:
        assert command(server.admin, "ruok").status == 200
        answer = command(server.admin, "monitor", context=https(authority))
        assert answer.status == 200 and answer.json["insecure_admin_count"] >= 1
        other = Authority(tmp_path / "other")
        pathlib.Path(cfg["ssl.quorum.keyStore.location"]).write_bytes(other.issue("server").read_bytes())

        def is_new():
            with contextlib.suppress(ssl.SSLError):
                return command(server.admin, "ruok", context=https(other)).status == 200
            return False

        wait(is_new)


def test_what_is_not_there_says_what_is(alone):
    for path in ("/", "/nope", "/commandsx"):
        answer = ask(alone.admin, path)
        assert answer.status == 404
        assert answer.text == ("nothing is here; see /commands, /health/live, /health/ready, /health/leader, /metrics, "
                               "/status\n")


def test_tls_needs_its_files(tmp_path):
    cfg = {**admin_cfg(free_port()), "admin.forceHttps": "true"}
    for stores in ({}, {"ssl.quorum.keyStore.location": str(tmp_path / "missing.pem")}):
        server = run(tmp_path / "server", {**cfg, **stores})
        assert server.process.wait(20) == 2
        assert "ssl.quorum.keyStore" in server.log_path.read_text() or "missing.pem" in server.log_path.read_text()


# --- Bad callers ---


def raw(port, data, seconds=20.0):
    """What comes back until the server closes."""
    with socket.create_connection((HOST, port), timeout=seconds) as sock:
        sock.sendall(data)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(65536):
                answer += piece
        return answer


def test_bad_requests_cost_nobody_else_anything(alone):
    port = alone.admin
    head = b"GET /commands/ruok HTTP/1.1\r\nHost: x\r\n"
    for data in (b"\0\1\2\3\4\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", head + b"a b: c\r\n\r\n",
                 b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"):
        assert raw(port, data).split(b" ")[1:2] == [b"400"], data
    assert raw(port, b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n").split(b" ")[1:2] in ([], [b"414"], [b"431"])
    assert raw(port, head + b"x: " + b"y" * 100_000 + b"\r\n\r\n").split(b" ")[1:2] in ([], [b"431"])
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection((HOST, port))) for _ in range(300)]
        for index, sock in enumerate(socks):
            with contextlib.suppress(ConnectionError):
                sock.sendall(head if index % 2 else b"POST /commands/shed HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")
        started = time.monotonic()
        assert command(port, "ruok").status == 200
        alone.conn.ping()
        assert time.monotonic() - started < 1.0


def test_callers_who_do_not_take_their_answers_lock_nobody_out(alone):
    port = alone.admin
    pipelined = b"GET /commands/monitor HTTP/1.1\r\nHost: x\r\n\r\n" * 200
    waiting = b"POST /commands/shed HTTP/1.1\r\nHost: x\r\nAuthorization: ip\r\nContent-Length: 100\r\n\r\n"
    for data in (pipelined, waiting):
        with contextlib.ExitStack() as stack:
            for _ in range(64):
                sock = stack.enter_context(socket.create_connection((HOST, port)))
                sock.sendall(data)
            for _ in range(20):
                assert ask(port, "/health/live", timeout=1.0).status == 200


def test_it_answers_while_clients_keep_the_server_busy(alone):
    """Writes as fast as they go, on many connections."""
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(Conn(alone.port)) for _ in range(20)]
        slowest = 0.0
        for _ in range(20):
            for conn in conns:
                for _ in range(50):
                    conn.send(OP.SET_DATA, b"\0\0\0\x02/a\0\0\0\x04abcd\xff\xff\xff\xff")
            started = time.monotonic()
            assert command(alone.admin, "server_stats").error is None
            assert ask(alone.admin, "/health/ready").status == 200
            slowest = max(slowest, time.monotonic() - started)
            for conn in conns:
                for _ in range(50):
                    conn.reply()
        assert slowest < 1.0
        print(f"slowest answer {slowest:.3f} s")
