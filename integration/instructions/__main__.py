"""Counts the instructions of fixed work with callgrind and compares them with what is recorded.

  integration/instructions/run                 all work; fails if something takes more than recorded
  integration/instructions/run --record        writes the record anew (`make instructions-record`)
  integration/instructions/run --only 'exists' one piece of work
  integration/instructions/run --keep FILE     writes what was counted to FILE too, in the form of the record

The work is in crates/node/examples/instructions. Counts depend neither on the machine nor on its load, so a difference
comes from the code, or from another compiler.
"""

import argparse
import pathlib
import subprocess
import sys

from . import callgrind, record

RECORD = pathlib.Path(__file__).with_name("recorded.tsv")


def main():
    """Runs it; the exit code."""
    parser = argparse.ArgumentParser(
        prog="integration/instructions/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", action="append", metavar="WORK")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    if options.record and options.only:
        parser.error("a record is made of all work")

    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    measured = callgrind.measure(options.program, options.only)
    if options.keep:
        options.keep.write_text(record.write(compiler, measured), encoding="utf-8")
    known_compiler, recorded = record.read(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else (compiler, {})
    if options.only:
        recorded = {name: counts for name, counts in recorded.items() if name in options.only}
    is_same = compiler == known_compiler
    tolerance = record.TOLERANCE if is_same else record.TOLERANCE_OTHER_COMPILER
    rows = record.compare(recorded, measured, tolerance)
    print(record.table(rows))
    if options.record:
        RECORD.write_text(record.write(compiler, measured), encoding="utf-8")
        print(f"written to {RECORD.name}")
        return 0
    if not is_same:
        print(f"recorded with {known_compiler}, built with {compiler}: {tolerance:.0%} of difference are let pass")
    return verdict(rows)


def verdict(rows):
    """Says what comes of it; the exit code."""
    faults = [row for row in rows if record.is_fault(row.verdict)]
    if any(row.verdict == record.FASTER for row in rows):
        print("Some work takes less than recorded: renew the record with `make instructions-record`, so that it stays so.")
    if not faults:
        return 0
    for row in faults:
        print(f"FAILED {row.name}: {row.verdict}", file=sys.stderr)
    print(
        "If that is meant, record it anew with `make instructions-record` and say in the commit why.\n"
        "Where it comes from: valgrind --tool=callgrind --toggle-collect='*counted_by_callgrind' "
        "target/release/examples/instructions 'WORK', then callgrind_annotate.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
