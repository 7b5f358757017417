"""A pytest plugin that writes node id → outcome, one JSON line each, to the file that QUENDA_OUTCOMES names."""

import json
import os


def pytest_runtest_logreport(report):
    # A call that passed counts; what fails or skips in set-up or tear-down counts as that.
    if report.when == "call" or not report.passed:
        with open(os.environ["QUENDA_OUTCOMES"], "a", encoding="utf-8") as file:
            file.write(json.dumps([report.nodeid, report.outcome]) + "\n")
