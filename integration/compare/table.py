"""The figures of all rounds as rows: medians, ratio, and whether the targets are reached."""

import dataclasses
import statistics

from integration.compare import cells
from integration.compare.servers import ETCD, QUENDA, ZOOKEEPER

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Row:
    """One line. `least` and `goal` bound the ratio Quenda/ZooKeeper: from below if more is better, else from above;
    with `absolute` they bound Quenda's own figure. The goal is the design's, the least is what a release needs."""

    work: str
    figure: str
    title: str
    unit: str
    scale: float = 1.0
    more_is_better: bool = False
    least: float | None = None
    goal: float | None = None
    absolute: bool = False


def load_rows(work, title, least=None, goal=None, cpu_goal=None, p99_goal=None):
    more = {"more_is_better": True}
    return [
        Row(work, "throughput", title, "a second", least=least, goal=goal, **more),
        Row(work, "per_cpu_second", f"{title}: for a CPU second", "", goal=cpu_goal, **more),
        Row(work, "cpu_us", f"{title}: CPU", "µs each"),
        Row(work, "p50", f"{title}: p50", "µs"),
        Row(work, "p99", f"{title}: p99", "µs", goal=p99_goal),
        Row(work, "p99_9", f"{title}: p99.9", "µs"),
        Row(work, "resident", f"{title}: resident", "MiB", scale=1 / MIB),
    ]


# The bounds of those loads that have some.
BOUNDS = {
    "get": {"least": 6, "goal": 6, "cpu_goal": 8},
    "set": {"least": 3, "goal": 4},
    "mix": {"least": 4, "goal": 5},
    "sync": {"goal": 1, "p99_goal": 0.5},
}


def watch_rows(work, watchers, goal=None):
    title = f"one change, {watchers}: last event"
    return [
        Row(work, "last_event_p50", f"{title}, p50", "ms", scale=1e-3, goal=goal),
        Row(work, "last_event_p99", f"{title}, p99", "ms", scale=1e-3),
        Row(work, "cpu_us", f"{title}: CPU", "µs an event"),
        Row(work, "resident", f"{title}: resident", "MiB", scale=1 / MIB),
    ]


ROWS = [
    *(row for group in cells.GROUPS.values() for cell in group
      for row in load_rows(cell.name, cell.title, **BOUNDS.get(cell.name, {}))),
    *watch_rows("watch1", "1 watcher"),
    *watch_rows("watch", "1 000 watchers", goal=0.2),
    *watch_rows("watch10000", "10 000 watchers"),
    Row("sessions", "opened_a_second", "sessions opened", "a second", more_is_better=True),
    Row("sessions", "closed_a_second", "sessions closed", "a second", more_is_better=True),
    Row("sessions", "cpu_us", "a session opened and closed: CPU", "µs"),
    Row("sessions", "open_p50", "a session opened: p50", "ms", scale=1e-3),
    Row("sessions", "open_p99", "a session opened: p99", "ms", scale=1e-3),
    Row("sessions", "bytes_a_session", "idle sessions: resident", "KiB each", scale=1 / 1024, goal=8, absolute=True),
    Row("memory", "create_throughput", "create 100 B, 8 × 64", "a second", more_is_better=True),
    Row("memory", "resident", "many znodes: resident", "MiB", scale=1 / MIB, least=0.25, goal=0.25),
    Row("memory", "resident_collected", "many znodes: resident after a full collection", "MiB", scale=1 / MIB),
    Row("memory", "peak", "many znodes: peak", "MiB", scale=1 / MIB),
    Row("memory", "bytes_a_node", "many znodes: beyond data and name", "bytes each", goal=250, absolute=True),
    Row("memory", "restart", "many znodes: restart to first reply", "s", least=0.25, goal=0.25),
    Row("memory", "restart_after_kill", "many znodes: the same after kill -9", "s"),
    Row("memory", "resident_after_restart", "many znodes: resident after a restart", "MiB", scale=1 / MIB),
    Row("memory", "disk", "many znodes: on disk", "MiB", scale=1 / MIB),
]


def values(results, kind, work, figure):
    """That figure in every round."""
    return [r["figures"][figure] for r in results if (r["server"], r["work"]) == (kind, work) and figure in r["figures"]]


def median(results, kind, row):
    found = values(results, kind, row.work, row.figure)
    return statistics.median(found) * row.scale if found else None


def reached(row, bound, quenda, ratio):
    """Whether the bound holds; None when there is none or nothing to compare with."""
    value = quenda if row.absolute else ratio
    if bound is None or value is None:
        return None
    return value >= bound if row.more_is_better else value <= bound


def evaluate(results):
    """One dictionary for each row that has a figure."""
    lines = []
    for row in ROWS:
        theirs, ours, other = (median(results, kind, row) for kind in (ZOOKEEPER, QUENDA, ETCD))
        if theirs is None and ours is None and other is None:
            continue
        ratio = ours / theirs if theirs and ours is not None else None
        lines.append({
            "work": row.work, "figure": row.figure, "title": row.title, "unit": row.unit,
            "zookeeper": theirs, "etcd": other, "quenda": ours, "ratio": ratio,
            "least": row.least, "goal": row.goal, "absolute": row.absolute, "more_is_better": row.more_is_better,
            "least_reached": reached(row, row.least, ours, ratio),
            "goal_reached": reached(row, row.goal, ours, ratio),
        })
    return lines


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def verdict(line):
    parts = []
    for name in ("least", "goal"):
        if line[name] is None:
            continue
        sign = "≥" if line["more_is_better"] else "≤"
        mark = {True: "reached", False: "MISSED", None: "open"}[line[f"{name}_reached"]]
        times = line["unit"].split()[0] if line["absolute"] else "×"
        parts.append(f"{name} {sign} {line[name]:g} {times}: {mark}")
    return "; ".join(parts)


def render(lines):
    header = ("", "ZooKeeper", "etcd", "Quenda", "unit", "ratio", "targets")
    body = [(x["title"], number(x["zookeeper"]), number(x["etcd"]), number(x["quenda"]), x["unit"],
             number(x["ratio"]) + (" ×" if x["ratio"] is not None else ""), verdict(x)) for x in lines]
    widths = [max(len(row[column]) for row in [header, *body]) for column in range(len(header))]
    text = []
    for row in [header, *body]:
        padded = [row[0].ljust(widths[0]), *(row[column].rjust(widths[column]) for column in (1, 2, 3)),
                  row[4].ljust(widths[4]), row[5].rjust(widths[5]), row[6]]
        text.append("  ".join(padded).rstrip())
    return "\n".join(text)
