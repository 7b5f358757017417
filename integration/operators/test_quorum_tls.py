"""TLS between members: three of them, with certificates made here."""

import os
import pathlib
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.certificates import Authority  # noqa: E402
from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import HOST, free_port  # noqa: E402
from integration.lib.quenda_server import quenda_binary  # noqa: E402
from integration.lib.zkwire import Closed  # noqa: E402
from integration.operating.cli import eventually  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANDSHAKE = b"\x16\x03"
ALERT = b"\x15\x03"
HELLO = b"QUENDAHI"
STEPS = (
    {"portUnification": "true"},
    {"portUnification": "true", "sslQuorum": "true"},
    {"sslQuorum": "true"},
)


def stores(authority, key_store):
    """Keys of zoo.cfg. What they name is copied by `install`, so that a test may change it."""
    return {
        "ssl.quorum.keyStore.location": str(key_store),
        "ssl.quorum.trustStore.location": str(authority.certificate),
        "sslQuorumReloadCertFiles": "true",
    }


def install(source, target):
    """Puts a file there at once, as operators' tools do."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(".fresh")
    shutil.copyfile(source, fresh)
    fresh.chmod(0o600)
    os.replace(fresh, target)


def key_store(folder, number):
    return folder / "stores" / f"member-{number}.pem"


def build(folder, authority, cfg):
    """Three members whose certificates are in place; nothing is started."""
    own = {}
    for number in (1, 2, 3):
        install(authority.issue(f"member-{number}"), key_store(folder, number))
        own[number] = stores(authority, key_store(folder, number))
    return Ensemble(folder, cfg=cfg, member_cfg=own)


def log(member):
    return member.server.log_path.read_text("utf-8", "replace")


def reset(member, **cfg):
    """Another configuration for the next start."""
    for name in ("sslQuorum", "portUnification"):
        member.server.extra_cfg.pop(name, None)
    member.server.extra_cfg.update(cfg)
    member.server.cfg_path.unlink(missing_ok=True)


def tls(authority, store=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    if store:
        context.load_cert_chain(store)
    return context


def is_let_in(port, context):
    """Whether the port takes this client: in TLS 1.3 it learns only behind the handshake that it is refused."""
    with socket.create_connection((HOST, port), timeout=10) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                secure.sendall(HELLO + struct.pack(">HH", 99, 0))
                # Only who is let in is told that this version is not spoken.
                return secure.recv(8) == b"QUENDAOK"
        except OSError:
            return False


def answer_to(port, data, seconds=10.0):
    """All that comes back for these bytes."""
    with socket.create_connection((HOST, port), timeout=seconds) as sock:
        answer = b""
        try:
            sock.sendall(data)
            while piece := sock.recv(4096):
                answer += piece
        except ConnectionError:
            pass
        return answer


class Tap:
    """Forwards connections to a port and keeps what goes over them."""

    def __init__(self, port):
        self.to = port
        self.streams = []  # of both directions
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((HOST, self.to))
            except OSError:
                near.close()
                continue
            for source, target in ((near, far), (far, near)):
                kept = bytearray()
                self.streams.append(kept)
                threading.Thread(target=self._copy, args=(source, target, kept), daemon=True).start()

    @staticmethod
    def _copy(source, target, kept):
        try:
            while piece := source.recv(65536):
                kept += piece
                target.sendall(piece)
        except OSError:
            pass
        for sock in (source, target):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Writer:
    """Creates znodes one after the other, at whichever member takes them, until it is stopped."""

    def __init__(self, ensemble):
        self.ensemble = ensemble
        self.acknowledged = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        number = 0
        while not self.stopped.is_set():
            for member in self.ensemble:
                try:
                    with member.connect(timeout=10_000) as conn:
                        while not self.stopped.is_set():
                            number += 1
                            conn.create(f"/w{number}", b"x")
                            self.acknowledged.append(number)
                except (Closed, OSError):
                    continue

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("foreign"))


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory, authority):
    """Three members that speak TLS alone; member 1 reaches member 2 by a tap."""
    folder = tmp_path_factory.mktemp("members")
    metrics = free_port()
    ensemble = build(folder, authority, {"sslQuorum": "true"})
    ensemble.folder = folder
    ensemble.metrics = metrics
    ensemble.tap = Tap(ensemble[2].quorum_port)
    tapped = ensemble[2].line().replace(f":{ensemble[2].quorum_port}:", f":{ensemble.tap.port}:")
    ensemble[1].server.extra_cfg.update({
        "server.2": tapped,
        "metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
        "metricsProvider.httpHost": HOST,
        "metricsProvider.httpPort": str(metrics),
    })
    with ensemble:
        yield ensemble
    ensemble.tap.close()


def figure(ensemble, name):
    with socket.create_connection((HOST, ensemble.metrics), timeout=10) as sock:
        sock.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        page = b""
        while piece := sock.recv(65536):
            page += piece
    lines = [line for line in page.decode().splitlines() if line.startswith(name)]
    assert lines, name
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def test_an_ensemble_forms_and_its_wires_carry_tls_alone(ensemble):
    secret = b"nobody on the way may read this " * 40
    with ensemble[1].connect() as conn:
        conn.create("/secret", secret)
    for member in ensemble:
        with member.connect() as conn:
            conn.sync("/")
            assert conn.get("/secret")[0] == secret
    streams = [bytes(stream) for stream in ensemble.tap.streams if stream]
    assert len(streams) >= 2
    for stream in streams:
        assert stream[:2] == HANDSHAKE
        assert b"QUENDA" not in stream and secret[:32] not in stream
    assert figure(ensemble, 'quenda_peer_tls_handshakes_total{direction="dialed",outcome="completed"}') >= 2
    assert figure(ensemble, "quenda_peer_tls_certificate_expiry_timestamp_seconds") > 0


def test_who_does_not_speak_tls_is_refused(ensemble):
    port = ensemble[1].quorum_port
    answer = answer_to(port, HELLO + struct.pack(">HH", 1, 0))
    assert answer[:2] in (ALERT, b"")
    eventually(lambda: "it does not speak TLS, and this port takes TLS alone" in log(ensemble[1]))


def test_only_certificates_of_the_trust_store_are_let_in(ensemble, authority, foreign):
    port = ensemble[1].quorum_port
    failed = 'quenda_peer_tls_handshakes_total{direction="accepted",outcome="failed"}'
    before = figure(ensemble, failed)
    assert is_let_in(port, tls(authority, authority.issue("guest")))
    assert not is_let_in(port, tls(authority))
    assert not is_let_in(port, tls(authority, foreign.issue("stranger")))
    eventually(lambda: figure(ensemble, failed) >= before + 2)
    eventually(lambda: "it shows no certificate" in log(ensemble[1]))
    eventually(lambda: "signed by nobody in ssl.quorum.trustStore" in log(ensemble[1]))


def test_bad_bytes_do_no_harm(ensemble):
    member = ensemble.followers()[0]
    halves = [socket.create_connection((HOST, member.quorum_port)) for _ in range(150)]
    for number, half in enumerate(halves):
        try:
            half.sendall([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"", HELLO[:4]][number % 3])
        except OSError:
            pass  # closed to make room
    for data in (b"\x16\x03\x01\x00\x04\xff\xff\xff\xff", b"\x16\x03\x03\xff\xff" + bytes(70_000), bytes(4096),
                 b"\xff" * 4096, b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28", b"\x80\x2e\x01\x00\x02",
                 os.urandom(2000)):
        answer_to(member.quorum_port, data)
    # A member comes in beside those that say nothing.
    other = next(other for other in ensemble.followers() if other is not member)
    other.restart()
    with other.connect() as conn:
        conn.create(f"/after-{other.number}", b"")
    for half in halves:
        half.close()
    assert member.alive()


def test_a_member_of_another_authority_stays_out(ensemble, foreign):
    member = ensemble.followers()[0]
    others = [other for other in ensemble if other is not member]
    path = key_store(ensemble.folder, member.number)
    own = path.read_bytes()
    member.stop()
    install(foreign.issue("member"), path)
    member.spawn()
    eventually(lambda: "does not accept the certificate of this member" in log(member))
    assert member.mode() is None
    # The others go on, and say it once.
    with others[0].connect() as conn:
        conn.create(f"/without-{member.number}", b"")
    eventually(lambda: "signed by nobody in ssl.quorum.trustStore" in log(others[0]))
    # The right one is read without a restart.
    path.with_suffix(".own").write_bytes(own)
    install(path.with_suffix(".own"), path)
    member.wait_serving()
    with member.connect() as conn:
        conn.sync("/")
        conn.get(f"/without-{member.number}")


def test_a_certificate_for_another_host_makes_no_member(ensemble, authority):
    member = ensemble.followers()[0]
    others = [other for other in ensemble if other is not member]
    path = key_store(ensemble.folder, member.number)
    member.stop()
    install(authority.issue("elsewhere", names="DNS:zoo9.example,IP:10.9.9.9"), path)
    member.spawn()
    for other in others:
        eventually(lambda other=other: "its certificate names neither" in log(other))
    eventually(lambda: "the certificate of this member names neither the host of its server line" in log(member))
    assert member.mode() is None
    install(authority.issue("here"), path)
    member.wait_serving()


def test_certificates_are_changed_while_members_run(ensemble, authority):
    port = ensemble[3].quorum_port
    context = tls(authority, authority.issue("guest"))

    def shown():
        with socket.create_connection((HOST, port), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                return dict(pair[0] for pair in secure.getpeercert()["subject"])["commonName"]

    path = key_store(ensemble.folder, 3)
    before = shown()
    broken = path.with_suffix(".broken")
    broken.write_text("no certificate\n")
    install(broken, path)
    eventually(lambda: "the TLS files have changed and are not used: ssl.quorum.keyStore.location" in log(ensemble[3]))
    assert shown() == before
    install(authority.issue("fresh"), path)
    eventually(lambda: shown() == "fresh")
    assert log(ensemble[3]).count("the TLS files have changed and are not used") == 1
    # Links that are made now are made with it.
    ensemble[1].restart()
    ensemble.wait_serving()


def test_an_empty_member_is_fed_over_tls(ensemble):
    member = ensemble[2]
    payload = os.urandom(64 << 10)
    with ensemble[1].connect() as conn:
        for number in range(160):
            conn.create(f"/bulk-{number}", payload)
    streams = len(ensemble.tap.streams)
    member.stop()
    member.wipe()
    member.start()
    with member.connect() as conn:
        conn.sync("/")
        assert conn.get("/bulk-159")[0] == payload
    assert "the snapshot is here" in log(member)
    assert all(bytes(stream[:2]) == HANDSHAKE for stream in ensemble.tap.streams[streams:] if stream)


def test_tls_is_turned_on_in_a_running_ensemble(tmp_path, authority):
    with build(tmp_path, authority, {}) as ensemble:
        with Writer(ensemble) as writer:
            for step in STEPS:
                for member in ensemble:
                    before = len(writer.acknowledged)
                    member.stop()
                    # The two others have a quorum meanwhile, whatever steps they are at.
                    eventually(lambda before=before: len(writer.acknowledged) > before + 5)
                    reset(member, **step)
                    member.start()
                    eventually(lambda: len(ensemble.modes()) == 3)
            # With TLS as without it the others notice at once when a process is gone.
            leader = ensemble.leader()
            leader.kill9()
            before = len(writer.acknowledged)
            eventually(lambda: len(writer.acknowledged) > before + 5)
            leader.start()
        assert len(writer.acknowledged) > 50
        for member in ensemble:
            assert answer_to(member.quorum_port, HELLO + struct.pack(">HH", 1, 0))[:2] in (ALERT, b"")
            with member.connect() as conn:
                conn.sync("/")
                children = set(conn.children("/"))
                lost = [number for number in writer.acknowledged if f"w{number}" not in children]
                assert not lost


def check(folder, lines):
    """What `quenda check-config` says of three members with these lines."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data/myid").write_text("1\n")
    cfg = folder / "zoo.cfg"
    base = [f"dataDir={folder / 'data'}", "clientPort=2181", "initLimit=5", "syncLimit=2"]
    base += [f"server.{number}=127.0.0.1:288{number}:388{number}" for number in (1, 2, 3)]
    cfg.write_text("\n".join([*base, *lines]) + "\n")
    command = [quenda_binary(), "check-config", cfg]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_check_config_names_what_is_missing(tmp_path, authority, foreign):
    own = authority.issue("member-1")
    own.chmod(0o600)
    key, trust = f"ssl.quorum.keyStore.location={own}", f"ssl.quorum.trustStore.location={authority.certificate}"
    locked = tmp_path / "locked.pem"
    subprocess.run(["openssl", "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", own, "-passout", "pass:right", "-out", locked],
                   check=True, capture_output=True)
    with locked.open("a") as file:
        file.write(own.read_text())
    mixed = tmp_path / "mixed.pem"
    mixed.write_text((foreign.folder / "authority.key").read_text() + (authority.folder / "member-1.crt").read_text())
    for lines, part in (
        (["sslQuorum=true"], "sslQuorum is set but ssl.quorum.keyStore.location is not set"),
        (["sslQuorum=true", key], "sslQuorum is set but ssl.quorum.trustStore.location is not set"),
        (["sslQuorum=true", trust, "ssl.quorum.keyStore.location=/missing.pem"],
         "ssl.quorum.keyStore.location: /missing.pem: cannot be read"),
        (["sslQuorum=true", key, "ssl.quorum.trustStore.location=/missing.pem"],
         "ssl.quorum.trustStore.location: /missing.pem: cannot be read"),
        (["sslQuorum=true", trust, f"ssl.quorum.keyStore.location={locked}", "ssl.quorum.keyStore.password=wrong"],
         "Check ssl.quorum.keyStore.password"),
        (["sslQuorum=true", trust, f"ssl.quorum.keyStore.location={mixed}"], "does not belong to its first certificate"),
        (["sslQuorum=true", key, trust, "ssl.quorum.ciphersuites=TLS_NONE"], "ssl.quorum.ciphersuites names none"),
        (["sslQuorum=true", key, trust, "ssl.quorum.crl=true"], "ssl.quorum.crl=true is not supported"),
    ):
        code, said = check(tmp_path, lines)
        assert code == 2 and part in said, said
    code, said = check(tmp_path, ["sslQuorum=true", key, trust])
    assert code == 0, said
    code, said = check(tmp_path, ["portUnification=true"])
    assert code == 1 and "members that speak TLS cannot connect" in said, said


def test_the_lines_of_the_documentation_make_certificates(tmp_path):
    section = (ROOT / "docs/operating.md").read_text().split("\n## TLS between members\n")[1].split("\n## ")[0]
    lines = section.split("```\n")[1]
    subprocess.run(["sh", "-eu", "-c", lines], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    for host in ("zoo1", "zoo2", "zoo3"):
        store = tmp_path / f"{host}-members.pem"
        code, said = check(tmp_path, ["sslQuorum=true", f"ssl.quorum.keyStore.location={store}",
                                      f"ssl.quorum.trustStore.location={tmp_path / 'members-ca.pem'}"])
        assert code == 0, said
