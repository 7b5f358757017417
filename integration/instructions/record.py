"""What is recorded, and what differs from it."""

import collections

from .callgrind import Counts

# Parts of the recorded number by which one may differ. Builds with the same compiler differ by less than a thousandth.
TOLERANCE = 0.03
# The same with another compiler than the record was made with, which optimises in other ways.
TOLERANCE_OTHER_COMPILER = 0.15
# Allocations that may come on top; some vectors grow with what was there before.
ALLOCATIONS_TOLERANCE = 0.05

Row = collections.namedtuple("Row", "name recorded measured verdict")

SLOWER, ALLOCATES, FASTER, NEW, GONE, SAME = "slower", "allocates more", "faster", "not recorded", "is gone", ""


def read(text):
    """(Compiler, {name: Counts})."""
    compiler, counts = "", {}
    for line in text.splitlines():
        if line.startswith("# compiler: "):
            compiler = line.removeprefix("# compiler: ")
        elif line and not line.startswith("#"):
            name, instructions, allocations = line.split("\t")
            counts[name] = Counts(float(instructions), float(allocations))
    return compiler, counts


def write(compiler, counts):
    """The text of a record."""
    lines = [
        "# Instructions and allocations an operation; written by `make instructions-record`.",
        f"# compiler: {compiler}",
        "# work\tinstructions\tallocations",
    ]
    lines += [f"{name}\t{count.instructions:.0f}\t{count.allocations:.2f}" for name, count in counts.items()]
    return "\n".join(lines) + "\n"


def compare(recorded, measured, tolerance):
    """A row for each piece of work."""
    rows = []
    for name in list(recorded) + [name for name in measured if name not in recorded]:
        before, now = recorded.get(name), measured.get(name)
        rows.append(Row(name, before, now, _verdict(before, now, tolerance)))
    return rows


def _verdict(before, now, tolerance):
    if before is None:
        return NEW
    if now is None:
        return GONE
    if now.instructions > before.instructions * (1 + tolerance):
        return SLOWER
    if now.allocations > before.allocations * (1 + tolerance) + ALLOCATIONS_TOLERANCE:
        return ALLOCATES
    if now.instructions < before.instructions * (1 - tolerance):
        return FASTER
    return SAME


def is_fault(verdict):
    """Whether the record must not be left so. What is faster is told, and no fault."""
    return verdict in (SLOWER, ALLOCATES, NEW, GONE)


def table(rows):
    """The rows as text."""
    cells = [("work", "recorded", "measured", "", "allocations", "")]
    for row in rows:
        before, now = row.recorded, row.measured
        change = f"{100 * (now.instructions / before.instructions - 1):+.1f} %" if before and now else ""
        cells.append((
            row.name, _number(before), _number(now), change, f"{now.allocations:.2f}" if now else "", row.verdict,
        ))
    widths = [max(len(cell) for cell in column) for column in zip(*cells)]
    align = [str.ljust, str.rjust, str.rjust, str.rjust, str.rjust, str.ljust]
    return "\n".join(
        "  ".join(put(cell, width) for put, cell, width in zip(align, line, widths)).rstrip() for line in cells
    )


def _number(counts):
    return f"{counts.instructions:.0f}" if counts else ""
