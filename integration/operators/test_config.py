"""The configuration: `quenda check-config`, refused and doubtful files, and the files that follow the members."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.quenda_server import QuendaServer, quenda_binary  # noqa: E402
from integration.lib.tamper import Tamper  # noqa: E402
from integration.lib import zkwire as wire  # noqa: E402
from integration.lib.zkwire import ERR, FLAG, OP, Conn, eventually, expect  # noqa: E402
from integration.operators import config_cases, messages  # noqa: E402
from integration.operators.members_story import CFG, files, newest, story, wait_for_lines  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = pathlib.Path(__file__).parent / "golden" / "members.txt"


def run(*args, **environment):
    return subprocess.run([quenda_binary(), *map(str, args)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment}, check=False)


def check(path, *args, **environment):
    return run("check-config", path, *args, **environment)


@pytest.fixture
def cfg(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "zoo.cfg"
        path.write_bytes(text.replace("DIR", str(tmp_path)).encode(encoding))
        return path

    return write


# --- check-config -----------------------------------------------------------------------------------------------------


def test_a_clean_file_is_clean_and_nothing_is_made(cfg, tmp_path):
    done = check(cfg("# ours\ndataDir=DIR/data\nclientPort : 2181\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "    3  clientPort=2181\n       honoured: TCP port for clients" in done.stdout
    assert "clients            *:2181 without TLS" in done.stdout
    assert done.stdout.endswith("zoo.cfg: clean: the server starts with it, and everything counts\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["zoo.cfg"], "no data directory was made"


def test_every_source_is_told_with_what_counts(cfg):
    path = cfg("dataDir=DIR/data\nclientPort=2181\nskipACL=no\nmaxClientCnxns=1\nmaxClientCnxns=2\n")
    done = check(path, "--json", "-D", "tickTime=500", SERVER_JVMFLAGS="-Xmx1g -Dzookeeper.skipACL=yes",
                 JVMFLAGS="-Djute.maxbuffer=0x100000", JAVA_OPTS="-Dzookeeper.maxCnxns=9 -Dfile.encoding=UTF-8")
    report = json.loads(done.stdout)
    told = [(s["place"].rsplit("/")[-1], s["line"], s["key"], s["value"], s["counts"]) for s in report["settings"]]
    assert told[2:] == [
        ("zoo.cfg", 3, "skipACL", "no", True),
        ("zoo.cfg", 4, "maxClientCnxns", "1", False),
        ("zoo.cfg", 5, "maxClientCnxns", "2", True),
        ("environment JAVA_OPTS", None, "zookeeper.maxCnxns", "9", True),
        ("environment SERVER_JVMFLAGS", None, "zookeeper.skipACL", "yes", False),
        ("environment JVMFLAGS", None, "jute.maxbuffer", "0x100000", True),
        ("command line", None, "tickTime", "500", True),
    ]
    assert report["effective"]["session timeouts"] == "1000 to 10000 ms"
    assert report["effective"]["largest request"] == "1048576 bytes"
    assert (report["verdict"], done.returncode) == ("clean", 0)


def test_warnings_give_1_and_a_slip_is_recognised(cfg):
    done = check(cfg("dataDir=DIR/data\nclientPort=2181\ntickTmie=2000\nnoSuchThing=1\n"), "--quiet")
    assert done.returncode == 1
    assert "tickTmie is no key that ZooKeeper knows; it has no effect. Did you mean tickTime?" in done.stdout
    assert "noSuchThing" not in done.stdout, "a key of nobody is no warning"


def test_all_refusals_are_told_at_once(cfg):
    done = check(cfg("dataDir=DIR/data\nclientPort=99999\noraclePath=/x\nssl.crl=true\n"))
    assert done.returncode == 2
    for text in ("oraclePath=/x is not supported", "ssl.crl=true is not supported", "clientPort: 99999 is not a port",
                 "refused for 3 reasons"):
        assert text in done.stdout


def test_one_run_tells_all_that_is_wrong(cfg):
    path = cfg("dataDir=DIR/data\nclientPort=x\nmaxClientCnxns=abc\nenforce.auth.enabled=true\n"
               "enforce.auth.schemes=sasl\nserver.1=a:1:2\nserver.2=b:1:2\n")
    done = check(path)
    assert done.returncode == 2
    for text in ("clientPort: x is not a port", "maxClientCnxns: abc is not a number", "for the scheme sasl",
                 "initLimit is not set", "syncLimit is not set", "myid file is missing", "refused for 6 reasons"):
        assert text in done.stdout, done.stdout
    assert "malformed \\uxxxx encoding in line 2" in check(cfg("dataDir=DIR/data\nclientPort=\\u12\n")).stdout


def test_what_is_no_configuration_is_not_read_for_long(cfg):
    done = check("/dev/zero")
    assert done.returncode == 2 and "is it a configuration?" in done.stdout
    done = check(cfg("".join(f"tickTimf{number}=1\n" for number in range(60_000))))
    assert done.returncode == 2 and "has more than 5000 settings" in done.stdout


def test_no_secret_is_shown(cfg, tmp_path):
    (tmp_path / "jaas.conf").write_text(
        'Server {\n org.apache.zookeeper.server.auth.DigestLoginModule required\n bob="hush-1" user_eve="hush-2";\n};\n')
    path = cfg("dataDir=DIR/data\nclientPort=2181\nssl.keyStore.password=hush-3\nmyPassword=hush-4\n"
               "DigestAuthenticationProvider.superDigest=super:hush-5\nDigestAuthenticationProvider.superDigets=hush-6\n"
               "SASLAuthenticationProvider.superPassword=hush-7\njava.security.auth.login.config=DIR/jaas.conf\n")
    for args in ([], ["--json"], ["--quiet"]):
        done = check(path, *args, JVMFLAGS="-Dzookeeper.ssl.trustStore.password=hush-8")
        assert "hush" not in done.stdout + done.stderr
    assert "options that name no user have no effect: bob. A user is user_NAME=" in done.stdout


def test_files_that_a_start_would_miss_are_named_with_their_key(cfg, tmp_path):
    secure = ("dataDir=DIR/data\nsecureClientPort=2281\nssl.keyStore.location=DIR/key.pem\nssl.clientAuth=none\n")
    assert f"ssl.keyStore.location: {tmp_path}/key.pem: cannot be read" in check(cfg(secure)).stdout
    (tmp_path / "key.pem").write_text("nothing")
    path = cfg(secure + "ssl.keyStore.passwordPath=DIR/password\n")
    assert f"ssl.keyStore.passwordPath: {tmp_path}/password: cannot be read" in check(path).stdout
    path = cfg("dataDir=DIR/data\nclientPort=1\nadmin.forceHttps=true\nssl.quorum.keyStore.location=DIR/q.pem\n")
    assert f"ssl.quorum.keyStore.location: {tmp_path}/q.pem: cannot be read" in check(path).stdout
    path = cfg("dataDir=DIR/data\nclientPort=1\nmetricsProvider.httpsPort=7443\n"
               "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"
               "metricsProvider.ssl.keyStore.location=DIR/m.pem\nmetricsProvider.ssl.need.client.auth=false\n")
    assert f"metricsProvider.ssl.keyStore.location: {tmp_path}/m.pem: cannot be read" in check(path).stdout
    path = cfg("dataDir=DIR/data\nclientPort=1\nquenda.saslUsers=DIR/users\n")
    assert f"quenda.saslUsers: SASL users: {tmp_path}/users: cannot be read" in check(path).stdout
    path = cfg("dataDir=DIR/data\nclientPort=1\naudit.enable=true\nquenda.audit.file=DIR/no/audit.log\n")
    done = check(path)
    assert "quenda.audit.file" in done.stdout and done.returncode == 2
    done = check(tmp_path / "none.cfg")
    assert done.returncode == 2 and done.stdout.startswith("errors\n"), done.stdout


def test_the_dynamic_file_is_told_line_by_line(cfg, tmp_path):
    (tmp_path / "zoo.cfg.dynamic.1").write_text("server.1=a:1:2;2181\nserver.2=b:1:2;2181\nserver.3=c:1:2;2181")
    path = cfg("dataDir=DIR/data\ninitLimit=5\nsyncLimit=2\ndynamicConfigFile=DIR/zoo.cfg.dynamic.1\n")
    done = check(path, "--my-id", "2")
    assert done.returncode == 0, done.stdout
    assert "zoo.cfg.dynamic.1 (dynamic configuration)\n    1  server.1=a:1:2;2181\n" in done.stdout
    assert "member             2 of 3, votes" in done.stdout


def test_every_message_is_in_the_documentation():
    assert len(messages.messages()) > 150
    assert messages.missing() == {}, "tell of it in docs/operating.md, Messages"


# --- what a genuine server makes of the same files --------------------------------------------------------------------

# Name → how our reason begins where it is not the genuine one. What Java says of numbers names no key.
OTHER_WORDS = {
    "bad-escape": "Error processing DIR/bad-escape: malformed \\uxxxx encoding",
    "empty-value": "maxClientCnxns:  is not a number",
    "hexadecimal": "tickTime: 0x10 is not a number",
    "too-large": "tickTime: 2147483648 is not a number",
    "limit-form": "connectToLearnerMasterLimit: x is not a number",
    "purge-form": "autopurge.purgeInterval: 1d is not a number",
    "server-name": "serverid x is not a number",
    "metrics": "metrics provider class was not found",
    "conflicting-client": "client address for this server (id = 1) in static config file is 0.0.0.0:2181, but in its server line",
    "dynamic-missing": "Error processing DIR/none.dynamic: No such file or directory",
    "group-number": 'group.1: "x" is not a number',
    "group-name": 'group.x: "x" is not a number',
    "group-without-dot": 'group: "" is not a number',
    "group-of-an-observer": "a group line names server 4, which is no server that votes",
    "weight-number": 'weight.1: "x" is not a number',
    "algorithm-x": "electionAlg: x is not a number",
    "addresses-time-form": "multiAddress.reachabilityCheckTimeoutMs: x is not a number",
    # Of several lines that do not belong there each server names one.
    "dynamic-and-static": "parameter: server.1 must be in a separate dynamic config file",
}
# Files that a genuine server takes, and we do not.
REFUSED_HERE = {
    "groups-that-count": "group.N and weight.N: hierarchical quorums are not there, more than half of the servers that vote is "
                         "a quorum; by these lines [1] would be one too.",
}


def ours(path):
    """The golden's columns for one file, from `check-config`."""
    report = json.loads(check(path, "--json").stdout)
    if report["verdict"] == "refused":
        return ["refused", report["errors"][0].replace(str(path.parent), "DIR")]
    told = report["effective"]
    count = re.match(r"\d+ of (\d+)", told["member"])
    port = re.search(r":(\d+) without TLS", told["clients"])
    return ["accepted", told["session timeouts"].removesuffix(" ms"), told["connections"].split()[0],
            count[1] if count else "0", port[1] if port else "-1", told["data"].split(" (will")[0].rsplit("/", 1)[-1]]


def test_files_mean_what_they_mean_to_a_genuine_server(tmp_path):
    paths = config_cases.write(tmp_path)
    golden = dict(line.split("\t", 1) for line in config_cases.GOLDEN.read_text().splitlines())
    assert set(golden) == set(paths), "capture the golden anew"
    wrong = {}
    for name, path in paths.items():
        expected, found = golden[name].split("\t"), ours(path)
        if expected[0] == "refused" or name in REFUSED_HERE:
            begins = REFUSED_HERE.get(name) or OTHER_WORDS.get(name, expected[1])
            if found[0] != "refused" or not found[1].startswith(begins):
                wrong[name] = (begins, found)
        elif found != expected:
            wrong[name] = (expected, found)
    assert wrong == {}


# --- the files follow the members -------------------------------------------------------------------------------------


def test_the_files_are_those_of_a_genuine_ensemble_and_serve_the_next_start(tmp_path):
    with Ensemble(tmp_path.resolve(), cfg=CFG) as ensemble:
        lines, gone, left = story(ensemble)
        assert lines == GOLDEN.read_text().splitlines()
        # A removed member keeps the files in which it is one, and can be started with them and added again.
        assert f"server.{gone}=" in files(ensemble[gone])[newest(ensemble[gone])]
        for member in left:
            member.stop()
        ensemble[gone].stop()
        for member in left:
            member.spawn()
        ensemble.wait_serving(left)
        ids = {member.number for member in left}
        wait_for_lines(left, ids)
        ensemble[gone].spawn()
        with left[0].connect() as conn:
            conn.reconfig(f"server.{gone}={ensemble[gone].line()}", None, None)
        wait_for_lines(list(ensemble), {1, 2, 3, 4})
        # An old file does not bring old members back: what the ensemble has counts, and the file is mended.
        member = left[0]
        member.stop()
        name = newest(member)
        path = member.folder / name
        path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("server.4=")))
        member.start()
        wait_for_lines([member], {1, 2, 3, 4})
        assert "the configuration file names other members" in member.log_tail(20000)


def reconfigured(ensemble, member):
    """Has the ensemble number its configuration anew; the members stay."""
    with ensemble[1].connect_soon() as conn:
        eventually(lambda: conn.reconfig(f"server.{member.number}={member.line()}", None, None), what="a reconfig")


@pytest.mark.parametrize("first", [True, False], ids=["the-members-move-out", "a-new-version"])
def test_a_crash_at_any_step_of_writing_the_files_leaves_some_to_start_from(tmp_path, first):
    """Killed before the opening, the sync and the renaming of each file, and then started."""
    with Ensemble(tmp_path.resolve(), cfg=CFG) as ensemble:
        wait_for_lines(ensemble, {1, 2, 3})
        member = ensemble[2]
        original = (member.folder / "zoo.cfg.bak").read_text()
        member.stop()
        tamper = Tamper(member.folder, f"{member.folder}/zoo.cfg")
        member.server.env.update(tamper.environment())
        steps, died = 0, True
        while died:
            steps += 1
            if first:
                # As before its first start: with the lines, and nothing beside it.
                for name in files(member):
                    (member.folder / name).unlink()
                (member.folder / "zoo.cfg").write_text(original)
                tamper.die_at(steps)
                member.spawn()
            else:
                member.start()
                wait_for_lines([member], {1, 2, 3})
                before = newest(member)
                tamper.die_at(steps)
                reconfigured(ensemble, ensemble[3])
            written = lambda: newest(member) not in (None, original if first else before)  # noqa: E731, B023
            eventually(lambda: not member.alive() or written(), seconds=60, what="the files, or the end")
            died = not written()
            if died:
                assert member.server.process.wait(20) == -signal.SIGKILL
                assert run("check-config", member.folder / "zoo.cfg").returncode in (0, 1), files(member)
            tamper.die_at(0)
            member.kill9()
            member.start()
            eventually(lambda: newest(member) == newest(ensemble[1]), seconds=60, what="they are brought up to date")
            wait_for_lines([member], {1, 2, 3})
            eventually(lambda: not any(name.endswith(".tmp") for name in files(member)), what="nothing unfinished stays")
            if first:
                assert files(member)["zoo.cfg.bak"] == original
            member.stop()
        # Opening, sync and renaming of each file.
        assert steps - 1 == (9 if first else 6)
        member.start()


def test_a_configuration_that_cannot_be_written_does_not_stop_the_member(tmp_path):
    """As root nothing is unwritable, so directories stand where the files would go."""
    with Ensemble(tmp_path.resolve(), cfg=CFG) as ensemble:
        wait_for_lines(ensemble, {1, 2, 3})
        member = ensemble.followers()[0]
        static = (member.folder / "zoo.cfg").read_text()
        (member.folder / "zoo.cfg.tmp").mkdir()
        extra = ensemble.add(4)
        extra.spawn()
        with ensemble.leader().connect() as conn:
            conn.reconfig(f"server.4={extra.line()}", None, None)
        eventually(lambda: "they cannot be written" in member.log_tail(20000), what="a word in the log")
        assert member.serving() and (member.folder / "zoo.cfg").read_text() == static


def test_an_empty_member_founds_nothing_where_it_may_not_create_its_data(tmp_path):
    ensemble = Ensemble(tmp_path, cfg={"db.autocreate": "false"})
    try:
        ensemble.spawn()
        eventually(lambda: all("founds no ensemble" in member.log_tail(20000) for member in ensemble), what="the word")
        assert not any(member.serving() for member in ensemble)
        for member in ensemble:
            member.kill9()
            (member.data / "initialize").touch()
        ensemble.start()
        assert not any((member.data / "initialize").exists() for member in ensemble), "it stands for one start"
        # With its disk lost a member is fed by the others, marker or not.
        lost = ensemble.followers()[0]
        lost.kill9()
        lost.wipe()
        lost.start()
    finally:
        ensemble.close()


def test_a_quorum_port_that_is_taken_is_tried_again_and_ends_with_14(tmp_path):
    ensemble = Ensemble(tmp_path)
    try:
        member = ensemble[1]
        with socket.socket() as other:
            other.bind((member.host, member.quorum_port))
            other.listen()
            member.spawn()
            assert member.server.process.wait(30) == 14
        assert member.log_tail(20000).count("it is tried again") == 2
        assert "the quorum port is the first one in the own server line" in member.log_tail(20000)
        ensemble.start()
    finally:
        ensemble.close()


def test_without_syncs_and_with_many_checkpoints_nothing_is_lost_to_a_kill(tmp_path):
    with QuendaServer(tmp_path, {"forceSync": "no", "snapCount": "5", "clientTcpKeepAlive": "true"}) as server:
        assert "forceSync=no: what was acknowledged is not on the disk yet" in server.log_tail()
        with Conn(server.port) as conn:
            for number in range(100):
                conn.create(f"/a{number}")
        server.restart(hard=True)
        with Conn(server.port) as conn:
            assert len(conn.children("/")) == 101


def test_znodes_with_a_time_to_live_can_be_taken_away(tmp_path):
    """The answers are those of a genuine server without extendedTypesEnabled."""
    ttl = 600000
    with QuendaServer(tmp_path, {"extendedTypesEnabled": "false"}) as server, Conn(server.port) as conn:
        for path, time, flags, code in (("/a", ttl, FLAG.TTL, ERR.UNIMPLEMENTED), ("/a", -1, FLAG.TTL, ERR.UNIMPLEMENTED),
                                        ("/x/a", ttl, FLAG.TTL_SEQUENTIAL, ERR.UNIMPLEMENTED),
                                        ("/b", ttl, FLAG.PERSISTENT, ERR.BAD_ARGUMENTS)):
            with expect(code):
                conn.create_ttl(path, time, b"", flags)
        with expect(ERR.UNIMPLEMENTED):
            conn.create("/m6", b"", FLAG.TTL)
        results = conn.multi((OP.CREATE, wire.create("/m")), (OP.CREATE_TTL, wire.create_ttl("/t", ttl)))
        assert [result.err for result in results] == [0, ERR.UNIMPLEMENTED]
        assert conn.children("/") == ["zookeeper"]


def test_without_reconfig_no_file_is_touched(tmp_path):
    with Ensemble(tmp_path) as ensemble:
        for member in ensemble:
            assert list(files(member)) == ["zoo.cfg"] and "server.1=" in files(member)["zoo.cfg"]
