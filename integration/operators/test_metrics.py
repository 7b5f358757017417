"""Metrics: Prometheus scrapes them, collectors read them, their names are ZooKeeper's, all of them are documented.

    integration/operators/run -k metrics
"""

import http.client
import json
import pathlib
import re
import subprocess
import time

import pytest

from integration.lib.certificates import Authority, quorum_tls, server_tls
from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.quenda_server import QuendaServer
from integration.lib.zkwire import OP, Conn, four_letter, set_data
from integration.operators import collectors
from integration.operators.admin import admin_cfg, ask
from integration.operators.capture_metrics import metrics_cfg, scrape, use
from integration.operators.prometheus import Prometheus, promtool
from integration.operators.prometheus_text import described, parse

GOLDEN = pathlib.Path(__file__).parent / "golden" / "metrics"
DOCS = pathlib.Path(__file__).parents[2] / "docs"
MONITORING = DOCS / "monitoring"
RULES = MONITORING / "rules.yml"
OWN = ("quenda_", "process_", "followers", "fsync_threshold_exceed_count")
# What the public dashboards read: Grafana's 10465 and jsonnet library, zookeeper-mixin, the alerts of ZooKeeper's guide.
DASHBOARDS = """
quorum_size leader_uptime learners synced_followers synced_observers num_alive_connections open_file_descriptor_count
outstanding_requests max_latency min_latency avg_latency global_sessions local_sessions znode_count ephemerals_count
approximate_data_size watch_count packets_received packets_sent bytes_received_count connection_rejected
connection_drop_count connection_drop_probability connection_request_count connection_token_deficit revalidate_count
stale_sessions_expired sessionless_connections_expired dead_watchers_queued dead_watchers_cleared
dead_watchers_cleaner_latency election_time looking_count quit_leading_due_to_disloyal_voter commit_count snap_count
diff_count proposal_count last_proposal_size min_proposal_size max_proposal_size fsynctime snapshottime dbinittime
startup_txns_loaded follower_sync_time readlatency updatelatency quorum_ack_latency ack_latency propagation_latency
commit_propagation_latency proposal_latency proposal_ack_creation_latency prep_processor_queue_size
prep_processor_queue_time_ms prep_processor_request_queued sync_processor_queue_size sync_processor_batch_size
sync_processor_queue_time_ms sync_processor_queue_flush_time_ms sync_processor_queue_and_flush_time_ms
sync_processor_request_queued sync_process_time commit_commit_proc_req_queued request_commit_queued
write_batch_time_in_commit_processor node_created_watch_count node_deleted_watch_count node_changed_watch_count
node_children_watch_count response_packet_cache_hits response_packet_cache_misses
response_packet_get_children_cache_hits response_packet_get_children_cache_misses tls_handshake_exceeded
ensemble_auth_success ensemble_auth_fail ensemble_auth_skip learner_handler_qp_size unrecoverable_error_count
digest_mismatches_count leader_unavailable_time unavailable_time
""".split()


def documented_as_left_out():
    page = (MONITORING / "metrics.md").read_text()
    section = page.split("### Left out")[1].split("\n## ")[0]
    return set(re.findall(r"`([a-z_]+)`", section))


def mntr(port):
    return four_letter(port, "mntr")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A server with all there is to tell: TLS, a quota, administration, a port for Prometheus."""
    folder = tmp_path_factory.mktemp("alone")
    metrics_port, admin_port = free_port(), free_port()
    cfg = {**metrics_cfg(metrics_port), **admin_cfg(admin_port), **server_tls(Authority(folder / "ca"))}
    with QuendaServer(folder / "server", cfg) as server:
        with Conn(server.port) as conn:
            use(conn)
        server.metrics_port, server.admin_port = metrics_port, admin_port
        yield server


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    ports = {number: free_port() for number in (1, 2, 3)}
    folder = tmp_path_factory.mktemp("three")
    tls = quorum_tls(Authority(folder / "ca"))
    cfg = {number: {**metrics_cfg(port), **tls} for number, port in ports.items()}
    with Ensemble(folder, member_cfg=cfg) as ensemble:
        for member in ensemble:
            member.metrics_port = ports[member.number]
        ensemble.wait_leader()
        ensemble.wait_serving()
        with ensemble.followers()[0].connect_soon() as conn:
            use(conn)
        yield ensemble


def settled(three):
    """The leader once it counts both followers as in step, and a follower."""
    leader = three.wait_leader()
    deadline = time.monotonic() + 20
    while "zk_synced_followers\t2\n" not in mntr(leader.port):
        assert time.monotonic() < deadline, mntr(leader.port)
        time.sleep(0.05)
    return leader, three.followers()[0]


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A server with a port for Prometheus that speaks TLS, beside the one that does not."""
    folder = tmp_path_factory.mktemp("secure")
    authority = Authority(folder / "ca")
    plain_port, secure_port = free_port(), free_port()
    cfg = {
        **metrics_cfg(plain_port),
        "metricsProvider.httpsPort": str(secure_port),
        "metricsProvider.ssl.keyStore.location": str(authority.issue("server")),
        "metricsProvider.ssl.trustStore.location": str(authority.certificate),
    }
    with QuendaServer(folder / "server", cfg) as server:
        server.authority, server.metrics_port, server.secure_port = authority, plain_port, secure_port
        server.key_store = pathlib.Path(cfg["metricsProvider.ssl.keyStore.location"])
        yield server


def curl(server, authority, *options, path="/metrics"):
    words = ["curl", "--silent", "--show-error", "--fail", "--max-time", "20", "--cacert", authority.certificate, *options]
    done = subprocess.run([*map(str, words), f"https://127.0.0.1:{server.secure_port}{path}"], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_metrics_by_tls_are_for_those_with_a_certificate(secure):
    bob = ("--cert", secure.authority.issue("bob"))
    code, page, complaint = curl(secure, secure.authority, *bob)
    assert code == 0, complaint
    assert "\nznode_count " in page and promtool("check", "metrics", text=page)[0] in (0, 3)
    assert curl(secure, secure.authority, *bob, path="/other")[0] == 22
    stranger = Authority(secure.authority.folder / "stranger")
    for options in ((), ("--cert", stranger.issue("bob"))):
        code, page, _ = curl(secure, secure.authority, *options)
        assert code != 0 and not page, "a certificate is needed"
    assert curl(secure, stranger, *bob)[0] == 60, "whose certificate nobody knows is not trusted"
    assert "\nznode_count " in scrape(secure.metrics_port)
    with pytest.raises((OSError, http.client.HTTPException)):
        scrape(secure.secure_port)


def test_prometheus_scrapes_by_tls(secure, tmp_path):
    tls = {"ca_file": str(secure.authority.certificate), "cert_file": str(secure.authority.issue("eve")),
           "key_file": str(secure.authority.folder / "eve.key")}
    with Prometheus(tmp_path, {"secure": f"127.0.0.1:{secure.secure_port}"}, tls=tls) as prometheus:
        assert prometheus.query('up{job="quenda"}') == {"secure": 1}


def test_a_new_certificate_of_the_port_for_metrics_is_used(secure):
    other = Authority(secure.authority.folder / "other")
    bob = ("--cert", secure.authority.issue("bob"))
    secure.key_store.write_bytes(other.issue("server").read_bytes())
    deadline = time.monotonic() + 30
    while curl(secure, other, *bob)[0] != 0:
        assert time.monotonic() < deadline, secure.log_tail()
        time.sleep(0.1)


def test_a_port_for_metrics_without_its_files_is_no_start(tmp_path):
    cfg = {**metrics_cfg(free_port()), "metricsProvider.httpsPort": str(free_port()),
           "metricsProvider.ssl.need.client.auth": "false"}
    for keys, told in (
        ({}, "metricsProvider.httpsPort is set but metricsProvider.ssl.keyStore.location is not set"),
        ({"metricsProvider.ssl.keyStore.location": str(tmp_path / "none.pem")},
         f"metricsProvider.ssl.keyStore.location: {tmp_path}/none.pem: cannot be read"),
    ):
        server = QuendaServer(tmp_path / "server", {**cfg, **keys}, port=free_port())
        server.data_dir.mkdir(exist_ok=True)
        server.spawn()
        assert server.process.wait(20) == 2
        assert told in server.log_tail() and "Invalid config, exiting abnormally" in server.log_tail()


def test_prometheus_scrapes_one_member_and_its_alert_rules_load(alone, tmp_path):
    target = f"127.0.0.1:{alone.metrics_port}"
    with Prometheus(tmp_path, {"alone": target}, [RULES]) as prometheus:
        assert prometheus.query("znode_count") == {"alone": parse(scrape(alone.metrics_port))["znode_count"].value()}
        assert prometheus.query('quenda_serving{clients="all"}') == {"alone": 1}
        assert prometheus.query('up{job="quenda"}') == {"alone": 1}
        groups = prometheus.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert len(rules) > 25
        prometheus.wait(lambda: all(rule["health"] == "ok" for group in prometheus.get("rules")["groups"]
                                    for rule in group["rules"]), "a rule cannot be evaluated")
        firing = lambda: {a["labels"]["alertname"] for a in prometheus.get("alerts")["alerts"]  # noqa: E731
                          if a["state"] == "firing"}
        # The test's certificate is for two days.
        prometheus.wait(lambda: firing() == {"QuendaCertificateExpires"}, "another alert fires, or none")


def test_a_restore_is_counted_with_its_time(alone):
    body = ask(alone.admin_port, "/commands/snapshot?streaming=true", headers={"Authorization": "ip"}).body
    before = parse(scrape(alone.metrics_port))["restore_time"]
    done = ask(alone.admin_port, "/commands/restore", "POST", body, {"Authorization": "ip"})
    assert done.status == 200, done.body
    after = parse(scrape(alone.metrics_port))["restore_time"]
    assert after.value("_count") - before.value("_count") == 1


def test_prometheus_scrapes_three_members_and_sees_one_leave(three, tmp_path):
    leader, _ = settled(three)
    names = {f"zoo{member.number}": f"127.0.0.1:{member.metrics_port}" for member in three}
    own = f"zoo{leader.number}"
    with Prometheus(tmp_path, names, [RULES]) as prometheus:
        prometheus.wait(lambda: sum(prometheus.query("quenda_is_leader").values()) == 1, "there is not one leader")
        assert prometheus.query("leader_uptime > 0").keys() == {own}
        assert prometheus.query("synced_followers") == {own: 2}
        assert prometheus.query("quorum_size") == dict.fromkeys(names, 3)
        assert prometheus.query("quenda_leader_id") == dict.fromkeys(names, leader.number)
        lost = three.followers()[-1]
        lost.kill9()
        gone = f"zoo{lost.number}"
        prometheus.wait(lambda: prometheus.query("synced_followers") == {own: 1}, "the leader misses nobody")
        prometheus.wait(lambda: prometheus.query('up{job="quenda"} == 0') == {gone: 0}, "the target is still up")
        seen = prometheus.get("query", query=f'quenda_peer_connected{{instance="{own}"}} == 0')["result"]
        assert [sample["metric"]["peer"] for sample in seen] == [str(lost.number)]
        pending = lambda: {a["labels"]["alertname"] for a in prometheus.get("alerts")["alerts"]}  # noqa: E731
        prometheus.wait(lambda: {"QuendaMemberDown", "QuendaFollowerNotSynced"} <= pending(), "no alert is pending")
        lost.start()
        prometheus.wait(lambda: prometheus.query("synced_followers") == {own: 2}, "it has not come back")
        prometheus.wait(lambda: (prometheus.query("diff_count + snap_count") or {}).get(own, 0) >= 1,
                        "nobody was caught up")


def test_promtool_takes_rules_their_tests_and_the_example():
    assert promtool("check", "rules", RULES)[0] == 0
    status, text = promtool("test", "rules", "rules.test.yml", folder=MONITORING)
    assert status == 0, text
    status, text = promtool("check", "config", "prometheus.yml", folder=MONITORING)
    assert status == 0, text


def test_promtool_has_nothing_to_say_of_quendas_own_names(alone):
    status, text = promtool("check", "metrics", text=scrape(alone.metrics_port))
    assert status in (0, 3), text  # 3: it complains of ZooKeeper's names
    assert [line for line in text.splitlines() if line.startswith(("quenda_", "process_"))] == []


def declared(text):
    """Names, with the words that describe() puts behind them."""
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()}


@pytest.mark.parametrize("role", ["alone", "leader", "follower"])
def test_names_and_types_are_those_of_a_genuine_server(role, alone, three):
    if role == "alone":
        text = scrape(alone.metrics_port)
    else:
        leader, follower = settled(three)
        text = scrape((leader if role == "leader" else follower).metrics_port)
    ours, genuine = declared(described(text)), declared((GOLDEN / f"{role}.txt").read_text())
    for name in ours.keys() & genuine.keys():
        # A set that is empty here or there has no labels to compare.
        empty = len(ours[name]) == 1 or len(genuine[name]) == 1
        assert ours[name][0] == genuine[name][0], name
        assert empty or ours[name] == genuine[name], name
    missing = {name for name in genuine.keys() - ours.keys() if not name.startswith("jvm_")}
    # Sets without a member have no sample, and so no line.
    sets = {name for name in missing if name.endswith("_per_namespace") or genuine[name] == ["summary"]}
    # Observers are fed by the leader here, which counts them.
    of_leader = {"synced_observers"} if role == "follower" else set()
    assert missing - documented_as_left_out() - sets - of_leader == set()
    assert {name for name in ours.keys() - genuine.keys() if not name.startswith(OWN)} <= documented_additions()


def documented_additions():
    """What is told although a genuine server of this role does not: other roles' figures."""
    every = set()
    for role in ("alone", "leader", "follower"):
        every |= declared((GOLDEN / f"{role}.txt").read_text()).keys()
    return every


def test_every_name_that_dashboards_read_is_there(alone, three):
    leader, follower = settled(three)
    told = set()
    for port in (leader.metrics_port, follower.metrics_port, alone.metrics_port):
        told |= parse(scrape(port)).keys()
    assert set(DASHBOARDS) - told == set()


def test_every_metric_is_documented(alone, three):
    page = (MONITORING / "metrics.md").read_text()
    leader, follower = settled(three)
    for port in (alone.metrics_port, leader.metrics_port, follower.metrics_port):
        for name, family in parse(scrape(port)).items():
            assert f"`{name}`" in page, f"{name} is not in docs/monitoring/metrics.md"
            if name.startswith(("quenda_", "process_")):
                row = f"| `{name}` | {family.kind} | {family.help} |"
                assert row in page, f"docs/monitoring/metrics.md lacks the row {row}"
    for key in telling(mntr(leader.port)):
        assert f"`{key}`" in page, f"{key} is not in docs/monitoring/metrics.md"


def telling(answer):
    """The names behind the keys of `mntr`, without those of sets."""
    names = set()
    for line in answer.splitlines():
        key = line.split("\t")[0].removeprefix("zk_")
        if key in ("version", "server_state", "peer_state") or re.search(r"_namespace$|_\d_(ack|learner)", key):
            continue
        plain = re.sub(r"^(avg|min|max|cnt|sum|p50|p95|p99|p999)_", "", key)
        names.add(key if re.fullmatch(r"(avg|min|max)_(latency|client_response_size|proposal_size)|max_file.*", key)
                  else plain)
    return names


def test_rules_and_the_dashboard_use_metrics_that_exist(alone, three):
    leader, _ = settled(three)
    told = {"up"}
    for port in (alone.metrics_port, leader.metrics_port):
        for name, family in parse(scrape(port)).items():
            told |= {name} | {sample.name for sample in family.samples}
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    asked += re.findall(r"^ +expr: (.*)$", RULES.read_text(), re.MULTILINE)
    assert len(asked) > 60
    recorded = set(re.findall(r"record: (\S+)", RULES.read_text()))
    for expression in asked:
        plain = re.sub(r'\{[^}]*\}|\[[^]]*\]|"[^"]*"', "", expression)
        plain = re.sub(r"\b(by|on) \([^)]*\)", "", plain)
        names = set(re.findall(r"[a-z_][a-z0-9_:]*_[a-z0-9_:]+|\bup\b|readlatency|fsynctime", plain))
        assert names - recorded - told - {"histogram_quantile"} == set(), expression


def test_collectors_read_what_they_look_for(three, alone):
    leader, follower = settled(three)
    for member, mode in ((leader, "leader"), (follower, "follower"), (alone, "standalone")):
        answer = mntr(member.port)
        fields, state = collectors.telegraf(four_letter(member.port, "mntr\n"))
        assert state == mode
        assert set(collectors.CLASSIC) <= fields.keys()
        assert fields["version"].startswith("3.9.5-quenda"), fields["version"]
        assert isinstance(fields["znode_count"], int)

        exported = collectors.zookeeper_exporter(answer, four_letter(member.port, "ruok"))
        assert (exported["zk_up"], exported["zk_ruok"], exported["zk_server_leader"]) == (1, 1, int(mode == "leader"))
        assert 'zk_version{version="3.9.5"}' in exported

        in_buffer = collectors.collectd(four_letter(member.port, "mntr\r\n"))
        wanted = {*collectors.CLASSIC, *(collectors.OF_LEADER if mode == "leader" else ())}
        assert wanted <= in_buffer.keys(), wanted - in_buffer.keys()
        assert in_buffer["znode_count"] == fields["znode_count"]

        whole = collectors.open_telemetry(answer)
        assert set(collectors.OPEN_TELEMETRY) - {"avg_latency"} <= whole.keys()

        stat = collectors.datadog_stat(four_letter(member.port, "stat"))
        assert (stat["mode"], stat["nodes"]) == (mode, fields["znode_count"])
        assert stat["connections"] == stat["clients"]
        metrics, said = collectors.datadog_mntr(answer)
        assert said == mode
        assert metrics["zookeeper.znode_count"] == stat["nodes"]


def test_what_a_member_counts_is_what_happened(alone):
    before = parse(scrape(alone.metrics_port))

    def grown(name, suffix="", **labels):
        now = parse(scrape(alone.metrics_port))[name].value(suffix, **labels)
        return now - before[name].value(suffix, **labels)

    with Conn(alone.port) as watcher, Conn(alone.port) as writer:
        writer.create("/counted", b"")
        for _ in range(5):
            writer.set("/counted", b"x" * 100)
            watcher.get("/counted")
        watcher.get("/counted", watch=True)
        writer.get("/counted", watch=True)
        writer.set("/counted", b"y")
        writer.delete("/counted")
        assert grown("quenda_requests_total", op="setData") == 6
        assert grown("quenda_requests_total", op="getData") == 7
        assert grown("readlatency", "_count") == 7
        assert grown("updatelatency", "_count") == 10, "two sessions, a create, six sets, a delete"
        assert grown("connection_request_count") == 2
        assert grown("node_changed_watch_count", "_sum") == 2
        assert grown("quenda_watch_fanout_clients", "_count") == 1
        assert grown("watch_bytes") > 0
        assert grown("quenda_transactions_total") == 10
        assert grown("quenda_sessions_total", event="opened") == 2
        assert grown("bytes_received_count") > 600
        assert grown("fsynctime", "_count") >= 8
        assert grown("quenda_commit_seconds", "_count") >= 8
    deadline = time.monotonic() + 10
    while grown("quenda_sessions_total", event="closed") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert grown("quenda_tls_handshakes_total", outcome="completed") == 0


def test_a_quota_is_told_by_its_namespace(alone):
    families = parse(scrape(alone.metrics_port))
    assert families["quota_count_limit_per_namespace"].value(key="space") == 10
    assert families["quota_bytes_limit_per_namespace"].value(key="space") == 1000
    assert families["quota_count_usage_per_namespace"].value(key="space") == 2
    answer = mntr(alone.port)
    assert "\nzk_space_quota_count_limit_per_namespace\t10\n" in answer
    assert "\nzk_space_quota_bytes_usage_per_namespace\t1\n" in answer


def test_srst_resets_mntr_and_not_prometheus(tmp_path):
    port = free_port()
    with QuendaServer(tmp_path / "server", metrics_cfg(port)) as server, Conn(server.port) as conn:
        conn.create("/a", b"x")
        conn.get("/a")
        value = lambda key: re.search(rf"^zk_{key}\t(\S+)$", mntr(server.port), re.MULTILINE)[1]  # noqa: E731
        assert float(value("cnt_updatelatency")) == 2
        assert int(value("response_bytes")) > 0
        told = parse(scrape(port))
        assert four_letter(server.port, "srst") == "Server stats reset.\n"
        for key in ("cnt_updatelatency", "max_readlatency", "sum_fsynctime", "response_bytes", "proposal_count",
                    "connection_request_count", "p99_updatelatency"):
            assert float(value(key)) == 0, key
        assert value("max_client_response_size") == "-1"
        again = parse(scrape(port))
        for name in ("response_bytes", "proposal_count", "connection_request_count"):
            assert again[name].value() >= told[name].value() > 0, name
        assert again["updatelatency"].value("_count") == 2


def test_the_endpoint_is_zookeepers(alone):
    connection = http.client.HTTPConnection("127.0.0.1", alone.metrics_port, timeout=10)
    status = {}
    for method, path in (("GET", "/metrics"), ("TRACE", "/metrics"), ("POST", "/metrics"), ("GET", "/")):
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        status[method, path] = answer.status
        if (method, path) == ("GET", "/metrics"):
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert parse(body.decode())
    assert status == {("GET", "/metrics"): 200, ("TRACE", "/metrics"): 403, ("POST", "/metrics"): 405,
                      ("GET", "/"): 404}
    # Without a port of its own they are there all the same.
    beside = ask(alone.admin_port, "/metrics")
    assert beside.status == 200
    assert parse(beside.text).keys() == parse(scrape(alone.metrics_port)).keys()


def test_other_forms_by_setting(tmp_path):
    cfg = {
        **metrics_cfg(free_port()),
        "metricsProvider.exportJvmInfo": "true",
        "quenda.metrics.jvmNames": "true",
        "quenda.metrics.totalNames": "true",
        "quenda.metrics.prometheusMntr": "true",
    }
    with QuendaServer(tmp_path / "server", cfg) as server, Conn(server.port) as conn:
        conn.create("/a", b"")
        families = parse(scrape(int(cfg["metricsProvider.httpPort"])))
        assert families["commit_count"].value() == families["commit_count_total"].value()
        assert families["jvm_memory_bytes_used"].value(area="heap") > 1 << 20
        assert families["jvm_memory_bytes_max"].value(area="heap") > families["jvm_memory_bytes_used"].value(area="heap")
        lines = dict(line.split("\t") for line in mntr(server.port).splitlines())
        assert lines["zk_znode_count"] == "6.0"
        assert lines["zk_updatelatency_count"] == "2.0"
        assert 'zk_updatelatency{quantile="0.5"}' in lines
        assert lines["zk_server_state"] == "standalone"


def test_mntr_answers_within_a_second_under_load(alone):
    with Conn(alone.port) as conn:
        conn.create("/load", b"")
        for _ in range(20):
            for _ in range(200):
                conn.send(OP.SET_DATA, set_data("/load", b"z" * 1000))
            began = time.monotonic()
            answer = mntr(alone.port)
            assert time.monotonic() - began < 1
            assert "zk_znode_count" in answer
            for _ in range(200):
                assert conn.reply().err == 0
        conn.delete("/load")
