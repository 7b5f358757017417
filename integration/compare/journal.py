"""What a run has found so far: a line of JSON for each figure taken, so that an interrupted run loses nothing."""

import json


class Journal:
    """The first line says what was run where, each further one what one work found on one server in one round."""

    def __init__(self, path, head=None):
        """With `head` a new one begins in place of the old."""
        self.path = path
        if head is not None:
            self.path.write_text(json.dumps(head) + "\n")
        lines = [json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")]
        self.head, self.results = lines[0], lines[1:]

    def add(self, result):
        self.results.append(result)
        with self.path.open("a") as file:
            file.write(json.dumps(result) + "\n")

    def has(self, number, kind, work):
        """Whether that has been measured; what failed has not."""
        return any((r["round"], r["server"], r["work"]) == (number, kind, work) and "figures" in r for r in self.results)

    @property
    def figures(self):
        return [result for result in self.results if "figures" in result]

    @property
    def failures(self):
        """Those that no later attempt has made good."""
        failed = [result for result in self.results if "failed" in result]
        return [r for r in failed if not self.has(r["round"], r["server"], r["work"])]
