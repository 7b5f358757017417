"""What is measured: each work drives one running server and returns its figures by name."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import time

from integration.compare import cells, etcd_server, probe
from integration.compare.servers import ETCD, KINDS, ZOOKEEPER, is_etcd
from integration.lib.process import ServerError
from integration.lib.quenda_server import quenda_binary

LOAD_ROOT = "/load"
NODE_DATA = 100
NODE_NAME = len("n0001")
RESTART_SECONDS = 300
# So many of etcd's watches share a connection where there are more than a thousand.
ETCD_WATCHES_A_CONNECTION = 10


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much of everything; `quick` is for a look while developing, its figures are noisier."""

    seconds: float = 3.0
    warmup: float = 1.0
    first_warmup: float = 5.0
    idle: float = 4.0
    znodes: int = 1_000_000
    sessions: int = 10_000

    @staticmethod
    def quick():
        return Scale(seconds=1.0, warmup=0.3, first_warmup=1.5, idle=1.0, znodes=50_000, sessions=1000)


def bench(server, workload, *options):
    """Runs the load program of that server and returns its report."""
    if is_etcd(server):
        program = [str(etcd_server.programs() / "load")]
    else:
        program = [os.environ.get("QUENDA_BENCH") or str(quenda_binary()), "bench"]
    command = [*program, workload, "--json", "--hosts", server.hosts]
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


def load(cell, _kind, server, scale):
    return load_figures(bench(server, cell.workload, *cell.arguments(), *timed(scale)))


def watch(watchers, kind, server, scale):
    """From the moment a change is sent until its event has reached that many watchers."""
    connections = ["--connections", watchers]
    if kind == ETCD and watchers > 1000:
        connections = ["--connections", watchers // ETCD_WATCHES_A_CONNECTION, "--watches", watchers]
    # A round of many is long.
    duration = 6.0 if watchers > 1000 else scale.seconds
    report = bench(server, "watch", *connections, "--duration", duration, "--warmup", scale.warmup)
    last = report["latency"]["last event"]
    return {
        "last_event_p50": last["p50_us"], "last_event_p99": last["p99_us"],
        "first_event_p50": report["latency"]["first event"]["p50_us"],
        "cpu_us": report["server"]["cpu_seconds"] * 1e6 / (report["operations"] * watchers),
        "resident": report["server"]["resident_bytes_at_end"], "rounds": report["operations"],
    }


def memory(kind, server, scale):
    """Memory with many znodes, then how long the server takes to serve them again."""
    before = probe.settled_bytes(*server.pids)
    folders = -(-scale.znodes // 1000)
    options = ["--root", LOAD_ROOT, "--keep", "--size", NODE_DATA, "--duration", 600]
    report = bench(server, "create", "--requests", scale.znodes + folders, *options)
    figures = {
        "create_throughput": report["operations_per_second"],
        "resident": probe.settled_bytes(*server.pids),
        "peak": probe.status_bytes(server.pid, "VmHWM"),
    }
    figures["bytes_a_node"] = (figures["resident"] - before) / scale.znodes - NODE_DATA - NODE_NAME
    if kind == ZOOKEEPER:
        probe.collect_garbage(server.pid)
        figures["resident_collected"] = probe.settled_bytes(*server.pids)
    figures["restart_after_kill"] = restart(kind, server, hard=True)
    figures["restart"] = restart(kind, server, hard=False)
    figures["resident_after_restart"] = probe.settled_bytes(*server.pids)
    figures["disk"] = sum(file.stat().st_size for file in pathlib.Path(server.data_dir).rglob("*") if file.is_file())
    return figures


def restart(kind, server, hard):
    """Seconds from the start of the process until one of the znodes is read."""
    if hard:
        server.kill9()
    else:
        server.stop(timeout=120.0)
    start = time.monotonic()
    server.start(timeout=RESTART_SECONDS)
    path = f"{LOAD_ROOT}/c0-000000/n0001"
    if kind == ETCD:
        length = len(server.value(path))
    else:
        length = probe.first_reply(server.port, path, start + RESTART_SECONDS)
    seconds = time.monotonic() - start
    if length != NODE_DATA:
        raise ServerError(f"a znode came back with {length} bytes")
    return seconds


def sessions(kind, server, scale):
    """Sessions opened and closed, and the memory of idle ones: resident at its highest while they are held, less what it
    was before."""
    bench(server, "sessions", "--connections", 100, "--duration", 1)
    if kind == ZOOKEEPER:
        for pid in server.pids:
            probe.collect_garbage(pid)
    before = probe.settled_bytes(*server.pids)
    sampler = probe.Sampler(server.pids)
    sampler.start()
    try:
        report = bench(server, "sessions", "--connections", scale.sessions, "--duration", scale.idle)
    finally:
        samples = sampler.stop()
    if report["operations"] != scale.sessions:
        raise ServerError(f"only {report['operations']} of {scale.sessions} sessions were opened")
    figures = {
        "bytes_a_session": (max(samples) - before) / scale.sessions,
        "opened_a_second": report["operations_per_second"],
        "cpu_us": report["server"]["cpu_us_per_operation"],
        "open_p50": report["latency"]["open"]["p50_us"],
        "open_p99": report["latency"]["open"]["p99_us"],
        "resident": max(samples),
    }
    if "closed_per_second" in report:
        figures["closed_a_second"] = report["closed_per_second"]
    return figures


@dataclasses.dataclass(frozen=True)
class Work:
    """One thing to measure; `measure(kind, server, scale)` returns its figures."""

    name: str
    measure: object
    servers: tuple = KINDS
    ensembles: bool = True


def loads(group):
    return [Work(cell.name, functools.partial(load, cell), cell.servers) for cell in group]


# Works of one group share a server, in this order.
GROUPS = {name: loads(group) for name, group in cells.GROUPS.items()} | {
    "watches": [Work("watch1", functools.partial(watch, 1)), Work("watch", functools.partial(watch, 1000)),
                Work("watch10000", functools.partial(watch, 10_000))],
    "sessions": [Work("sessions", sessions)],
    "memory": [Work("memory", memory, ensembles=False)],
}
# What a server holds from a load before would be counted as memory of these, or hide it.
COLD = {"sessions", "memory"}
# Filling a million znodes takes longest and varies least: once is enough unless rounds are asked for.
ONCE = {"memory"}


def names():
    return [work.name for group in GROUPS.values() for work in group]


def warm_up(server, scale):
    """Unmeasured load on a server that has just started, for the JVM's sake."""
    bench(server, "mixed", "--connections", 8, "--depth", 16, "--duration", scale.first_warmup, "--warmup", 0)
