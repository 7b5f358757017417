"""Latency of reads and writes under full write load while checkpoints, snapshots and images for a follower are made,
beside the same load without them.

Checkpoints follow the writes and cannot be switched off. *Without* is the same load on few znodes: a checkpoint then is
tiny. *With* is the load all over the tree, so that each checkpoint is as large as they become.
"""

import concurrent.futures
import contextlib
import multiprocessing
import random
import subprocess
import threading
import time

from integration.compare import document, pipeline, works
from integration.compare.command import Step, command, quenda, scratch
from integration.compare.servers import QUENDA
from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.quenda_server import quenda_binary

SIZE = 100
FEW = 1000
HEADER = ("members", "phase", "requests", "p50_ms", "p99_ms", "p99_9_ms", "max_ms", "load", "note")
ENSEMBLE_CFG = {"tickTime": "2000", "initLimit": "10", "syncLimit": "5"}


@contextlib.contextmanager
def load(server, paths):
    """Sets of these znodes from a process of its own, as many as the server takes. Yields what counts them."""
    context = multiprocessing.get_context("fork")
    ended, count = context.Event(), context.Value("q", 0)
    process = context.Process(target=write, args=(server, paths, ended, count))
    process.start()
    try:
        while count.value == 0:
            if not process.is_alive():
                raise RuntimeError("the load has ended")
            time.sleep(0.05)
        yield count
    finally:
        ended.set()
        process.join()


def write(server, paths, ended, count):
    streams = [[[pipeline.set_data(path, b"s" * SIZE)] for path in part] for part in paths]
    while not ended.is_set():
        found = pipeline.drive(server, streams, pids=[], seconds=1.0)
        with count.get_lock():
            count.value += found.units


def probes(server, seconds, name):
    """One connection each that reads and writes znodes of its own, one request at a time."""
    common = ["--connections", 1, "--depth", 1, "--size", SIZE, "--duration", seconds, "--warmup", 1]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = {kind: pool.submit(works.bench, server, kind, *common, "--root", f"/{name}-{kind}") for kind in ("get", "set")}
        return {"reads": found["get"].result()["latency"]["read"], "writes": found["set"].result()["latency"]["write"]}


def phase(step, name, server, paths, options, beside=contextlib.nullcontext):
    """Latencies under that load while `beside` goes on; it yields a function that tells how often it did."""
    with load(server, paths) as count:
        with beside() as notes:
            before, begin = count.value, time.monotonic()
            latencies = probes(server, options.seconds, f"{name.split()[0]}-{step}")
            rate = (count.value - before) / (time.monotonic() - begin)
            note = notes() if notes else ""
    rows = []
    for kind, found in latencies.items():
        values = [f"{found[key] / 1000:.3f}" for key in ("p50_us", "p99_us", "p99_9_us", "max_us")]
        rows.append((step, name, kind, *values, round(rate), note))
        print(f"{step} {name:28} {kind:6} p50 {values[0]} p99 {values[1]} p99.9 {values[2]} max {values[3]} ms, "
              f"{rate:.0f} writes a second beside; {note}", flush=True)
    return rows


def samples(tree):
    rng = random.Random(5)
    few = tree.pick(rng, FEW)
    return [rng.choices(few, k=20_000) for _ in range(8)], [tree.pick(rng, 50_000) for _ in range(8)]


def one(options, disk):
    tree, port = pipeline.Tree(SIZE), free_port()
    cfg = {"admin.enableServer": "true", "admin.serverPort": str(port), "admin.serverAddress": "127.0.0.1",
           "admin.rateLimiterIntervalInMS": "0"}
    with quenda(disk, cfg) as server:
        tree.grow(works.bench, server, 100_000 if options.quick else 1_000_000)
        few, all_over = samples(tree)
        rows = phase("1", "without", server, few, options)
        rows += phase("1", "checkpoints", server, all_over, options)
        rows += phase("1", "checkpoints, snapshots", server, all_over, options, lambda: snapshots(port))
        rows += phase("1", "without, again", server, few, options)
    return rows


@contextlib.contextmanager
def snapshots(port):
    """Fetches one snapshot after the other."""
    ended, taken = threading.Event(), []
    line = [str(quenda_binary()), "snapshot", "--server", f"127.0.0.1:{port}", "--output", "-"]

    def fetch():
        while not ended.is_set():
            begin = time.monotonic()
            subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            taken.append(time.monotonic() - begin)

    thread = threading.Thread(target=fetch)
    thread.start()
    try:
        yield lambda: f"{len(taken)} snapshots"
    finally:
        ended.set()
        thread.join()


class OneMember:
    """A member of an ensemble, as what is driven."""

    def __init__(self, ensemble, member):
        self.hosts, self.pids, self.log_tail = member.address, [member.pid], ensemble.log_tails


def three(options, disk):
    """A follower is emptied and fed while the leader is read and written."""
    tree = pipeline.Tree(SIZE)
    with scratch(disk, "quenda") as folder, Ensemble(folder, 3, cfg=ENSEMBLE_CFG, target=QUENDA) as ensemble:
        leader = OneMember(ensemble, ensemble.leader())
        tree.grow(works.bench, leader, 100_000 if options.quick else 1_000_000)
        few, all_over = samples(tree)
        rows = phase("3", "without", leader, few, options)
        rows += phase("3", "checkpoints", leader, all_over, options)
        rows += phase("3", "checkpoints, a follower fed", leader, all_over, options, lambda: feeding(ensemble))
    return rows


@contextlib.contextmanager
def feeding(ensemble):
    """A follower is emptied and comes back, again and again."""
    ended, took = threading.Event(), []
    follower = ensemble.followers()[0]

    def feed():
        while not ended.is_set():
            follower.kill9()
            follower.wipe()
            begin = time.monotonic()
            follower.spawn()
            follower.wait_serving(300.0)
            took.append(time.monotonic() - begin)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield lambda: f"{len(took)} times fed"
    finally:
        ended.set()
        thread.join()


def present(rows):
    body, base = [], {}
    for members, name, kind, *values, rate, note in rows:
        p99_9 = float(values[2])
        base.setdefault((members, kind), p99_9)
        ratio = document.number(p99_9 / base[members, kind])
        note = f"{document.number(float(rate))} writes a second beside" + (f", {note}" if note else "")
        body.append([f"{members}: {name}, {kind}", *values, ratio, note])
    return document.table(["members: phase", "p50, ms", "p99", "p99.9", "max", "p99.9 to without", ""], body)


def main():
    command("pause", __doc__, [Step("1", one), Step("3", three)], HEADER, present, lambda options: 6.0 if options.quick else 15.0)


if __name__ == "__main__":
    main()
