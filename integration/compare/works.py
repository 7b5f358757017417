"""What is measured: each work drives one running server and returns its figures by name."""

import dataclasses
import json
import os
import pathlib
import subprocess
import time

from integration.compare import probe
from integration.compare.servers import ZOOKEEPER
from integration.lib.process import ServerError
from integration.lib.quenda_server import quenda_binary

LOAD_ROOT = "/load"
NODE_DATA = 100
NODE_NAME = len("n0001")
RESTART_SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much of everything; `quick` is for a look while developing, its figures are noisier."""

    seconds: float = 10.0
    warmup: float = 5.0
    watchers: int = 1000
    znodes: int = 1_000_000
    sessions: int = 10_000

    @staticmethod
    def quick():
        return Scale(seconds=3.0, warmup=2.0, znodes=100_000, sessions=1000)


def bench(server, workload, *options):
    """Runs `quenda bench` against the server and returns its report."""
    program = os.environ.get("QUENDA_BENCH") or str(quenda_binary())
    command = [program, "bench", workload, "--json", "--hosts", server.hosts]
    command += ["--server-pid", ",".join(map(str, server.pids)), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}\n{server.log_tail()}")
    report = json.loads(done.stdout)
    if report["errors"]:
        raise ServerError(f"{' '.join(command)} met errors: {report['errors']}")
    return report


def load_figures(report):
    operations = report["operations"]
    cpu = report["server"]["cpu_seconds"]
    figures = {
        "throughput": report["operations_per_second"],
        "cpu_us": cpu * 1e6 / operations,
        "per_cpu_second": operations / cpu if cpu else float("inf"),
        "client_cpu_us": report["client_cpu_seconds"] * 1e6 / operations,
        "resident": report["server"]["resident_bytes_at_end"],
    }
    # Reads and writes of a mix wait in the same queue; the slower kind is the one that counts.
    for quantile in ("p50", "p99", "p99_9"):
        figures[quantile] = max(entry[f"{quantile}_us"] for entry in report["latency"].values())
    return figures


def timed(scale):
    return ["--duration", scale.seconds, "--warmup", scale.warmup]


def get(_kind, server, scale):
    return load_figures(bench(server, "get", *timed(scale)))


def set_(_kind, server, scale):
    return load_figures(bench(server, "set", *timed(scale)))


def mix(_kind, server, scale):
    return load_figures(bench(server, "mixed", "--read-ratio", 0.7, *timed(scale)))


def sync(_kind, server, scale):
    return load_figures(bench(server, "set", "--connections", 1, "--depth", 1, *timed(scale)))


def watch(_kind, server, scale):
    report = bench(server, "watch", "--connections", scale.watchers, *timed(scale))
    last = report["latency"]["last event"]
    return {"last_event_p50": last["p50_us"], "last_event_p99": last["p99_us"], "rounds": report["operations"]}


def memory(kind, server, scale):
    """Memory with many znodes, then how long the server takes to serve them again."""
    before = probe.settled_bytes(server.pid)
    folders = -(-scale.znodes // 1000)
    options = ["--root", LOAD_ROOT, "--keep", "--size", NODE_DATA, "--duration", 600]
    report = bench(server, "create", "--requests", scale.znodes + folders, *options)
    figures = {
        "create_throughput": report["operations_per_second"],
        "resident": probe.settled_bytes(server.pid),
        "peak": probe.status_bytes(server.pid, "VmHWM"),
    }
    figures["bytes_a_node"] = (figures["resident"] - before) / scale.znodes - NODE_DATA - NODE_NAME
    if kind == ZOOKEEPER:
        probe.collect_garbage(server.pid)
        figures["resident_collected"] = probe.settled_bytes(server.pid)
    figures["restart_after_kill"] = restart(server, hard=True)
    figures["restart"] = restart(server, hard=False)
    figures["resident_after_restart"] = probe.settled_bytes(server.pid)
    figures["disk"] = sum(file.stat().st_size for file in pathlib.Path(server.data_dir).rglob("*") if file.is_file())
    return figures


def restart(server, hard):
    """Seconds from the start of the process until one of the znodes is read."""
    if hard:
        server.kill9()
    else:
        server.stop(timeout=120.0)
    start = time.monotonic()
    server.start(timeout=RESTART_SECONDS)
    length = probe.first_reply(server.port, f"{LOAD_ROOT}/c0-000000/n0001", start + RESTART_SECONDS)
    seconds = time.monotonic() - start
    if length != NODE_DATA:
        raise ServerError(f"a znode came back with {length} bytes")
    return seconds


def sessions(kind, server, scale):
    """Memory of idle sessions: resident at its highest while they are held, less what it was before."""
    bench(server, "sessions", "--connections", 100, "--duration", 1)
    if kind == ZOOKEEPER:
        probe.collect_garbage(server.pid)
    before = probe.settled_bytes(server.pid)
    sampler = probe.Sampler(server.pid)
    sampler.start()
    try:
        report = bench(server, "sessions", "--connections", scale.sessions, "--duration", scale.seconds)
    finally:
        samples = sampler.stop()
    if report["operations"] != scale.sessions:
        raise ServerError(f"only {report['operations']} of {scale.sessions} sessions were opened")
    return {
        "bytes_a_session": (max(samples) - before) / scale.sessions,
        "opened_a_second": report["operations_per_second"],
        "resident": max(samples),
    }


# Works of one group share a server, in this order, so that the JVM is warm for all but the first.
GROUPS = {
    "load": {"get": get, "set": set_, "mix": mix, "sync": sync, "watch": watch},
    "memory": {"memory": memory},
    "sessions": {"sessions": sessions},
}
WORKS = [name for group in GROUPS.values() for name in group]
