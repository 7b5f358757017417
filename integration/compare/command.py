"""The command line that the measurements beside `compare` have in common.

A measurement is made in steps, so that one of them can be taken again alone. With --write each step's rows replace those
of the step before in docs/performance/NAME.csv, and the part of docs/performance.md that belongs to it is written anew
from all rows of that file, those of earlier runs included.
"""

import argparse
import contextlib
import csv
import dataclasses
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from integration.compare import document
from integration.compare.servers import cache_dir, disk_for, raise_file_limit
from integration.lib.quenda_server import QuendaServer


@dataclasses.dataclass(frozen=True)
class Step:
    """`measure(options, disk)` returns rows; the first cell of each is the step's name."""

    name: str
    measure: object


def command(name, words, steps, header, present, seconds):
    """Runs the steps that are asked for. `present(rows)` is the Markdown; `seconds(options)` the default of --seconds."""
    names = [step.name for step in steps]
    parser = argparse.ArgumentParser(prog=f"integration/compare/run-{name}", description=words)
    parser.add_argument("--quick", action="store_true", help="smaller and shorter, for a look while developing")
    parser.add_argument("--only", default=",".join(names), help=f"steps to make: {','.join(names)}")
    parser.add_argument("--seconds", type=float, help="length of each measurement")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/performance.md and beside it")
    parser.add_argument("--data", type=pathlib.Path, default=cache_dir() / "compare",
                        help="folder on a disk for the data directories (default %(default)s)")
    options = parser.parse_args()
    only = options.only.split(",")
    if unknown := set(only) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    options.seconds = options.seconds or seconds(options)
    # The context managers end the servers; a plain SIGTERM would leave them behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("ended by a signal"))
    raise_file_limit()
    disk, file_system = disk_for(options.data)
    print(f"data directories below {disk} ({file_system}), {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
    rows = known(name, header) if options.write else []
    for step in steps:
        if step.name not in only:
            continue
        start = time.monotonic()
        found = [[str(cell) for cell in row] for row in step.measure(options, disk)]
        print(f"{step.name}: {time.monotonic() - start:.0f} s", flush=True)
        rows = [row for row in rows if row[0] != step.name] + found
        rows.sort(key=lambda row: names.index(row[0]))
        if options.write:
            document.write_csv(name, header, rows)
    if options.write:
        document.replace(name, present(rows))
    else:
        for row in rows:
            print("  ".join(row))


def known(name, header):
    """The rows of earlier runs."""
    path = document.FOLDER / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        first, *rows = csv.reader(file)
    return rows if first == list(header) else []


@contextlib.contextmanager
def scratch(disk, name):
    """A folder on that disk that is gone afterwards."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=disk))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def quenda(disk, cfg=None):
    """One started member with these settings; killed and its directory removed at the end."""
    with scratch(disk, "quenda") as folder, QuendaServer(folder, extra_cfg=cfg) as server:
        yield server
