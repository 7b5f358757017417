"""A run's part of docs/performance.md, and the CSV and the pictures beside it."""

import statistics

from integration.compare import cells, document, dots, table
from integration.compare.servers import ETCD, KINDS, QUENDA, TITLES, ZOOKEEPER

ORDER = (ZOOKEEPER, ETCD, QUENDA)
FIGURES = ("throughput", "cpu_us", "client_cpu_us", "p50", "p99", "p99_9", "resident")
UNITS = {"throughput": "per_second", "cpu_us": "server_cpu_us", "p50": "p50_us", "p99": "p99_us", "p99_9": "p99_9_us",
         "resident": "resident_bytes"}
PICTURES = {
    "throughput": "Operations a second, as a multiple of ZooKeeper's",
    "cpu_us": "Server CPU for an operation, as a part of ZooKeeper's",
    "p99": "p99 of the latency, as a part of ZooKeeper's",
}


def write(head, results):
    """All of it, from what the rounds have found."""
    members = head["members"]
    name = f"compare-{members}"
    lines = table.evaluate(results)
    write_csv(name, results)
    parts = [preface(head, results), goals(lines)]
    for figure, title in PICTURES.items():
        rows = ratios(results, figure)
        if rows:
            dots.write(document.FOLDER / f"{name}-{figure.replace('_us', '')}.svg", title, rows)
            parts.append(f"![{title}](performance/{name}-{figure.replace('_us', '')}.svg)")
    for group in cells.GROUPS:
        parts += group_tables(results, group)
    parts += [other_table(lines), f"All figures, with the least and the greatest of the rounds: [{name}.csv](performance/{name}.csv)."]
    document.replace(f"compare {members}", "\n\n".join(part for part in parts if part))


def preface(head, results):
    rounds = max((result["round"] for result in results), default=0) + 1
    machine = head["machine"]
    rows = [f"Medians of {rounds} rounds in which the servers take turns; {head['date']}, {machine['processors']} processors, Linux "
            f"{machine['kernel']}, {machine['file_system']}, {machine['java']}.", ""]
    return "\n".join([*rows, *(f"- {head['servers'][kind]}" for kind in ORDER if kind in head["servers"])])


def goals(lines):
    rows = []
    for line in lines:
        if line["goal"] is None:
            continue
        sign = "≥" if line["more_is_better"] else "≤"
        unit = line["unit"] or "operations"
        ours = f"{table.number(line['quenda'])} {unit}"
        if line["absolute"]:
            goal, measured = f"{sign} {line['goal']:g} {unit}", ours
        else:
            goal = f"{sign} {line['goal']:g} × ZooKeeper"
            measured = f"{table.number(line['ratio'])} × ({ours}, ZooKeeper {table.number(line['zookeeper'])})"
        met = {True: "yes", False: "**no**", None: "not measured"}[line["goal_reached"]]
        rows.append((f"{line['title']}: {goal}", measured, met))
    return document_table(("goal", "measured", "met"), rows, numbers=False)


def document_table(header, rows, numbers=True):
    if not rows:
        return ""
    if numbers:
        return document.table(header, rows)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells_) + " |" for cells_ in lines)


def middle(results, kind, work, figure):
    found = table.values(results, kind, work, figure)
    return statistics.median(found) if found else None


def ratios(results, figure):
    """(title, {server: ratio to ZooKeeper's}) of every load that ZooKeeper was under; None between two groups."""
    rows = []
    for group in cells.GROUPS.values():
        before = len(rows)
        for cell in group:
            base = middle(results, ZOOKEEPER, cell.name, figure)
            found = {kind: middle(results, kind, cell.name, figure) for kind in (ETCD, QUENDA)}
            found = {TITLES[kind]: value / base for kind, value in found.items() if base and value}
            if found:
                rows.append((cell.title, found))
        if len(rows) > before:
            rows.append(None)
    return rows[:-1]


def group_tables(results, group):
    """Throughput with CPU, and latencies, of one group of loads."""
    speed, latency = [], []
    for cell in cells.GROUPS[group]:
        def of(kind, figure, scale=1.0):
            value = middle(results, kind, cell.name, figure)
            return None if value is None else value * scale

        if all(of(kind, "throughput") is None for kind in KINDS):
            continue
        base, ours = of(ZOOKEEPER, "throughput"), of(QUENDA, "throughput")
        ratio = f"{table.number(ours / base)} ×" if base and ours else "–"
        speed.append([cell.title, *(table.number(of(kind, "throughput")) for kind in ORDER), ratio,
                      *(table.number(of(kind, "cpu_us")) for kind in ORDER),
                      *(table.number(of(kind, "resident", 1 / table.MIB)) for kind in ORDER)])
        latency.append([cell.title, *(" / ".join(table.number(of(kind, figure, 1e-3)) for figure in ("p50", "p99", "p99_9"))
                                      if of(kind, "p50") is not None else "–" for kind in ORDER)])
    if not speed:
        return []
    names = [TITLES[kind] for kind in ORDER]
    wide = ["", *(f"{name}, a second" for name in names), "Quenda / ZooKeeper", *(f"{name}, CPU µs" for name in names),
            *(f"{name}, MiB" for name in names)]
    return [f"**{cells.TITLES[group]}**", document.table(wide, speed),
            document.table(["p50 / p99 / p99.9, ms", *names], latency)]


def other_table(lines):
    rows = [(line["title"], *(table.number(line[kind]) for kind in ORDER), line["unit"]) for line in lines
            if line["work"].startswith("watch") or line["work"] in ("sessions", "memory")]
    body = document_table(("", *(TITLES[kind] for kind in ORDER), "unit"), rows)
    return body and f"**Watches, sessions, memory, start**\n\n{body}"


def write_csv(name, results):
    """A line for each work and server: what it was, medians, least and greatest throughput."""
    settings = {cell.name: cell for group in cells.GROUPS.values() for cell in group}
    header = ["work", "title", "workload", "connections", "depth", "bytes", "server", "rounds",
              *(UNITS.get(figure, figure) for figure in FIGURES), "least_per_second", "greatest_per_second"]
    rows = []
    for work, cell in settings.items():
        for kind in ORDER:
            found = table.values(results, kind, work, "throughput")
            if not found:
                continue
            figures = [f"{middle(results, kind, work, figure):.6g}" for figure in FIGURES]
            rows.append([work, cell.title, cell.workload, cell.connections, cell.depth, cell.size, kind, len(found), *figures,
                         f"{min(found):.6g}", f"{max(found):.6g}"])
    document.write_csv(name, header, rows)
    others = [result for result in results if result["work"] not in settings]
    seen = sorted({(r["work"], figure) for r in others for figure in r["figures"]})
    rows = []
    for work, figure in seen:
        for kind in ORDER:
            found = table.values(others, kind, work, figure)
            if found:
                rows.append([work, figure, kind, len(found), *(f"{f(found):.6g}" for f in (statistics.median, min, max))])
    document.write_csv(f"{name}-others", ["work", "figure", "server", "rounds", "median", "least", "greatest"], rows)
