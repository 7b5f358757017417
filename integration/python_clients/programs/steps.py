"""Steps of a program that integration/lib/asked.py plays; for any Python from 3.6 on."""

import sys
import time
import traceback

PATIENCE_SECONDS = 30

failures = []


def told(name, run):
    """Runs a step and tells how it went."""
    try:
        run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next step runs
        traceback.print_exc()
        failures.append(name)
        print("FAILED {}: {} {}".format(name, type(error).__name__, str(error).replace("\n", " ")), flush=True)
    else:
        print("ok " + name, flush=True)


def ask(action):
    print("? " + action, flush=True)
    if sys.stdin.readline() != "done\n":
        raise RuntimeError("no answer to " + action)


def eventually(condition, what):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError("never: " + what)
        time.sleep(0.02)
