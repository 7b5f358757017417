"""The tests that are not run, with the reason of each, and the tables of README.md that come of them.

`left_out.txt` has lines `Class  # reason` and `Class#method  # reason`; `left_out_3.txt` has those that need a single
server, in the same form. The first word of a reason is one of KINDS.
"""

import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {
    "client": "tests a Java class of the client or of both sides by itself, without a server",
    "server": "tests Java classes of the server by themselves",
}
BEGIN, END = "<!-- counts: begin -->", "<!-- counts: end -->"


def read(file, tests):
    """Name → reason."""
    found = {}
    path = HERE / file
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else (), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, reason = line.partition("  # ")
        name = name.strip()
        where = f"{file}:{number}"
        if not separator or reason.split(":")[0] not in KINDS:
            sys.exit(f"{where}: want `Class[#method]  # KIND: reason`, KIND one of {', '.join(KINDS)}")
        owner, _, method = name.partition("#")
        if owner not in tests or (method and method not in tests[owner]):
            sys.exit(f"{where}: there is no test {name}")
        if name in found or owner in found:
            sys.exit(f"{where}: {name} stands twice")
        found[name] = reason
    return found


def entries(members, tests):
    found = read("left_out.txt", tests)
    if members == 3:
        found.update(read("left_out_3.txt", tests))
    return found


def count(found, tests):
    return sum(1 if "#" in name else len(tests[name]) for name in found)


def write_readme(tests):
    raise NotImplementedError
