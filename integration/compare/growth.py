"""Curves: what an operation costs against the number of znodes, children, watches, sessions and members."""

import random
import subprocess
import threading

from integration.compare import chart, document, pipeline, works
from integration.compare.command import Step, command
from integration.compare.probe import settled_bytes
from integration.compare.servers import QUENDA, running
from integration.lib import zkwire
from integration.lib.quenda_server import quenda_binary
from integration.lib.zkwire import OP

SIZE = 100
CONNECTIONS = 8
# Different requests of one connection; more would only cost the client's cache.
PICKED = 50_000
CREATED = 60_000
HEADER = ("curve", "x", "operation", "operations_a_second", "server_cpu_us", "note")


class Curve:
    """The points of one curve, as rows of the CSV."""

    def __init__(self, name):
        self.name = name
        self.rows = []

    def add(self, x, operation, found, requests=1, note=""):
        self.put(x, operation, found.rate(requests), found.cpu_us(requests), note)

    def put(self, x, operation, rate, cpu_us, note=""):
        self.rows.append((self.name, x, operation, round(rate), round(cpu_us, 2), note))
        print(f"{self.name} {x:>9} {operation:24} {rate:12.0f} a second {cpu_us:8.2f} us  {note}", flush=True)


def shares(items, count=CONNECTIONS):
    return [items[number::count] for number in range(count)]


def picked(tree, count=PICKED):
    """Paths for each connection; of a small tree each path several times."""
    rng = random.Random(1)
    return [tree.pick(rng, count) for _ in range(CONNECTIONS)]


def reads(paths):
    return [[[pipeline.get(path, SIZE)] for path in part] for part in paths]


def sets(paths):
    return [[[pipeline.set_data(path, b"s" * SIZE)] for path in part] for part in paths]


def load(curve, x, server, paths, seconds, note=""):
    """get and set of these znodes, then create and delete of others in folders of 1000."""
    for name, streams in (("get", reads(paths)), ("set", sets(paths))):
        pipeline.drive(server, streams, seconds=seconds / 4)
        curve.add(x, name, pipeline.drive(server, streams, seconds=seconds), note=note)
    with pipeline.connect(server) as conn:
        conn.create("/new")
        for folder in range(CREATED // 1000):
            conn.create(f"/new/f{folder:03}")
        names = [f"/new/f{number // 1000:03}/n{number % 1000:03}" for number in range(CREATED)]
        made = [[[pipeline.create(name, b"c" * SIZE)] for name in part] for part in shares(names)]
        gone = [[[pipeline.delete(name)] for name in part] for part in shares(names)]
        curve.add(x, "create", pipeline.drive(server, made), note=note)
        curve.add(x, "delete", pipeline.drive(server, gone), note=note)
        for folder in range(CREATED // 1000):
            conn.delete(f"/new/f{folder:03}")
        conn.delete("/new")


def znodes(options, disk):
    curve, tree = Curve("znodes"), pipeline.Tree(SIZE)
    with running(QUENDA, disk) as server:
        for count in sizes(options, 3, 7, 6):
            made = tree.grow(works.bench, server, count)
            curve.put(count, "fill (create)", made["operations_per_second"], made["server"]["cpu_us_per_operation"])
            load(curve, count, server, picked(tree), options.seconds, f"{settled_bytes(server.pid) >> 20} MiB resident")
    return curve.rows


def children(options, disk):
    """One parent: a child created and deleted again while it has so many others; then the whole list."""
    curve, have = Curve("children"), 0
    with running(QUENDA, disk) as server, pipeline.connect(server) as conn:
        conn.create("/parent")
        for count in sizes(options, 1, 6, 5):
            names = [f"/parent/n{number:07}" for number in range(have, count)]
            streams = [[[pipeline.create(name)] for name in part] for part in shares(names, min(CONNECTIONS, len(names)))]
            found = pipeline.drive(server, streams)
            have = count
            if found.units >= 10_000:
                curve.add(count, "create (growing to it)", found)
            rng = random.Random(count)
            others = rng.sample(range(10_000_000), 8 * 5000)
            pairs = [[pipeline.create(f"/parent/x{n:07}"), pipeline.delete(f"/parent/x{n:07}")] for n in others]
            curve.add(count, "create and delete", pipeline.drive(server, shares(pairs), seconds=options.seconds), 2)
            owned = [[[pipeline.set_data(f"/parent/n{n:07}", b"")] for n in rng.choices(range(count), k=5000)] for _ in range(8)]
            curve.add(count, "set of a child", pipeline.drive(server, owned, seconds=options.seconds))
            exists = [[(zkwire.request(1, OP.EXISTS, zkwire.read("/parent")), pipeline.HEADER + pipeline.STAT)]]
            curve.add(count, "exists of the parent", pipeline.drive(server, [exists * 1000] * 8, seconds=options.seconds / 2))
            one = [(zkwire.request(1, OP.GET_CHILDREN2, zkwire.read("/parent")), list_length(count))]
            listed = pipeline.drive(server, [[one]], seconds=options.seconds, depth=1)
            curve.add(count, "getChildren2", listed, note=f"{listed.seconds / listed.units * 1e9 / count:.0f} ns a child")
        names = [f"/parent/n{number:07}" for number in range(have)]
        random.Random(2).shuffle(names)
        emptied = pipeline.drive(server, [[[pipeline.delete(name)] for name in part] for part in shares(names)])
        curve.add(have, "delete (emptying it)", emptied)
    return curve.rows


def list_length(count):
    return pipeline.HEADER + 4 + count * (4 + len("n0000000")) + pipeline.STAT


def watches(options, disk):
    """So many data watches of one connection; reads and writes of znodes that nobody watches."""
    curve, tree, have = Curve("watches"), pipeline.Tree(SIZE), 0
    with running(QUENDA, disk) as server:
        most = sizes(options, 2, 6, 5)[-1]
        tree.grow(works.bench, server, most)
        watched = list(tree.all())[:most]
        tree.grow(works.bench, server, most + 10_000)
        tree.roots = tree.roots[1:]
        paths = picked(tree)
        holders = []
        for count in [0, *sizes(options, 2, 6, 5)]:
            if count > have:
                units = [[pipeline.get(path, SIZE, watch=True)] for path in watched[have:count]]
                found, conns = pipeline.drive(server, [units], keep=True)
                holders += conns
                if found.units >= 10_000:
                    curve.add(count, "get with a watch", found)
                have = count
            load(curve, max(count, 1), server, paths, options.seconds, f"{settled_bytes(server.pid) >> 20} MiB resident")
            for conn in holders:
                conn.call(OP.PING, xid=zkwire.PING_XID)
        for conn in holders:
            conn.close()
    return curve.rows


def sessions(options, disk):
    """So many connected sessions that do nothing but ping."""
    curve, tree = Curve("sessions"), pipeline.Tree(SIZE)
    with running(QUENDA, disk) as server:
        tree.grow(works.bench, server, 10_000)
        paths = picked(tree)
        for count in sizes(options, 1, 4, 3):
            with idle_sessions(server, count):
                load(curve, count, server, paths, options.seconds, f"{settled_bytes(server.pid) >> 20} MiB resident")
    return curve.rows


class idle_sessions:
    """Holds sessions that `quenda bench sessions` opens."""

    def __init__(self, server, count):
        line = [str(quenda_binary()), "bench", "sessions", "--hosts", server.hosts, "--connections", str(count),
                "--duration", "600"]
        self.process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        for line in self.process.stderr:
            if line.startswith("holding "):
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return self
        raise RuntimeError("the sessions were not opened")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def members(options, disk):
    curve = Curve("members")
    for count in (1, 3) if options.quick else (1, 3, 5):
        with running(QUENDA, disk, count) as server:
            for work in ("get", "set", "create"):
                report = works.bench(server, work, "--size", SIZE, "--duration", options.seconds * 2, "--warmup", 1,
                                     "--connections", 15, "--depth", 64)
                curve.put(count, work, report["operations_per_second"], report["server"]["cpu_us_per_operation"])
    return curve.rows


def sizes(options, low, high, quick):
    """Powers of ten from the one to the other."""
    return [10**power for power in range(low, (quick if options.quick else high) + 1)]


CURVES = {"znodes": znodes, "children": children, "watches": watches, "sessions": sessions, "members": members}
LABELS = {
    "znodes": "znodes", "children": "children of one parent", "watches": "watches on other znodes",
    "sessions": "idle sessions, connected", "members": "members on this machine",
}
NOT_DRAWN = ("getChildren2", "exists of the parent", "fill (create)")


def present(rows):
    """Markdown of all curves; draws them."""
    parts = []
    for name, label in LABELS.items():
        own = [row for row in rows if row[0] == name]
        if not own:
            continue
        operations = list(dict.fromkeys(row[2] for row in own))
        drawn = [op for op in operations if op not in NOT_DRAWN and sum(row[2] == op for row in own) > 1]
        series = [chart.Series(op, [(int(row[1]), float(row[4])) for row in own if row[2] == op]) for op in drawn]
        chart.lines(document.FOLDER / f"growth-{name}.svg", f"Processor time of an operation against the number of {label}",
                    label, "µs of the server's processor time", series, x_log=name != "members")
        values = list(dict.fromkeys(int(row[1]) for row in own))
        body = [[op, *[cell(own, op, x) for x in values]] for op in operations]
        parts.append(f"### Number of {label}\n\n![{label}](performance/growth-{name}.svg)\n")
        parts.append(document.table(["thousand a second / CPU µs each", *map(chart.short, values)], body) + "\n")
    return "\n".join(parts)


def cell(rows, operation, x):
    for row in rows:
        if row[2] == operation and int(row[1]) == x:
            return f"{document.number(float(row[3]) / 1000)} / {document.number(float(row[4]))}"
    return ""


def main():
    steps = [Step(name, function) for name, function in CURVES.items()]
    command("growth", __doc__, steps, HEADER, present, lambda options: 1.0 if options.quick else 2.0)


if __name__ == "__main__":
    main()
