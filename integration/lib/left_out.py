"""Tests that are not counted: `name  # reason` a line, in a file beside the suite.

A suite still runs them where that is quick, and says of one that passes that its entry is stale. Where the reason begins
with "by chance" the test passes at times and fails at times, so that nothing follows from one run.
"""

import pathlib

BY_CHANCE = "by chance"


class LeftOut:
    """The entries of one file; one that is not there has none."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.reasons = {}
        for number, line in enumerate(self.path.read_text().splitlines() if self.path.exists() else (), 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, separator, reason = line.partition("  # ")
            if not separator or not reason.strip():
                raise ValueError(f"{self.path.name}:{number}: want `test  # reason`")
            self.reasons[name.strip()] = reason.strip()

    def __contains__(self, name):
        return name in self.reasons

    def __len__(self):
        return len(self.reasons)

    def stale(self, outcomes):
        """Entries whose test has passed in `outcomes` (name → "passed", …) and those whose test is gone."""
        return [name for name, reason in self.reasons.items()
                if not reason.startswith(BY_CHANCE) and outcomes.get(name, "passed") == "passed"]
