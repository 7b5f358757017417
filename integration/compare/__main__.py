"""Entry point of `integration/compare/run`."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

from integration.compare import page, table, works
from integration.compare.journal import Journal
from integration.compare.servers import KINDS, cache_dir, describe, disk_for, raise_file_limit, running
from integration.lib.process import ServerError


def arguments():
    groups = ", ".join(f"{group} ({','.join(work.name for work in of)})" for group, of in works.GROUPS.items())
    parser = argparse.ArgumentParser(prog="integration/compare/run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round, a twentieth of the znodes, a tenth of the sessions")
    parser.add_argument("--members", type=int, default=1, help="of each ensemble; what restarts a server only if it is one")
    parser.add_argument("--rounds", type=int, help="default 3, of the filling of many znodes 1; quick 1 of all")
    parser.add_argument("--only", default=",".join(works.GROUPS), help=f"groups or works, separated by commas: {groups}")
    parser.add_argument("--servers", default=",".join(KINDS), help="some of them alone (default %(default)s)")
    parser.add_argument("--data", type=pathlib.Path, default=cache_dir() / "compare",
                        help="folder on a disk for the data directories and the journal (default %(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on with the run before: measure what it lacks")
    parser.add_argument("--report", action="store_true", help="measure nothing: show what the run before has found")
    parser.add_argument("--write", action="store_true", help="write tables and pictures of docs/performance.md")
    parser.add_argument("--json", type=pathlib.Path, help="where the JSON goes (default last.json in that folder)")
    parser.add_argument("--check", action="store_true", help="fail when a least target is missed")
    options = parser.parse_args()
    options.only = [work for word in options.only.split(",")
                    for work in ([w.name for w in works.GROUPS[word]] if word in works.GROUPS else [word])]
    options.servers = options.servers.split(",")
    for given, known in ((options.only, works.names()), (options.servers, KINDS)):
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


def new_head(options, scale, disk, file_system):
    return {"date": datetime.date.today().isoformat(), "members": options.members, "quick": options.quick,
            "machine": machine(disk, file_system), "scale": vars(scale),
            "servers": {kind: describe(kind, options.members) for kind in KINDS}}


def measure(options, scale, disk, journal):
    """All rounds; the order of the servers changes, so that a drift of the machine hits all alike."""
    for number in range(options.rounds or (1 if options.quick else 3)):
        for group, group_works in works.GROUPS.items():
            if group in works.ONCE and number > 0 and options.rounds is None:
                continue
            servers = [kind for kind in KINDS if kind in options.servers]
            for kind in servers if number % 2 == 0 else reversed(servers):
                wanted = [work for work in group_works if work.name in options.only and kind in work.servers
                          and (work.ensembles or options.members == 1) and not journal.has(number, kind, work.name)]
                if wanted:
                    measure_group(options, kind, wanted, scale, disk, number, journal, warm=group not in works.COLD)


def measure_group(options, kind, wanted, scale, disk, number, journal, warm):
    """A failure costs one work, or the rest of the group if the server is gone."""
    failed = None
    with running(kind, disk, options.members) as server:
        if warm:
            works.warm_up(server, scale)
        for work in wanted:
            result = {"round": number, "server": kind, "work": work.name}
            start = time.monotonic()
            if server.alive():
                try:
                    result["figures"] = work.measure(kind, server, scale)
                except (ServerError, OSError, TimeoutError) as error:
                    failed = str(error)
            if "figures" not in result:
                result["failed"] = failed or "the server has ended"
            journal.add(result)
            shown = ", ".join(f"{key} {table.number(value)}" for key, value in result.get("figures", {}).items())
            print(f"round {number + 1} {kind:9} {work.name:16} {time.monotonic() - start:5.1f} s: "
                  f"{shown or 'FAILED: ' + result['failed']}", file=sys.stderr, flush=True)


def main():
    options = arguments()
    # The context managers end the servers; a plain SIGTERM would leave them behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("ended by a signal"))
    raise_file_limit()
    disk, file_system = disk_for(options.data)
    scale = works.Scale.quick() if options.quick else works.Scale()
    path = disk / f"journal-{options.members}{'-quick' if options.quick else ''}.jsonl"
    go_on = (options.resume or options.report) and path.exists()
    journal = Journal(path, None if go_on else new_head(options, scale, disk, file_system))
    host = journal.head["machine"]
    print(f"data directories below {disk} ({file_system}), {host['processors']} processors, load "
          f"{host['load_at_start']:.1f}; {host['java']}")
    for kind in options.servers:
        print(f"{kind}: {journal.head['servers'][kind]}")
    if not options.report:
        try:
            measure(options, scale, disk, journal)
        except (ServerError, KeyboardInterrupt) as error:
            sys.exit(f"compare: {error or 'interrupted'}; --resume goes on with {path}")
    lines = table.evaluate(journal.figures)
    print()
    print(table.render(lines))
    report = {**journal.head, "rows": lines, "results": journal.figures}
    target = options.json or disk / "last.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{target}")
    if options.write:
        page.write(journal.head, journal.figures)
    for failure in journal.failures:
        print(f"FAILED: round {failure['round'] + 1} {failure['server']} {failure['work']}: {failure['failed'][-600:]}")
    if journal.failures:
        sys.exit(f"compare: {len(journal.failures)} works failed; --resume measures them again")
    if options.check and any(line["least_reached"] is False for line in lines):
        sys.exit("compare: a least target is missed")


main()
