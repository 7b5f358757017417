"""Which loads are measured.

Every combination of work, size, connections and depth would take days. These are chosen so that each value of each of them
is there at least once beside a cell that differs from it in that value alone: the works at 1 KB on 16 connections with 16
requests in flight each, the sizes on the same connections, the connections with get and set of 1 KB.
"""

import dataclasses

from integration.compare.servers import ETCD, KINDS

KB = 1024


@dataclasses.dataclass(frozen=True)
class Cell:
    """One load. `workload` is that of `quenda bench` and of etcd's load program; `options` are further ones of both.
    `servers` are those that have such a thing."""

    name: str
    workload: str
    title: str
    connections: int = 16
    depth: int = 16
    size: int = KB
    options: tuple = ()
    servers: tuple = KINDS

    def arguments(self):
        return ["--connections", self.connections, "--depth", self.depth, "--size", self.size, *self.options]


def mix(percent, size, **settings):
    words = {100: "100 B", KB: "1 KB", 64 * KB: "64 KB"}[size]
    name = f"mix{percent}-{words.replace(' ', '').lower()}"
    return Cell(name, "mixed", f"{percent}/{100 - percent} mix, {words}", size=size,
                options=("--read-ratio", percent / 100), **settings)


def over_connections(workload):
    """1, 16, 256 and 2000 connections, one request at a time or sixteen."""
    for connections, depth in ((1, 16), (16, 1), (256, 1), (256, 16), (2000, 1)):
        yield Cell(f"{workload}-{connections}x{depth}", workload, f"{workload}, {connections} × {depth}", connections, depth)


KEEP = ("--keep",)
NOT_ETCD = tuple(kind for kind in KINDS if kind != ETCD)
# What design and releases are held to: eight connections with 64 requests in flight, and one client that waits each time.
PIPELINED = [
    Cell("get", "get", "get 1 KB, 8 × 64", 8, 64),
    Cell("set", "set", "set 1 KB, 8 × 64", 8, 64),
    Cell("mix", "mixed", "70/30 mix 1 KB, 8 × 64", 8, 64, options=("--read-ratio", 0.7)),
    Cell("sync", "set", "set, one synchronous client", 1, 1),
    Cell("sync-get", "get", "get, one synchronous client", 1, 1),
]
WORKS = [
    Cell("get-16x16", "get", "get"),
    Cell("get-linearizable", "get-linearizable", "get, linearizable", servers=(ETCD,)),
    Cell("exists", "exists", "exists"),
    Cell("children", "children", "getChildren2 of 100"),
    Cell("set-16x16", "set", "set"),
    Cell("check-set", "check-set", "multi: check and set"),
    Cell("create-delete", "create-delete", "create and delete by turns"),
    Cell("create", "create", "create", options=KEEP),
    Cell("sequential", "sequential", "create, sequential", options=KEEP, servers=NOT_ETCD),
]
SIZES = [
    Cell("get-100b", "get", "get, 100 B", size=100),
    Cell("set-100b", "set", "set, 100 B", size=100),
    *(mix(percent, size) for size in (100, KB, 64 * KB) for percent in (70, 90)),
    Cell("get-64kb", "get", "get, 64 KB", size=64 * KB),
    Cell("set-64kb", "set", "set, 64 KB", size=64 * KB),
]
CONNECTIONS = [*over_connections("get"), *over_connections("set"),
               dataclasses.replace(mix(90, KB), name="mix90-256x16", title="90/10 mix, 256 × 16", connections=256)]
# Cells of one group share a server.
GROUPS = {"pipelined": PIPELINED, "works": WORKS, "sizes": SIZES, "connections": CONNECTIONS}
TITLES = {
    "pipelined": "Pipelined, and one client that waits",
    "works": "Each kind of request (1 KB, 16 connections × 16 in flight)",
    "sizes": "Sizes and mixes (16 × 16)",
    "connections": "Connections × requests in flight (1 KB)",
}
