"""A member with an empty disk is filled while the leader is written to."""

import argparse
import json
import multiprocessing
import pathlib
import statistics
import sys
import time

from integration.compare import works
from integration.compare.servers import QUENDA, ZOOKEEPER, cache_dir, describe, disk_for, raise_file_limit, running
from integration.lib.zkwire import OP, Conn, read, set_data

MEMBERS = 3
CALM_SECONDS = 15.0
VALUE = b"v" * 1024
LONGEST_SECONDS = 900


def write_until(host, port, ended, results):
    """One client, one request at a time: (start, seconds) of each write. In a process of its own, so that nothing
    else delays it."""
    found = []
    with Conn(port, host=host, wait=120.0) as conn:
        while not ended.is_set():
            start = time.monotonic()
            conn.call(OP.SET_DATA, set_data("/probe", VALUE)).ok()
            found.append((start, time.monotonic() - start))
    results.put(found)


def read_until(host, port, ended, results):
    found = []
    with Conn(port, host=host, wait=120.0) as conn:
        while not ended.is_set():
            start = time.monotonic()
            conn.call(OP.GET_DATA, read("/probe")).ok()
            found.append((start, time.monotonic() - start))
            time.sleep(0.001)
    results.put(found)


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def figures(found, begin, end):
    taken = [took * 1e3 for start, took in found if begin <= start < end]
    return {"count": len(taken), "p50_ms": statistics.median(taken), "p99_ms": quantile(taken, 0.99),
            "p99_9_ms": quantile(taken, 0.999), "max_ms": max(taken)}


def measure(kind, disk, znodes):
    with running(kind, disk, MEMBERS) as server:
        ensemble = server.ensemble
        folders = -(-znodes // 1000)
        options = ["--root", works.LOAD_ROOT, "--keep", "--size", works.NODE_DATA, "--duration", 1800]
        works.bench(server, "create", "--requests", znodes + folders, *options)
        with ensemble.leader().connect(wait=60.0) as conn:
            conn.create("/probe", VALUE)
            conn.sync("/")
        leader = ensemble.leader()
        empty = ensemble.followers()[0]
        context = multiprocessing.get_context("fork")
        ended, writes, reads = context.Event(), context.Queue(), context.Queue()
        probes = [context.Process(target=function, args=(leader.host, leader.port, ended, queue))
                  for function, queue in ((write_until, writes), (read_until, reads))]
        for probe in probes:
            probe.start()
        try:
            time.sleep(2.0)
            empty.kill9()
            empty.wipe()
            calm = time.monotonic()
            time.sleep(CALM_SECONDS)
            start = time.monotonic()
            empty.spawn()
            empty.wait_serving(LONGEST_SECONDS)
            filled = time.monotonic()
            with empty.connect_soon(wait=60.0) as conn:
                conn.sync("/")
                count = int(empty.srvr(10.0)["Node count"])
                assert count >= znodes, f"only {count} znodes"
            same_leader = ensemble.leader() is leader
        finally:
            ended.set()
        written, seen = writes.get(timeout=60), reads.get(timeout=60)
        for probe in probes:
            probe.join()
    return {
        "znodes": znodes, "seconds": filled - start, "leader_stayed": same_leader,
        "writes_before": figures(written, calm, start), "writes_during": figures(written, start, filled),
        "reads_before": figures(seen, calm, start), "reads_during": figures(seen, start, filled),
    }


def main():
    parser = argparse.ArgumentParser(prog="integration/compare/run-snapshot", description=__doc__)
    parser.add_argument("--znodes", type=int, default=1_000_000)
    parser.add_argument("--servers", default=f"{ZOOKEEPER},{QUENDA}")
    parser.add_argument("--data", type=pathlib.Path, default=cache_dir() / "compare")
    options = parser.parse_args()
    raise_file_limit()
    disk, kind_of_disk = disk_for(options.data)
    print(f"data directories below {disk} ({kind_of_disk})")
    results = {}
    for kind in options.servers.split(","):
        print(f"{kind}: {describe(kind, MEMBERS)}", flush=True)
        results[kind] = found = measure(kind, disk, options.znodes)
        stayed = "the leader stayed" if found["leader_stayed"] else "the leader CHANGED"
        print(f"  {found['znodes']} znodes into an empty member: {found['seconds']:.1f} s until it serves; {stayed}")
        for what in ("writes", "reads"):
            for when in ("before", "during"):
                shown = ", ".join(f"{key} {value:.2f}" for key, value in found[f"{what}_{when}"].items())
                print(f"  {what} on the leader {when}: {shown}", flush=True)
    (disk / "snapshot.json").write_text(json.dumps(results, indent=1) + "\n")
    print(disk / "snapshot.json")


if __name__ == "__main__":
    sys.exit(main())
