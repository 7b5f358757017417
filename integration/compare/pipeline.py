"""Load of requests that are made beforehand: sent as whole blocks of bytes, and of the replies only the length is
counted and the error code looked at. That costs the client next to nothing and lets it send what `quenda bench` has no
workload for.

A *unit* is what repeats: one request, or a few that belong together (create and delete of one name). All units of a
stream have the same length, and so have their replies.
"""

import dataclasses
import os
import selectors
import time

from integration.lib import zkwire
from integration.lib.zkwire import OP

STAT = 68
HEADER = 4 + 16
CHUNK = 256 << 10
TICKS = os.sysconf("SC_CLK_TCK")
FIRST_XID = 1


def cpu_seconds(pids):
    """Processor time that these processes have used."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def get(path, size, watch=False):
    """The request and the length of its reply."""
    return zkwire.request(FIRST_XID, OP.GET_DATA, zkwire.read(path, watch)), HEADER + 4 + size + STAT


def set_data(path, data):
    return zkwire.request(FIRST_XID, OP.SET_DATA, zkwire.set_data(path, data)), HEADER + STAT


def create(path, data=b"", flags=0):
    return zkwire.request(FIRST_XID, OP.CREATE, zkwire.create(path, data, flags)), HEADER + 4 + len(path)


def delete(path):
    return zkwire.request(FIRST_XID, OP.DELETE, zkwire.delete(path)), HEADER


@dataclasses.dataclass
class Found:
    units: int
    seconds: float
    cpu_seconds: float

    def rate(self, requests=1):
        return self.units * requests / self.seconds

    def cpu_us(self, requests=1):
        return self.cpu_seconds * 1e6 / (self.units * requests)


class RequestFailed(Exception):
    """A reply with an error code."""


class Stream:
    """One connection and what it sends, from the first unit to the last, and again from the first if it `repeats`."""

    def __init__(self, server, units, depth, repeats):
        self.requests = memoryview(b"".join(request for unit in units for request, _ in unit))
        self.unit = sum(len(request) for request, _ in units[0])
        self.replies = [length for _, length in units[0]]
        self.reply = sum(self.replies)
        if len(self.requests) != self.unit * len(units):
            raise ValueError("the units differ in length")
        self.limit = None if repeats else len(units)
        self.depth = depth
        self.sent = self.received = 0
        self.conn = server if isinstance(server, zkwire.Conn) else connect(server)
        self.conn.sock.setblocking(False)
        self.buffer = memoryview(bytearray(CHUNK))

    @property
    def answered(self):
        return self.received // self.reply

    @property
    def in_flight(self):
        return self.received < self.sent // self.unit * self.reply or self.sent % self.unit != 0

    def wants_to_send(self, stopping):
        if self.sent % self.unit:
            return True
        begun = self.sent // self.unit
        return not stopping and begun != self.limit and begun < self.answered + self.depth

    def send(self, stopping):
        until = (self.sent // self.unit + 1 if stopping else self.answered + self.depth) * self.unit
        if self.limit is not None:
            until = min(until, self.limit * self.unit)
        at = self.sent % len(self.requests)
        until = min(until - self.sent, len(self.requests) - at, CHUNK)
        try:
            self.sent += self.conn.sock.send(self.requests[at : at + until])
        except BlockingIOError:
            pass

    def receive(self):
        try:
            count = self.conn.sock.recv_into(self.buffer)
        except BlockingIOError:
            return
        if count == 0:
            raise zkwire.Closed("the server closed the connection")
        piece = self.buffer[:count]
        # The lowest byte of the error code of each reply in it: no code has a zero there.
        begin = 0
        for length in self.replies:
            first = (begin + HEADER - 1 - self.received) % self.reply
            if any(piece[first :: self.reply]):
                raise RequestFailed(f"a request failed near reply {self.answered}")
            begin += length
        self.received += count


def connect(server):
    host, _, port = server.hosts.split(",")[0].rpartition(":")
    return zkwire.Conn(int(port), host=host, timeout=40000, wait=60.0)


def drive(server, streams, pids=None, seconds=None, depth=64, keep=False):
    """Sends each list of units over a connection of its own, for `seconds` from the first again and again, or once.
    `keep` leaves the connections open and returns them too."""
    opened = [Stream(server, units, depth, seconds is not None) for units in streams]
    pids = server.pids if pids is None else pids
    with selectors.DefaultSelector() as selector:
        for stream in opened:
            selector.register(stream.conn.sock, selectors.EVENT_READ | selectors.EVENT_WRITE, stream)
        before, start = cpu_seconds(pids), time.monotonic()
        run(selector, opened, None if seconds is None else start + seconds)
        found = Found(sum(stream.answered for stream in opened), time.monotonic() - start, cpu_seconds(pids) - before)
    for stream in opened:
        stream.conn.sock.setblocking(True)
        if not keep:
            stream.conn.close()
    return (found, [stream.conn for stream in opened]) if keep else found


def run(selector, opened, until):
    while True:
        stopping = until is not None and time.monotonic() >= until
        busy = False
        for stream in opened:
            wants = stream.wants_to_send(stopping)
            busy |= wants or stream.in_flight
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wants else 0)
            key = selector.get_key(stream.conn.sock)
            if key.events != events:
                selector.modify(stream.conn.sock, events, stream)
        if not busy:
            return
        for key, events in selector.select(30.0):
            if events & selectors.EVENT_READ:
                key.data.receive()
            if events & selectors.EVENT_WRITE:
                key.data.send(stopping)


class Tree:
    """Znodes that `quenda bench create --keep` has made below several roots, and how to find them again."""

    FOLDER = 1000
    CONNECTIONS = 8

    def __init__(self, size=100):
        self.size = size
        self.roots = []
        self.count = 0

    def grow(self, bench, server, count):
        """Until there are that many."""
        root = f"/g{len(self.roots)}"
        children = -(-(count - self.count) // self.CONNECTIONS)
        share = children + -(-children // self.FOLDER)
        report = bench(server, "create", "--connections", self.CONNECTIONS, "--requests", share * self.CONNECTIONS, "--root",
                       root, "--keep", "--size", self.size, "--duration", 3600)
        self.roots.append((root, share))
        self.count = count
        return report

    def pick(self, random, count):
        """Paths of that many of them, each as likely as any other; all of one length."""
        weights = [share for _, share in self.roots]
        paths = []
        while len(paths) < count:
            root, share = random.choices(self.roots, weights)[0]
            at = random.randrange(share)
            folder, child = divmod(at, self.FOLDER + 1)
            if child:
                paths.append(f"{root}/c{random.randrange(self.CONNECTIONS)}-{folder:06}/n{child:04}")
        return paths

    def all(self):
        for root, share in self.roots:
            for connection in range(self.CONNECTIONS):
                for at in range(share):
                    folder, child = divmod(at, self.FOLDER + 1)
                    if child:
                        yield f"{root}/c{connection}-{folder:06}/n{child:04}"
