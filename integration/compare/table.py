"""The figures of all rounds as rows: medians, ratio, and whether the targets are reached."""

import dataclasses
import statistics

from integration.compare.servers import QUENDA, ZOOKEEPER

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


def load_rows(work, title, least, goal, cpu_goal=None):
    more = {"more_is_better": True}
    return [
        Row(work, "throughput", title, "a second", least=least, goal=goal, **more),
        Row(work, "per_cpu_second", f"{title}: for a CPU second", "", goal=cpu_goal, **more),
        Row(work, "cpu_us", f"{title}: CPU", "µs each"),
        Row(work, "p50", f"{title}: p50", "µs"),
        Row(work, "p99", f"{title}: p99", "µs"),
        Row(work, "p99_9", f"{title}: p99.9", "µs"),
        Row(work, "resident", f"{title}: resident", "MiB", scale=1 / MIB),
    ]


ROWS = [
    *load_rows("get", "get 1 KB, pipelined", 6, 6, cpu_goal=8),
    *load_rows("set", "set 1 KB, pipelined", 3, 4),
    *load_rows("mix", "70/30 mix 1 KB, pipelined", 4, 5),
    Row("sync", "throughput", "one synchronous client, set", "a second", more_is_better=True, goal=1),
    Row("sync", "cpu_us", "one synchronous client: CPU", "µs each"),
    Row("sync", "p50", "one synchronous client: p50", "µs"),
    Row("sync", "p99", "one synchronous client: p99", "µs", goal=0.5),
    Row("sync", "p99_9", "one synchronous client: p99.9", "µs"),
    Row("watch", "last_event_p50", "fan-out: last event, p50", "ms", scale=1e-3, goal=0.2),
    Row("watch", "last_event_p99", "fan-out: last event, p99", "ms", scale=1e-3),
    Row("memory", "create_throughput", "create 100 B, pipelined", "a second", more_is_better=True),
    Row("memory", "resident", "many znodes: resident", "MiB", scale=1 / MIB, least=0.25, goal=0.25),
    Row("memory", "resident_collected", "… after a full collection", "MiB", scale=1 / MIB),
    Row("memory", "peak", "many znodes: peak", "MiB", scale=1 / MIB),
    Row("memory", "bytes_a_node", "… beyond data and name", "bytes each", goal=250, absolute=True),
    Row("memory", "restart", "many znodes: restart to first reply", "s", least=0.25, goal=0.25),
    Row("memory", "restart_after_kill", "… after kill -9", "s"),
    Row("memory", "resident_after_restart", "… resident after it", "MiB", scale=1 / MIB),
    Row("memory", "disk", "… on disk", "MiB", scale=1 / MIB),
    Row("sessions", "bytes_a_session", "idle sessions", "KiB each", scale=1 / 1024, goal=8, absolute=True),
    Row("sessions", "opened_a_second", "… opened", "a second", more_is_better=True),
]


def median(results, kind, row):
    values = [r["figures"][row.figure] for r in results if (r["server"], r["work"]) == (kind, row.work)
              and row.figure in r["figures"]]
    return statistics.median(values) * row.scale if values else None


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
        theirs, ours = median(results, ZOOKEEPER, row), median(results, QUENDA, row)
        if theirs is None and ours is None:
            continue
        ratio = ours / theirs if theirs and ours is not None else None
        lines.append({
            "work": row.work, "figure": row.figure, "title": row.title, "unit": row.unit,
            "zookeeper": theirs, "quenda": ours, "ratio": ratio,
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
    header = ("", "ZooKeeper", "Quenda", "unit", "ratio", "targets")
    body = [(x["title"], number(x["zookeeper"]), number(x["quenda"]), x["unit"],
             number(x["ratio"]) + (" ×" if x["ratio"] is not None else ""), verdict(x)) for x in lines]
    widths = [max(len(row[column]) for row in [header, *body]) for column in range(len(header))]
    text = []
    for row in [header, *body]:
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3].ljust(widths[3]),
                 row[4].rjust(widths[4]), row[5]]
        text.append("  ".join(cells).rstrip())
    return "\n".join(text)
