"""How far Quenda is from what the machine can do at all: reads beside a bare echo server with the same framing, writes
beside a bare loop that writes batches as large as the log's and calls fdatasync."""

import concurrent.futures
import os
import statistics
import subprocess
import time
import urllib.request

from integration.compare import document, works
from integration.compare.command import Step, command, quenda, scratch
from integration.lib.process import ServerError, free_port
from integration.lib.quenda_server import quenda_binary

SIZE = 1024
SHAPES = {"16 connections, depth 16": (16, 16), "one connection, depth 1": (1, 1)}
HEADER = ("part", "shape", "figure", "quenda", "floor", "ratio", "goal")
# What a file is written up to before it is begun anew.
FILE_BYTES = 96 << 20


class Echo:
    """The echo server of crates/cli/examples/echo.rs, with the interface that `works.bench` needs."""

    def __enter__(self):
        program = quenda_binary().parent / "examples" / "echo"
        if not program.exists():
            raise ServerError(f"no {program}; `make floor` builds it")
        self.process = subprocess.Popen([str(program), str(SIZE)], stdout=subprocess.PIPE, text=True)
        self.hosts = f"127.0.0.1:{int(self.process.stdout.readline())}"
        self.pids = [self.process.pid]
        return self

    def log_tail(self, size=0):
        return ""

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def shape_options(shape, options):
    connections, depth = SHAPES[shape]
    return ["--connections", connections, "--depth", depth, "--size", SIZE, "--duration", options.seconds, "--warmup",
            options.seconds / 4]


def reads(options, disk):
    rows = []
    with quenda(disk) as server, Echo() as echo:
        for shape in SHAPES:
            found = {"server": [], "echo": []}
            for number in range(1 if options.quick else 3):
                for name, target in (("server", server), ("echo", echo)):
                    words = ["--keep", "--root", f"/{name}-{shape[:3]}-{number}"]
                    figures = works.load_figures(works.bench(target, "get", *shape_options(shape, options), *words))
                    found[name].append(figures)
                    print(f"{shape}: {name} {figures['cpu_us']:.3f} us, {figures['throughput']:.0f} a second", flush=True)
            for key, title, goal in (("cpu_us", "get: CPU, µs each", "≤ 2"), ("throughput", "get: a second", ""),
                                     ("p50", "get: p50, µs", ""), ("p99", "get: p99, µs", "")):
                ours, bare = (statistics.median(one[key] for one in found[name]) for name in ("server", "echo"))
                rows.append(("reads", shape, title, f"{ours:.4g}", f"{bare:.4g}", f"{ours / bare:.3f}", goal))
    return rows


def metrics(port):
    """Samples of the page for Prometheus by name, those with labels left out."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if line and "{" not in line and line[0] != "#"}


def log_figures(port):
    found = metrics(port)
    return (time.monotonic(), found["quenda_log_sync_seconds_count"], found["quenda_log_written_bytes_total"],
            found["quenda_log_sync_seconds_sum"])


def writes(options, disk):
    """The server's own metrics tell how often it synced and how much it wrote, over the middle of the run."""
    rows, port = [], free_port()
    cfg = {"metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
           "metricsProvider.httpPort": str(port), "metricsProvider.httpHost": "127.0.0.1"}
    for shape in SHAPES:
        with quenda(disk, cfg) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            run = pool.submit(works.bench, server, "set", *shape_options(shape, options))
            time.sleep(options.seconds * 0.35)
            before = log_figures(port)
            time.sleep(options.seconds * 0.8)
            after = log_figures(port)
            report = run.result()
        seconds, syncs, written, syncing = (late - early for early, late in zip(before, after, strict=True))
        batch = int(written / syncs)
        print(f"{shape}: {report['operations_per_second']:.0f} sets, {syncs / seconds:.0f} syncs a second of {batch} bytes, "
              f"{syncing / seconds:.0%} of the time in the log's write and sync", flush=True)
        ours = syncs / seconds
        for name, grows in (("a growing file", True), ("a file written before", False)):
            bare = sync_rate(disk, batch, grows, options.seconds / 2)
            rows.append(("writes", shape, f"batches of {batch} bytes a second, beside {name}", f"{ours:.4g}", f"{bare:.4g}",
                         f"{ours / bare:.3f}", "≥ 0.7"))
        rows.append(("writes", shape, "set: a second", f"{report['operations_per_second']:.4g}", "", "", ""))
        rows.append(("writes", shape, "share of the time in the log's write and sync", f"{syncing / seconds:.3f}", "", "", ""))
    return rows


def sync_rate(disk, batch, grows, seconds):
    """How many batches a second one thread brings to the disk."""
    data = os.urandom(batch)
    with scratch(disk, "floor") as folder:
        file = os.open(folder / "log", os.O_RDWR | os.O_CREAT)
        try:
            if not grows:
                for _ in range(max(FILE_BYTES // batch, 1)):
                    os.write(file, data)
                os.fsync(file)
                os.lseek(file, 0, os.SEEK_SET)
            count, place, start = 0, 0, time.monotonic()
            while time.monotonic() < start + seconds:
                if place + batch > FILE_BYTES:
                    if grows:
                        os.close(file)
                        file = os.open(folder / "log", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
                    os.lseek(file, 0, os.SEEK_SET)
                    place = 0
                os.write(file, data)
                os.fdatasync(file)
                place += batch
                count += 1
            return count / (time.monotonic() - start)
        finally:
            os.close(file)


def present(rows):
    body = []
    for _, shape, figure, ours, bare, ratio, goal in rows:
        cells = [document.number(float(cell)) if cell else "" for cell in (ours, bare, ratio)]
        body.append([f"{shape}: {figure}", *cells, goal])
    return document.table(["", "Quenda", "floor", "ratio", "goal"], body)


def main():
    command("floor", __doc__, [Step("reads", reads), Step("writes", writes)], HEADER, present,
            lambda options: 2.0 if options.quick else 6.0)


if __name__ == "__main__":
    main()
