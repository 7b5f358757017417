"""The C client's own tests (zktest-mt, zktest-st), unmodified. Suites run side by side: mostly they sleep."""

import concurrent.futures
import re

SLOWEST = "Zookeeper_simpleSystem"
AT_ONCE = 6


def suites(client):
    """Suite → its tests, in the order of the sources. What the preprocessor leaves out is among them."""
    found = {}
    for source in sorted((client / "tests").glob("Test*.cc")):
        current = None
        for line in source.read_text("utf-8", "replace").splitlines():
            if match := re.search(r"CPPUNIT_TEST_SUITE\((\w+)\)", line):
                current = found.setdefault(match[1], [])
            elif current is not None and (match := re.match(r"\s*CPPUNIT_TEST\((\w+)\)", line)):
                current.append(match[1])
    return found


def run(bench, wanted=()):
    """Name → outcome of all tests of both programs; `wanted` chooses suites. Each test has a process and servers of its
    own, since one that aborts takes those behind it along."""
    jobs = [(bench, kind, suite, test) for suite, tests in suites(bench.client).items() for kind in ("mt", "st")
            for test in tests if not wanted or suite in wanted]
    jobs.sort(key=lambda job: job[2] != SLOWEST)
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for found in pool.map(lambda job: run_test(*job), jobs):
            outcomes.update(found)
    return outcomes


def run_test(bench, kind, suite, test):
    name = f"{suite}::{test}"
    status, text = bench.run(f"{kind}-{suite}-{test}", bench.client / f"zktest-{kind}", name)
    if "ERROR: No test named" in text:
        return {}  # for threads only, or without them only
    return {f"{kind} {key}": outcome for key, outcome in judge(status, text, suite, [test]).items()}


def judge(status, text, suite, tests):
    """Test → outcome. Each test's name is followed, maybe lines further, by how it ended."""
    names = "|".join(sorted(map(re.escape, tests), key=len, reverse=True))
    pieces = re.split(rf"{suite}::({names})", text)[1:]
    found = {test: "passed" if re.search(r" : OK$", said, re.MULTILINE) else "failed"
             for test, said in zip(pieces[::2], pieces[1::2], strict=True)}
    if status != 0:
        print(f"--- {suite} ended with {status}\n{interesting(text)}", flush=True)
        for test in tests:
            found.setdefault(test, "failed")  # not reached
    return {f"{suite}::{test}": outcome for test, outcome in found.items()}


def interesting(text):
    """Without the client's log."""
    lines = [line for line in text.splitlines() if not line.startswith("Log Message Received") and line != "]"]
    return "\n".join(lines[-40:])
