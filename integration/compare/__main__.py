"""Entry point of `integration/compare/run`."""

import argparse
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

from integration.compare import table, works
from integration.compare.servers import KINDS, cache_dir, describe, disk_for, raise_file_limit, running
from integration.lib.process import ServerError


def arguments():
    parser = argparse.ArgumentParser(prog="integration/compare/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, a tenth of the znodes and sessions")
    parser.add_argument("--members", type=int, default=1, help="of each ensemble; only load works if several")
    parser.add_argument("--rounds", type=int, help="rounds of the load works (default 3, quick 1)")
    parser.add_argument("--only", default=",".join(works.WORKS), help=f"works to do: {','.join(works.WORKS)}")
    parser.add_argument("--servers", default=",".join(KINDS), help="measure one of them alone")
    parser.add_argument("--data", type=pathlib.Path, default=cache_dir() / "compare",
                        help="folder on a disk for the data directories and the JSON (default %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="where the JSON goes (default last.json in that folder)")
    parser.add_argument("--check", action="store_true", help="fail when a least target is missed")
    options = parser.parse_args()
    options.only, options.servers = options.only.split(","), options.servers.split(",")
    if options.members > 1:
        options.only = [work for work in options.only if work in works.GROUPS["load"] or work not in works.WORKS]
    for given, known in ((options.only, works.WORKS), (options.servers, KINDS)):
        unknown = set(given) - set(known)
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return options


def machine(disk, kind):
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return {
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "java": java[0] if java else "none",
        "data": str(disk),
        "file_system": kind,
        "load_at_start": os.getloadavg()[0],
    }


def measure(options, scale, disk):
    """All rounds; the order of the servers alternates, so that a drift of the machine hits both alike."""
    results = []
    rounds = options.rounds or (1 if options.quick else 3)
    for number in range(rounds):
        for group, group_works in works.GROUPS.items():
            # Filling a million znodes takes longest and varies least: once is enough unless rounds are asked for.
            wanted = [name for name in group_works if name in options.only]
            if not wanted or (group != "load" and number > 0 and options.rounds is None):
                continue
            servers = [kind for kind in KINDS if kind in options.servers]
            for kind in servers if number % 2 == 0 else reversed(servers):
                results += measure_group(options, kind, wanted, group_works, scale, disk, number)
    return results


def measure_group(options, kind, wanted, group_works, scale, disk, number):
    results = []
    with running(kind, disk, options.members) as server:
        for name in wanted:
            start = time.monotonic()
            figures = group_works[name](kind, server, scale)
            results.append({"round": number, "server": kind, "work": name, "figures": figures})
            shown = ", ".join(f"{key} {table.number(value)}" for key, value in figures.items())
            print(f"round {number + 1} {kind:9} {name:8} {time.monotonic() - start:5.1f} s: {shown}", file=sys.stderr)
    return results


def main():
    options = arguments()
    # The context managers end the servers; a plain SIGTERM would leave them behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("ended by a signal"))
    raise_file_limit()
    disk, file_system = disk_for(options.data)
    scale = works.Scale.quick() if options.quick else works.Scale()
    host = machine(disk, file_system)
    print(f"data directories below {disk} ({file_system}), {host['processors']} processors, load "
          f"{host['load_at_start']:.1f}; {host['java']}")
    for kind in options.servers:
        print(f"{kind}: {describe(kind, options.members)}")
    try:
        results = measure(options, scale, disk)
    except ServerError as error:
        sys.exit(f"compare: {error}")
    lines = table.evaluate(results)
    print()
    print(table.render(lines))
    report = {"machine": host, "scale": vars(scale), "rows": lines, "results": results}
    target = options.json or disk / "last.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{target}")
    if options.check and any(line["least_reached"] is False for line in lines):
        sys.exit("compare: a least target is missed")


main()
