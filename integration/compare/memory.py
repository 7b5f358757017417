"""What a member's memory goes to: bytes a znode, a watch, a session, a connection, and what is given back.

    integration/compare/run-memory                       # everything, about five minutes
    integration/compare/run-memory --only watches,peak   # some of it
    integration/compare/run-memory --znodes 10000000     # a larger tree
    integration/compare/run-memory --write               # the table of docs/performance.md and its CSV

Each figure is a difference of resident memory (VmRSS) of a server process of its own: before, and once it has settled.
"""

import argparse
import contextlib
import csv
import pathlib
import re
import shutil
import ssl
import sys
import tempfile
import time

from integration.compare import probe, works
from integration.compare.servers import cache_dir, disk_for, raise_file_limit
from integration.lib import zkwire
from integration.lib.quenda_server import QuendaServer
from integration.lib.zkwire import OP
from integration.tls.material import Material
from integration.tls.servers import SecureConn, cfg, context

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- memory: begin (written by integration/compare/run-memory --write) -->", "<!-- memory: end -->"
KIB, MIB = 1 << 10, 1 << 20
LONG_TIMEOUT = 600_000
FRAME_PATHS = 20_000


def settled(server, seconds=4.0):
    time.sleep(1.0)
    return probe.settled_bytes(server.pid, seconds)


class Figures:
    """Rows of the table."""

    def __init__(self):
        self.rows = []

    def add(self, what, value, unit, goal=""):
        self.rows.append((what, value, unit, goal))
        print(f"{what:80} {value:12,.1f} {unit:6} {goal}", flush=True)


def znodes(base, options, figures):
    """Through the protocol, so with everything that a log and a checkpoint leave in memory; then deleted again."""
    with started(base) as server:
        before = settled(server)
        fill(server, options.znodes)
        after = settled(server)
        payload = works.NODE_DATA + works.NODE_NAME
        count = f"{options.znodes / 1e6:g} M znodes of {works.NODE_DATA} bytes"
        figures.add(f"{count}: resident", after / MIB, "MiB")
        figures.add(f"{count}: bytes a znode beyond data and name", (after - before) / options.znodes - payload, "B",
                    "250")
        start = time.monotonic()
        server.stop(timeout=120.0)
        figures.add(f"{count}: stop", time.monotonic() - start, "s")
        start = time.monotonic()
        server.start(timeout=600)
        probe.first_reply(server.port, f"{works.LOAD_ROOT}/c0-000000/n0001", start + 600)
        figures.add(f"{count}: start to first reply", time.monotonic() - start, "s")
        figures.add(f"{count}: resident behind the start", settled(server) / MIB, "MiB")
        delete_all(server)
        time.sleep(10.0)
        figures.add(f"{count}: resident after all are deleted, beyond the empty server",
                    (settled(server) - before) / MIB, "MiB")


def fill(server, count):
    folders = -(-count // 1000)
    options = ["--root", works.LOAD_ROOT, "--keep", "--size", works.NODE_DATA, "--duration", 3600]
    works.bench(server, "create", "--requests", count + folders, *options)


def delete_all(server):
    with zkwire.Conn(server.port, wait=120.0) as conn:
        for folder in conn.children(works.LOAD_ROOT):
            path = f"{works.LOAD_ROOT}/{folder}"
            names = [f"{path}/{name}" for name in conn.children(path)] + [path]
            conn.pipeline([(OP.DELETE, zkwire.delete(name)) for name in names])
        conn.delete(works.LOAD_ROOT)


def watches(base, options, figures):
    """A million exists watches on as many paths by twenty connections; then a thousand connections on the same thousand."""
    count = options.watches
    with started(base) as server, contextlib.ExitStack() as stack:
        conns = [stack.enter_context(zkwire.Conn(server.port, LONG_TIMEOUT)) for _ in range(20)]
        leave_watches(conns[0], ["/warm"])
        before = settled(server)
        text = 0
        for number, conn in enumerate(conns):
            paths = [f"/services/{number:02}/member-{entry:06}" for entry in range(count // len(conns))]
            text += sum(map(len, paths))
            leave_watches(conn, paths)
        used = settled(server) - before
        figures.add(f"{count:,} watches, each on a path of its own: bytes a watch", used / count, "B")
        figures.add(f"{count:,} watches, each on a path of its own: beyond the text of its path", (used - text) / count,
                    "B", "64")
    with started(base) as server, contextlib.ExitStack() as stack:
        many = 1000
        conns = [stack.enter_context(zkwire.Conn(server.port, LONG_TIMEOUT)) for _ in range(many)]
        for conn in conns:
            leave_watches(conn, ["/warm"])
        before = settled(server)
        paths = [f"/services/member-{entry:06}" for entry in range(count // many)]
        for conn in conns:
            leave_watches(conn, paths)
        used = settled(server) - before
        figures.add(f"{many} connections, each watching the same {len(paths)} paths: bytes a watch",
                    used / (many * len(paths)), "B", "64")


def leave_watches(conn, paths):
    for start in range(0, len(paths), FRAME_PATHS):
        body = zkwire.set_watches(conn.last_zxid + (1 << 40), exist=paths[start:start + FRAME_PATHS])
        conn.send(OP.SET_WATCHES, body, xid=zkwire.SET_WATCHES_XID)
        conn.reply().ok()


def sessions(base, options, figures):
    """Idle ones, then the same without their connections."""
    count = options.sessions
    with started(base) as server:
        warm = [zkwire.Conn(server.port, LONG_TIMEOUT) for _ in range(50)]
        for conn in warm:
            conn.close()
        before = settled(server)
        conns = [zkwire.Conn(server.port, LONG_TIMEOUT) for _ in range(count)]
        figures.add(f"{count:,} idle sessions: bytes a session", (settled(server) - before) / count, "B", "8192")
        for conn in conns:
            conn.call(OP.EXISTS, zkwire.read("/zookeeper"))
            conn.call(OP.SYNC, zkwire.ustring("/"))
        figures.add(f"{count:,} idle sessions that have asked before: bytes a session",
                    (settled(server) - before) / count, "B", "8192")
        for conn in conns:
            conn.drop()
        figures.add(f"{count:,} sessions without a connection: bytes a session", (settled(server) - before) / count, "B")


def secure(base, options, figures):
    """Idle sessions over TLS."""
    count = options.sessions // 5
    with tempfile.TemporaryDirectory() as folder:
        material = Material(pathlib.Path(folder))
        with started(base, {**cfg(material), "secureClientPort": "0"}) as server:
            port = secure_port(server)
            client = context(material)
            SecureConn(port, client).close()
            before = settled(server)
            conns = [SecureConn(port, client, timeout=LONG_TIMEOUT) for _ in range(count)]
            figures.add(f"{count:,} idle sessions over TLS: bytes a session", (settled(server) - before) / count, "B")
            for conn in conns:
                with contextlib.suppress(OSError, ssl.SSLError):
                    conn.drop()


def secure_port(server):
    """The one that the system has chosen."""
    return int(re.search(r"with TLS on \S*:(\d+)", server.log_tail(100_000))[1])


def used(base, options, figures):
    """Connections that once sent a megabyte, and once took one."""
    count = 500
    data = bytes(1_000_000)
    with started(base) as server, contextlib.ExitStack() as stack:
        conns = [stack.enter_context(zkwire.Conn(server.port, LONG_TIMEOUT)) for _ in range(count)]
        conns[0].create("/large", data)
        # What the log and its tables keep has nothing to do with connections.
        for _ in range(100):
            conns[0].set("/large", data)
        before = settled(server)
        for conn in conns:
            conn.set("/large", data)
        figures.add(f"{count} connections that have sent 1 MB each, idle: bytes a connection",
                    (settled(server) - before) / count, "B")
        for conn in conns:
            conn.get("/large")
        figures.add(f"{count} connections that have taken 1 MB each, idle: bytes a connection",
                    (settled(server) - before) / count, "B")


def peak(base, options, figures):
    """Thousands of requests of 64 KiB in flight, writes and then reads; then nothing for a minute."""
    loads = [("set", 500), ("get", 2000)]
    with started(base) as server:
        before = settled(server)
        for workload, connections in loads:
            load = ["--depth", 16, "--size", 64 * KIB, "--znodes", 100, "--duration", 10]
            works.bench(server, workload, "--connections", connections, *load)
        highest = probe.status_bytes(server.pid, "VmHWM")
        what = " and ".join(f"{connections:,} connections × 16 {workload}s" for workload, connections in loads)
        figures.add(f"{what} of 64 KiB in flight: resident at the highest", highest / MIB, "MiB")
        time.sleep(60.0)
        figures.add("the same a minute later, beyond the empty server", (settled(server) - before) / MIB, "MiB")


WORKS = {"znodes": znodes, "watches": watches, "sessions": sessions, "secure": secure, "used": used, "peak": peak}


@contextlib.contextmanager
def started(base, entries=None):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memory-", dir=base))
    server = QuendaServer(folder, {"maxClientCnxns": "0", "maxSessionTimeout": str(LONG_TIMEOUT), **(entries or {})})
    try:
        yield server.start()
    finally:
        server.kill9()
        shutil.rmtree(folder, ignore_errors=True)


def write(figures):
    target = REPOSITORY / "docs" / "performance"
    target.mkdir(exist_ok=True)
    with (target / "memory.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["what", "value", "unit", "goal"])
        out.writerows((what, f"{value:.2f}", unit, goal) for what, value, unit, goal in figures.rows)
    lines = ["| what | measured | goal |", "|---|---|---|"]
    lines += [f"| {what} | {value:,.{1 if unit == 's' else 0}f} {unit} | {f'≤ {goal} {unit}' if goal else ''} |"
              for what, value, unit, goal in figures.rows]
    page = REPOSITORY / "docs" / "performance.md"
    text = page.read_text()
    head, rest = text.split(BEGIN)
    page.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1])


def main():
    parser = argparse.ArgumentParser(prog="integration/compare/run-memory", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(WORKS), help=f"of {','.join(WORKS)}")
    parser.add_argument("--znodes", type=int, default=1_000_000)
    parser.add_argument("--watches", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--data", type=pathlib.Path, default=cache_dir() / "compare", help="folder on a disk")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md, and a CSV beside it")
    options = parser.parse_args()
    raise_file_limit()
    base, _ = disk_for(options.data)
    figures = Figures()
    for name in options.only.split(","):
        if name not in WORKS:
            sys.exit(f"unknown: {name}; there are {', '.join(WORKS)}")
        WORKS[name](base, options, figures)
    if options.write:
        write(figures)


if __name__ == "__main__":
    main()
