"""The tests that are not run, with the reason of each, and the tables of README.md that come of them.

`left_out.txt` has lines `Class  # KIND: reason` and `Class#method  # KIND: reason`; `left_out_3.txt` has those that are
left out with three members only, in the same form. KIND is a key of KINDS.
"""

import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {
    "client": "A Java class of the client, or of both sides, by itself: no server takes part.",
    "server": "Java classes of the server by themselves: request processors, trees, trackers, parsers, listeners, counters.",
    "jvm": "Takes hold of objects of a server within the JVM: looks into them, sets their fields, makes them fail.",
    "jmx": "Looks at the beans of a server within the JVM.",
    "files": "Reads, damages or counts the Java server's snapshots, transaction logs and epoch files.",
    "zab": "Speaks ZooKeeper's own bytes between members: elections and Zab.",
    "plugin": "Needs a Java class of its own within the server.",
    "admin": "The admin HTTP server, which Quenda does not have.",
    "kerberos": "Kerberos, which Quenda does not have.",
    "feature": "Something else that Quenda does not have, or not yet.",
    "wanted": "A difference that is meant: docs/compat.md, docs/configuration.md, docs/operating.md.",
    "single": "With three members: expects what only a server that runs alone answers.",
    "same": "Runs other classes of the list again, or is the base of such.",
    "fails": "Fails with ZooKeeper's own server here as well, or is disabled.",
}
BEGIN, END = "<!-- counts: begin -->\n", "<!-- counts: end -->"


def read(file, tests):
    """Name → reason."""
    found = {}
    for number, line in enumerate((HERE / file).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, reason = line.partition("  # ")
        name, where = name.strip(), f"{file}:{number}"
        if not separator or reason.split(":")[0] not in KINDS or ": " not in reason:
            sys.exit(f"{where}: want `Class[#method]  # KIND: reason`, KIND one of {', '.join(KINDS)}")
        owner, _, method = name.partition("#")
        if owner not in tests or (method and method not in tests[owner]):
            sys.exit(f"{where}: there is no test {name}")
        if name in found or owner in found:
            sys.exit(f"{where}: {name} stands twice")
        found[name] = reason
    return found


def entries(members, tests):
    """What is left out with so many members."""
    found = read("left_out.txt", tests)
    if members == 3:
        more = read("left_out_3.txt", tests)
        twice = [name for name in more if name in found or name.partition("#")[0] in found]
        if twice:
            sys.exit(f"left_out_3.txt: left out already: {' '.join(twice)}")
        found.update(more)
    return found


def count(found, tests):
    """How many test methods that is."""
    return sum(1 if "#" in name else len(tests[name]) for name in found)


def tables(tests):
    """The tables of README.md."""
    one = entries(1, tests)
    total = sum(map(len, tests.values()))
    out = count(one, tests)
    whole = sum(1 for name in one if "#" not in name)
    running = sum(
        1
        for name, methods in tests.items()
        if name not in one and any(f"{name}#{method}" not in one for method in methods)
    )
    lines = [
        "| test methods in | classes | methods |",
        "|---|---|---|",
        f"| the tests jar of ZooKeeper | {len(tests)} | {total} |",
        f"| run | {running} | {total - out} |",
        "",
        "Parameters multiply some of them: a run counts each call, and the table of docs/compat.md says how many passed.",
        "",
        "What is not run, by reason:",
        "",
        "| reason | | whole classes | methods, all |",
        "|---|---|---|---|",
    ]
    kinds = collections.defaultdict(list)
    for name, reason in one.items():
        kinds[reason.split(":")[0]].append(name)
    for kind, text in KINDS.items():
        names = kinds[kind]
        if not names:
            continue
        classes = sum(1 for name in names if "#" not in name)
        methods = count(names, tests)
        lines.append(f"| `{kind}` | {text} | {classes} | {methods} |")
    lines.append(f"| | | {whole} | {out} |")
    return "\n".join(lines) + "\n"


def write_readme(tests):
    """Puts the tables anew between their marks."""
    path = HERE / "README.md"
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(before + BEGIN + tables(tests) + END + after)
