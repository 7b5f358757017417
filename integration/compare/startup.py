"""Start and stop with many znodes: start to first reply after a clean stop and after kill -9 with a full log, how long a
stop takes, resident memory; beside a genuine ZooKeeper."""

import multiprocessing
import pathlib
import random
import time

from integration.compare import document, pipeline, probe, works
from integration.compare.command import Step, command, scratch
from integration.compare.servers import ZOOKEEPER
from integration.lib.process import ServerError
from integration.lib.quenda_server import QuendaServer
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

SIZE = 100
LONGEST = 600.0
HEADER = ("step", "server", "znodes", "figure", "value", "unit")
HEAPS = {1_000_000: "2g", 10_000_000: "12g"}


def measure(step, kind, znodes, options, disk):
    znodes = znodes // 10 if options.quick else znodes
    rows, tree = [], pipeline.Tree(SIZE)

    def note(figure, value, unit):
        rows.append((step, "Quenda" if kind != ZOOKEEPER else f"ZooKeeper {DEFAULT_VERSION}", znodes, figure, f"{value:.4g}", unit))
        print(f"{kind} {znodes}: {figure} {value:.4g} {unit}", flush=True)

    with scratch(disk, kind) as folder:
        heap = HEAPS.get(znodes, "2g")
        server = GenuineZooKeeper(folder, heap=heap) if kind == ZOOKEEPER else QuendaServer(folder)
        server.start()
        try:
            report = tree.grow(works.bench, server, znodes)
            note("create", report["operations_per_second"], "a second")
            note("resident when full", probe.settled_bytes(server.pid) / 2**20, "MiB")
            note("stop", took(lambda: server.stop(timeout=LONGEST)), "s")
            note("on disk after the stop", size_of(folder, "*"), "MiB")
            note("start to first reply", start(server, tree), "s")
            note("resident after it", probe.settled_bytes(server.pid) / 2**20, "MiB")
            kill_under_load(server, tree, options.seconds)
            note("log at the kill", size_of(folder, "*.log" if kind != ZOOKEEPER else "log.*"), "MiB")
            note("start to first reply after kill -9 under full write load", start(server, tree), "s")
            note("resident after that", probe.settled_bytes(server.pid) / 2**20, "MiB")
        finally:
            server.kill9()
    return rows


def took(function):
    begin = time.monotonic()
    function()
    return time.monotonic() - begin


def size_of(folder, pattern):
    return sum(file.stat().st_size for file in pathlib.Path(folder).rglob(pattern) if file.is_file()) / 2**20


def start(server, tree):
    """Seconds from the start of the process until one of the znodes is read."""
    begin = time.monotonic()
    server.spawn()
    length = probe.first_reply(server.port, next(tree.all()), begin + LONGEST)
    seconds = time.monotonic() - begin
    if length != tree.size:
        raise ServerError(f"a znode came back with {length} bytes")
    return seconds


def kill_under_load(server, tree, seconds):
    """Writes all over the tree, and kills the server amidst them."""
    process = multiprocessing.get_context("fork").Process(target=write, args=(server, tree))
    process.start()
    time.sleep(seconds)
    if not process.is_alive():
        raise ServerError("the writes ended before the kill")
    server.kill9()
    process.join()


def write(server, tree):
    rng = random.Random(3)
    streams = [[[pipeline.set_data(path, b"s" * tree.size)] for path in tree.pick(rng, 50_000)] for _ in range(8)]
    try:
        pipeline.drive(server, streams, seconds=LONGEST)
    except (ConnectionError, pipeline.zkwire.Closed):
        pass  # That is the kill.


def quenda_1m(options, disk):
    return measure("quenda-1m", "quenda", 1_000_000, options, disk)


def quenda_10m(options, disk):
    return measure("quenda-10m", "quenda", 10_000_000, options, disk)


def zookeeper_1m(options, disk):
    return measure("zookeeper-1m", ZOOKEEPER, 1_000_000, options, disk)


def present(rows):
    columns = list(dict.fromkeys((row[1], int(row[2])) for row in rows))
    values = {(row[1], int(row[2]), row[3]): row[4] for row in rows}
    figures = list(dict.fromkeys((row[3], row[5]) for row in rows))
    body = [[f"{figure}, {unit}", *[shown(values.get((*column, figure))) for column in columns]] for figure, unit in figures]
    return document.table(["", *[f"{server}, {document.number(count)} znodes" for server, count in columns]], body)


def shown(value):
    return document.number(float(value)) if value else ""


def main():
    steps = [Step("quenda-1m", quenda_1m), Step("quenda-10m", quenda_10m), Step("zookeeper-1m", zookeeper_1m)]
    command("startup", __doc__, steps, HEADER, present, lambda options: 6.0 if options.quick else 12.0)


if __name__ == "__main__":
    main()
