"""Differences from Apache ZooKeeper 3.9 that are wanted, each with its reason. WANTED.md tells them in prose."""

from integration.differential import ops


class Rule:
    """A wanted difference: `test(step, left, right)` recognises it in one pair of packets, left being genuine."""

    def __init__(self, name, reason, test):
        self.name, self.reason, self.test = name, reason, test

    def applies(self, step, left, right):
        return self.test(step, left, right)


def delete_container_refused(_step, left, right):
    return (left["kind"] == right["kind"] == "reply" and left["op"] == right["op"] == ops.DELETE_CONTAINER
            and left["xid"] == right["xid"] and left["err"] in (-101, -111, -8) and right["err"] == -8)


RULES = [
    Rule(
        "deleteContainer is refused",
        "ZooKeeper 3.9 lets any client delete any childless node with it, without a permission check",
        delete_container_refused,
    ),
]
