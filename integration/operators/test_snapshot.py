"""Snapshots and restores: `quenda snapshot`, `quenda restore`, and the commands of the AdminServer under them.

What leaves here a genuine ZooKeeper starts from; what a genuine one has written is restored here; and a restore on a
live ensemble ends the same on all members, whatever dies meanwhile.
"""

import pathlib
import shutil
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True

from integration.lib.ensemble import Ensemble  # noqa: E402
from integration.lib.process import free_port  # noqa: E402
from integration.lib.quenda_server import QuendaServer, quenda_binary  # noqa: E402
from integration.lib.zkwire import EV, FLAG, OP, Closed, Conn, Refused, ZkError, create, four_letter  # noqa: E402
from integration.operating.cli import eventually, quenda, status  # noqa: E402
from integration.operators.admin import admin_cfg, command  # noqa: E402
from integration.operators.capture_snapshots import DEFAULT_FOLDER, fill, listing, started  # noqa: E402

NO_LIMIT = {"admin.rateLimiterIntervalInMS": "0"}
IP = {"Authorization": "ip"}
SESSION_MS = 40_000


def cfg(port, **more):
    return {**admin_cfg(port), **NO_LIMIT, "extendedTypesEnabled": "true", **more}


class Single:
    """One member that runs alone."""

    def __init__(self, folder, **more):
        self.admin = free_port()
        self.server = QuendaServer(folder, cfg(self.admin, **{"skipACL": "yes", **more}))

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.kill9()

    def connect(self, **options):
        return Conn(self.server.port, timeout=SESSION_MS, **options)


def admin_of(member):
    return int(member.server.extra_cfg["admin.serverPort"])


def take(port, file, *options):
    return quenda("snapshot", "--server", f"127.0.0.1:{port}", "--output", file, *options)


def put_back(port, file, *options):
    return quenda("restore", "--server", f"127.0.0.1:{port}", file, *(options or ["--yes"]))


def without_config(lines):
    return [line for line in lines if not line.startswith("/zookeeper/config\t")]


@pytest.fixture
def three(tmp_path):
    own = {number: cfg(free_port()) for number in (1, 2, 3)}
    with Ensemble(tmp_path, cfg={"skipACL": "yes"}, member_cfg=own) as ensemble:
        yield ensemble


def agree(ensemble):
    """Until all members are well and hold the same at the same entry of the log."""

    def agreed():
        code, report = status(*(member.address for member in ensemble))
        states = [member["status"] for member in report["members"]]
        return code == 0 and len({(state["log"]["applied"], state["digest"]) for state in states}) == 1

    eventually(agreed)


@pytest.mark.parametrize("method", ["", "gz", "snappy"])
def test_a_genuine_server_goes_on_from_a_snapshot(tmp_path, method):
    with Single(tmp_path / "quenda", **{"snapshot.compression.method": method}) as single:
        conn = single.connect()
        fill(conn)
        expected = without_config(listing(conn))
        zxid = conn.last_zxid
        result = take(single.admin, tmp_path / "snapshot")
        assert result.code == 0, result
        assert f"zxid {zxid:#x}" in result.out
        conn.drop()
    end = f".{method}" if method else ""
    folder = tmp_path / "genuine" / "data" / "version-2"
    folder.mkdir(parents=True)
    shutil.copy(tmp_path / "snapshot", folder / f"snapshot.{zxid:x}{end}")
    with started(tmp_path / "genuine", cfg={"4lw.commands.whitelist": "*"}) as server:
        with Conn(server.port) as conn:
            assert without_config(listing(conn)) == expected
            # It goes on where we were, and finds its own digest of what we have written.
            assert conn.create2("/next")[1].czxid > zxid
            assert conn.create("/queue/n-", b"", flags=FLAG.SEQUENTIAL) == "/queue/n-0000000004"
        figures = dict(line.split("\t") for line in four_letter(server.port, "mntr").splitlines() if "\t" in line)
        assert figures["zk_digest_mismatches_count"] == "0"


def test_a_genuine_snapshot_is_restored_with_its_session(tmp_path):
    with Single(tmp_path) as single:
        before = single.connect()
        before.create("/own", b"")
        own = [line for line in listing(before) if line.startswith("/zookeeper/config\t")]
        result = put_back(single.admin, DEFAULT_FOLDER / "full.snapshot")
        assert result.code == 0, result
        before.expect_close()
        with pytest.raises(Refused):
            before.resume()
        session, password = (DEFAULT_FOLDER / "full.session").read_text().split()
        conn = single.connect(session=int(session, 16), passwd=bytes.fromhex(password))
        lines = list(listing(conn))
        expected = (DEFAULT_FOLDER / "full.txt").read_text(encoding="utf-8").splitlines()
        assert without_config(lines) == without_config(expected)
        assert own[0] in lines
        # The next number of the queue is not what clients see of its parent.
        assert conn.create("/queue/n-", b"", flags=FLAG.SEQUENTIAL) == "/queue/n-0000000004"
        # The session has given up its znodes with its end, as any other.
        conn.close()
        with single.connect() as conn:
            assert conn.exists("/lock") is None
        # Nothing of it is lost by a crash.
        single.server.restart(hard=True)
        with single.connect() as conn:
            assert conn.get("/plain")[0] == b"other data"


def test_genuine_snapshots_are_restored_compressed_as_they_are(tmp_path):
    with started(tmp_path / "genuine") as genuine:
        with Conn(genuine.port, timeout=SESSION_MS) as conn:
            fill(conn)
            conn.create("/later", b"x" * 100_000)
        genuine.stop()
        files = {}
        for method in ("gz", "snappy"):
            genuine.jvm_props["zookeeper.snapshot.compression.method"] = method
            genuine.start()
            with Conn(genuine.port) as conn:
                conn.create(f"/{method}", b"")
                expected = without_config(listing(conn))
            # The start made one, of all that was there before.
            (file,) = (tmp_path / "genuine" / "data" / "version-2").glob(f"snapshot.*.{method}")
            files[method] = (file, [line for line in expected if not line.startswith(f"/{method}\t")])
            genuine.stop()
    with Single(tmp_path / "quenda") as single:
        for method, (file, expected) in files.items():
            done = put_back(single.admin, file)
            assert done.code == 0, (method, done)
            with single.connect() as conn:
                assert below(without_config(listing(conn))) == below(expected), method
        size = file.stat().st_size
        for damaged in (file.read_bytes()[:-1], file.read_bytes()[: size // 2]):
            refused = command(single.admin, "restore", method="POST", body=damaged, headers=IP)
            assert refused.status == 500 and "nothing was changed" in refused.error, refused.body


def below(lines):
    """Without the root, whose children a client sees change by the one znode that came later."""
    return [line for line in lines if not line.startswith("/\t")]


def test_the_commands_over_http(tmp_path):
    with Single(tmp_path) as single:
        with single.connect() as conn:
            conn.create("/a", b"1")
        zxid = four_letter(single.server.port, "srvr").split("Zxid: ")[1].split()[0]
        answer = command(single.admin, "snapshot?streaming=true", headers=IP)
        assert (answer.status, answer.headers["last_zxid"]) == (200, zxid)
        assert int(answer.headers["snapshot_size"]) == len(answer.body)
        assert answer.body.startswith(b"ZKSN")
        # It takes no transaction, whether it is sent or stays.
        kept = command(single.admin, "snapshot?streaming=false", headers=IP)
        assert (kept.status, kept.headers["last_zxid"]) == (200, zxid)
        files = list((tmp_path / "data" / "snapshots").iterdir())
        assert [file.name for file in files] == [f"snapshot.{int(zxid, 16):x}"]
        assert files[0].read_bytes() == answer.body
        assert four_letter(single.server.port, "srvr").split("Zxid: ")[1].split()[0] == zxid
        for damaged in (answer.body[:-1], answer.body[:200] + b"x" + answer.body[201:], b"", b"ZKSN"):
            refused = command(single.admin, "restore", method="POST", body=damaged, headers=IP)
            assert refused.status == 500, refused.body
        with single.connect() as conn:
            assert conn.get("/a")[0] == b"1"
            done = command(single.admin, "restore", method="POST", body=answer.body, headers=IP)
            assert done.status == 200, done.body
            assert done.json["last_zxid"] > int(zxid, 16)
            conn.expect_close()


def test_what_the_program_says(tmp_path):
    with Single(tmp_path / "server", skipACL="no") as single:
        file = tmp_path / "snapshot"
        assert take(single.admin, file).code == 0
        assert file.stat().st_mode & 0o777 == 0o600
        again = take(single.admin, file)
        assert again.code == 1 and "--force" in again.err
        assert take(single.admin, file, "--force").code == 0
        asked = put_back(single.admin, file, "--timeout", "9")
        assert asked.code == 1 and "--yes" in asked.err
        (tmp_path / "bad").write_bytes(file.read_bytes()[:-4])
        bad = put_back(single.admin, tmp_path / "bad")
        assert bad.code == 1 and "500" in bad.err, bad
        nobody = put_back(free_port(), file)
        assert nobody.code == 1 and "cannot connect" in nobody.err
        with single.connect() as conn:
            conn.auth("digest", b"ann:secret")
            conn.set_acl("/", [(31, "auth", "")])
        refused = take(single.admin, tmp_path / "other")
        assert refused.code == 1 and "--auth" in refused.err, refused
        assert not (tmp_path / "other").exists()
        assert take(single.admin, tmp_path / "other", "--auth", "digest:ann:secret").code == 0


def test_a_member_without_a_quorum_gives_no_snapshot(three, tmp_path):
    for number in (2, 3):
        three[number].kill9()
    eventually(lambda: not three[1].serving())
    file = tmp_path / "snapshot"
    refused = take(admin_of(three[1]), file)
    assert refused.code == 1 and "not currently serving" in refused.err, refused
    assert not file.exists()


class Writer(threading.Thread):
    """Writes n to /a, then to /b, for ever; reconnects, and remembers what was acknowledged."""

    def __init__(self, members):
        super().__init__(daemon=True)
        self.members = members
        self.zxids = []
        self.acknowledged = 0
        self.stopped = False

    def run(self):
        turn = 0
        while not self.stopped:
            member = self.members[turn % len(self.members)]
            turn += 1
            try:
                with member.connect(timeout=8000) as conn:
                    self.write(conn)
            except (Closed, ConnectionError, OSError, ZkError, Refused):
                time.sleep(0.05)

    def write(self, conn):
        while not self.stopped:
            number = str(self.acknowledged + 1).encode()
            for path in ("/a", "/b"):
                stat = conn.set(path, number)
                self.zxids.append(stat.mzxid)
            self.acknowledged += 1

    def end(self):
        self.stopped = True
        self.join(30)
        assert not self.is_alive()


def prepared(ensemble):
    with ensemble.leader().connect_soon() as conn:
        conn.create("/a", b"0")
        conn.create("/b", b"0")


def test_a_snapshot_under_load_is_one_state(three, tmp_path):
    prepared(three)
    writer = Writer(list(three))
    writer.start()
    eventually(lambda: writer.acknowledged > 50)
    taken = []
    for member in three:
        before = writer.acknowledged
        file = tmp_path / f"snapshot-{member.number}"
        result = take(admin_of(member), file)
        assert result.code == 0, result
        eventually(lambda before=before: writer.acknowledged > before + 20)
        taken.append((member, before, file))
    writer.end()
    assert writer.zxids == sorted(set(writer.zxids))
    leader = three.leader()
    with Single(tmp_path / "single") as single:
        for member, before, file in taken:
            assert put_back(single.admin, file).code == 0
            with single.connect() as conn:
                first, second = (int(conn.get(path)[0]) for path in ("/a", "/b"))
            assert second <= first <= second + 1, (first, second)
            # A leader holds all that was acknowledged; others may lag.
            assert second >= before or member is not leader, (second, before)


def test_a_restore_under_load_ends_the_same_everywhere(three, tmp_path):
    prepared(three)
    leader, follower = three.leader(), three.followers()[0]
    keeper = leader.connect(timeout=SESSION_MS)
    keeper.create("/kept", b"", flags=FLAG.EPHEMERAL)
    keeper.create("/parent", b"")
    keeper.create("/parent/child", b"")
    assert take(admin_of(leader), tmp_path / "snapshot").code == 0
    # What comes behind it is gone afterwards; the session of the other client as well.
    keeper.set("/kept", b"later")
    keeper.create("/later", b"")
    keeper.delete("/parent/child")
    other = follower.connect(timeout=SESSION_MS)
    other.create("/others", b"", flags=FLAG.EPHEMERAL)
    seen = keeper.last_zxid
    writer = Writer(list(three))
    writer.start()
    eventually(lambda: writer.acknowledged > 30)
    result = put_back(admin_of(follower), tmp_path / "snapshot")
    assert result.code == 0, result
    restored = int(result.out.split("zxid ")[1], 16)
    keeper.expect_close()
    other.expect_close()
    behind = len(writer.zxids)
    eventually(lambda: len(writer.zxids) > behind + 20)
    writer.end()
    assert writer.zxids == sorted(set(writer.zxids))
    assert max(writer.zxids) > restored > seen
    with pytest.raises(Refused):
        follower.take_over(other)
    # The watches of before are told that they have missed something, though what they watch looks older.
    keeper = follower.take_over(keeper)
    keeper.set_watches(seen, data=["/kept", "/later"], exist=["/none", "/parent/child"], child=["/parent"])
    missed = {(EV.CHANGED, "/kept"), (EV.DELETED, "/later"), (EV.CREATED, "/parent/child"), (EV.CHILD, "/parent")}
    assert set(keeper.taken_events()) == missed
    assert keeper.get("/kept")[0] == b""
    # A fencing token of after is greater than any of before.
    assert keeper.create2("/token", b"", flags=FLAG.EPHEMERAL)[1].czxid > restored
    assert keeper.exists("/others") is None
    agree(three)
    keeper.close()
    for member in three:
        with member.connect_soon() as conn:
            conn.sync()
            assert conn.exists("/kept") is None and conn.exists("/token") is None
    agree(three)


def big_snapshot(folder, megabytes=24):
    """A file of about this size, and the number of its znodes below /big."""
    with Single(folder) as single:
        with single.connect() as conn:
            conn.create("/big", b"")
            count = megabytes * 10
            requests = [(OP.CREATE, create(f"/big/{number}", b"x" * 100_000)) for number in range(count)]
            for reply in conn.pipeline(requests, window=50):
                reply.ok()
        file = folder / "big"
        assert take(single.admin, file).code == 0
    return file, count


def in_the_middle(ensemble, member, file):
    """Begins a restore on a member and comes back when its pieces are on their way."""
    arguments = [str(quenda_binary()), "restore", "--server", f"127.0.0.1:{admin_of(member)}", "--yes", str(file)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: "on its way to all members" in member.log_tail(100_000) or process.poll() is not None)
    return process


def children_of(member):
    with member.connect_soon() as conn:
        conn.sync()
        try:
            return len(conn.children("/big"))
        except ZkError:
            return None


def test_a_leader_that_dies_in_the_middle_of_a_restore(three, tmp_path):
    file, count = big_snapshot(tmp_path / "big")
    prepared(three)
    leader, follower = three.leader(), three.followers()[0]
    process = in_the_middle(three, follower, file)
    leader.kill9()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    # The one that was not there learns of it.
    leader.start()
    agree(three)
    assert [children_of(member) for member in three] == [count] * 3


def test_a_member_that_dies_in_the_middle_of_its_restore(three, tmp_path):
    file, count = big_snapshot(tmp_path / "big")
    prepared(three)
    follower = three.followers()[0]
    process = in_the_middle(three, follower, file)
    follower.kill9()
    process.communicate(timeout=120)
    others = [member for member in three if member is not follower]
    # All or nothing, and the same everywhere.
    found = [children_of(member) for member in others]
    assert found in ([count] * 2, [None] * 2), found
    follower.start()
    agree(three)
    # The next one takes the place of what is left of it.
    assert put_back(admin_of(others[0]), file).code == 0
    agree(three)
    assert [children_of(member) for member in three] == [count] * 3


def test_members_that_were_away_or_wiped_get_what_was_restored(three, tmp_path):
    file, count = big_snapshot(tmp_path / "big")
    away, present = three.followers()
    away.stop()
    assert put_back(admin_of(present), file).code == 0
    away.start()
    agree(three)
    present.stop()
    present.wipe()
    present.start()
    agree(three)
    assert [children_of(member) for member in three] == [count] * 3
