"""The program's commands for operators, run to their end."""

import json
import subprocess
import time

from integration.lib.quenda_server import quenda_binary

SECONDS = 60
DEADLINE = 60.0


class Result:
    """Exit code and both outputs of a command."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    def __repr__(self):
        return f"exit code {self.code}\n{self.out}{self.err}"


def quenda(*args, answer=""):
    """Runs `quenda ARGS` with `answer` as its input."""
    command = [str(quenda_binary()), *map(str, args)]
    done = subprocess.run(command, input=answer, capture_output=True, text=True, timeout=SECONDS, check=False)
    return Result(done)


def status(*addresses):
    """Exit code and report of `quenda status`."""
    result = quenda("status", "--json", "--servers", ",".join(addresses))
    return result.code, json.loads(result.out)


def eventually(condition):
    """Waits until `condition` gives something true, and gives it."""
    deadline = time.monotonic() + DEADLINE
    while not (found := condition()):
        assert time.monotonic() < deadline, "the state that is waited for does not come"
        time.sleep(0.1)
    return found


def until(*addresses, code):
    """The report once `quenda status` ends with this code."""

    def report():
        got, report = status(*addresses)
        return report if got == code else None

    return eventually(report)
