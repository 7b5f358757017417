"""What a client or an application did against Quenda: one record a run, kept for the table in docs/compat.md.

A suite calls `record` once it knows its counts. Nothing is written unless QUENDA_COMPAT_RECORD is set (as `make compat`
and `make NAME` of one suite do), so that a test run leaves the checkout as it was.
"""

import json
import os
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "compat/results"
FIELDS = ("client", "version", "ran", "members", "command", "passed", "failed", "left_out", "why")


def record(key, *, client, version, ran, members, command, passed, failed, left_out=0, why=""):
    """Keeps one line of the table.

    `key` names the file and sorts the lines (`go-zk-3`); `client` and `version` are what a user would call it; `ran` says
    in a few words what was run; `members` is 1 or 3; `command` is the make target; `passed`, `failed` and `left_out` count
    tests (or steps of a scenario); `why` says why the left out ones are, with the file that lists them.
    """
    line = dict(zip(FIELDS, (client, version, ran, members, command, passed, failed, left_out, why), strict=True))
    print(f"compat {key}: " + json.dumps(line, ensure_ascii=False), flush=True)
    print(f"{passed} passed, {failed} failed, {left_out} skipped", flush=True)
    if os.environ.get("QUENDA_COMPAT_RECORD"):
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{key}.json").write_text(json.dumps(line, indent=1, ensure_ascii=False) + "\n")
