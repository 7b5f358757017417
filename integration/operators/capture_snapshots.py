"""Captures snapshot files of a genuine ZooKeeper, as goldens for the tests of the tree crate.

    python3 -m integration.operators.capture_snapshots [folder]

A server is filled with one znode of every kind and started again, which makes it write a snapshot of what it has; beside
it goes what a client sees of the same state. More files have the same content with other trailers, or are of a server that
was never used.
"""

import pathlib
import shutil
import sys
import tempfile

from integration.lib.zkwire import FLAG, OP, Conn, ZkError, create
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

DEFAULT_FOLDER = pathlib.Path(__file__).parents[2] / "crates" / "tree" / "tests" / "snapshots" / "golden"
PROPS = {"zookeeper.extendedTypesEnabled": "true", "zookeeper.admin.enableServer": "false"}
WITHOUT_DIGEST = {"zookeeper.digest.enabled": "false"}
WITHOUT_LAST_ZXID = {"zookeeper.serializeLastProcessedZxid.enabled": "false"}
SESSION_MS = 40_000


def fill(conn):
    """One of each."""
    conn.create("/plain", b"data")
    conn.create("/plain/child", b"")
    conn.create("/plain/gone", b"")
    conn.delete("/plain/gone")
    conn.set("/plain", b"other data")
    conn.call(OP.CREATE, create("/null", None)).ok()
    conn.create("/empty", b"")
    conn.create("/acl", b"", acl=[(31, "digest", "us%er,x:h=+/"), (1, "ip", "10.0.0.0/8"), (3, "world", "anyone")])
    conn.create("/readable", b"", acl=[(17, "world", "anyone")])
    conn.set_acl("/readable", [(1, "world", "anyone"), (30, "ip", "127.0.0.1")])
    conn.create("/ünïcode €", "wörds".encode())
    conn.create("/queue", b"")
    for _ in range(3):
        conn.create("/queue/n-", b"", flags=FLAG.SEQUENTIAL)
    conn.delete("/queue/n-0000000001")
    conn.create("/queue/e-", b"owned", flags=FLAG.EPHEMERAL_SEQUENTIAL)
    conn.create("/lock", b"", flags=FLAG.EPHEMERAL)
    conn.create_container("/container")
    conn.create("/container/member", b"")
    conn.create_ttl("/ttl", 86_400_000, b"for a day")
    conn.create("/limited", b"1234")
    conn.create("/limited/below", b"56")
    conn.create("/zookeeper/quota/limited", b"")
    conn.create("/zookeeper/quota/limited/zookeeper_limits", b"count=10,bytes=-1")
    conn.create("/zookeeper/quota/limited/zookeeper_stats", b"count=0,bytes=0")


def listing(conn, path="/"):
    """What a client sees, a line a znode."""
    data, stat = conn.get(path)
    try:
        entries = conn.get_acl(path)[0]
    except ZkError:
        entries = []
    shown = "null" if data is None else data.hex() or "-"
    numbers = " ".join(str(number) for number in stat)
    lists = " ".join(f"{perms}:{scheme}:{who}" for perms, scheme, who in entries)
    yield f"{path}\t{shown}\t{numbers}\t{lists}"
    for name in sorted(conn.children(path)):
        yield from listing(conn, path.rstrip("/") + "/" + name)


def newest(folder):
    files = (folder / "data" / "version-2").glob("snapshot.*")
    return max(files, key=lambda file: int(file.name.split(".")[1], 16))


def started(folder, props=None, cfg=None):
    cfg = {"skipACL": "yes", **(cfg or {})}
    return GenuineZooKeeper(folder, cfg, {**PROPS, **(props or {})}, heap="200m")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        with started(scratch / "fresh") as server:
            server.stop()
            shutil.copy(newest(scratch / "fresh"), folder / "fresh.snapshot")
        with started(scratch / "full") as server:
            conn = Conn(server.port, timeout=SESSION_MS)
            fill(conn)
            server.restart(hard=True)
            conn = conn.resume(timeout=SESSION_MS)
            (folder / "full.txt").write_text("".join(f"{line}\n" for line in listing(conn)), encoding="utf-8")
            (folder / "full.session").write_text(f"{conn.session:x} {conn.passwd.hex()}\n", encoding="ascii")
            server.kill9()
        shutil.copy(newest(scratch / "full"), folder / "full.snapshot")
        for name, props in [("digest", WITHOUT_LAST_ZXID), ("last-zxid", WITHOUT_DIGEST),
                            ("bare", {**WITHOUT_DIGEST, **WITHOUT_LAST_ZXID})]:
            # The logs alone: the snapshots may have trailers that this server does not expect.
            shutil.copytree(scratch / "full", scratch / name)
            for file in (scratch / name / "data" / "version-2").glob("snapshot.*"):
                file.unlink()
            with started(scratch / name, {**props, "zookeeper.snapshot.trust.empty": "true"}) as server:
                server.kill9()
            shutil.copy(newest(scratch / name), folder / f"{name}.snapshot")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER)
    print(f"captured from {DEFAULT_VERSION}")
