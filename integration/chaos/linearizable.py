"""Decides whether a history of one register can be put into one order that respects real time.

Every operation takes effect at one moment between its start and its end. An operation of unknown fate (its connection
broke) may take effect at any moment after its start, or never. The search follows the history in time: at each end
of an operation it keeps every way in which the operations that were under way can have taken effect, with the state
of the register that this leaves. No way left: not linearizable.

The register is a znode: a write makes version + 1, a conditional write wants a version.
"""

import dataclasses
import math

READ, WRITE, CAS = "read", "write", "cas"
# What an operation came to: done, refused (a CAS whose version did not fit), or not known.
OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"
# No real history of the tests comes near; a search that does has gone astray and must not pass for a proof.
MOST_WAYS = 200_000


@dataclasses.dataclass(frozen=True)
class Operation:
    """`version`: of a read and a write the one that was answered, of a CAS the one it wanted."""

    client: str
    kind: str
    outcome: str
    start: float
    end: float
    value: bytes | None = None
    version: int | None = None

    def __str__(self):
        end = "…" if self.end == math.inf else f"{self.end:.3f}"
        return f"[{self.start:.3f} {end}] {self.client} {self.kind} {self.value} version {self.version} {self.outcome}"


class TooManyWays(Exception):
    """The history leaves so much open that the search does not end."""


def step(state, operation):
    """The state behind the operation; None where it cannot have taken effect as it was answered."""
    version, value = state
    if operation.kind == READ:
        return state if (operation.version, operation.value) == state else None
    if operation.kind == WRITE:
        if operation.outcome == OK and operation.version != version + 1:
            return None
        return version + 1, operation.value
    fits = operation.version == version
    if operation.outcome == REFUSED:
        return None if fits else state
    return (version + 1, operation.value) if fits else None


def is_silent(operation):
    """Whether taking effect changes nothing, so that the earliest moment is as good as any."""
    return operation.kind == READ or operation.outcome == REFUSED


class Search:
    """The ways so far: each is a state and the operations under way that have taken effect already."""

    def __init__(self, operations, initial):
        self.operations = operations
        self.ways = {(initial, frozenset())}
        self.open = []
        values_read = {operation.value for operation in operations if operation.kind == READ}
        # Writes of unknown fate whose value nobody has read cannot be told apart: the first of them stands for all.
        self.alike = {
            index for index, operation in enumerate(operations)
            if operation.kind == WRITE and operation.outcome == UNKNOWN and operation.value not in values_read
        }

    def begin(self, index):
        self.open.append(index)

    def end(self, index):
        """Keeps the ways in which the operation has taken effect; whether there are any."""
        kept = set()
        seen = set()
        stack = list(self.ways)
        while stack:
            way = stack.pop()
            if way in seen:
                continue
            seen.add(way)
            if len(seen) > MOST_WAYS:
                raise TooManyWays()
            state, done = way
            if index in done:
                kept.add((state, done - {index}))
                continue
            stack.extend(self._further(state, done))
        self.open.remove(index)
        self.ways = kept
        return bool(kept)

    def _further(self, state, done):
        """The ways one operation further; a silent one that fits is taken first and alone."""
        ways = []
        taken_alike = False
        for index in self.open:
            if index in done:
                continue
            if index in self.alike:
                if taken_alike:
                    continue
                taken_alike = True
            operation = self.operations[index]
            behind = step(state, operation)
            if behind is None:
                continue
            if is_silent(operation):
                return [(state, done | {index})]
            ways.append((behind, done | {index}))
        return ways


def explain(history, initial=(0, b"")):
    """None when the history is linearizable; else what could not be placed, with what went on at that time."""
    operations = sorted(
        (operation for operation in history if operation.outcome != UNKNOWN or operation.kind != READ),
        key=lambda operation: operation.start,
    )
    moments = []
    for index, operation in enumerate(operations):
        moments.append((operation.start, 0, index))
        if operation.outcome != UNKNOWN:
            moments.append((operation.end, 1, index))
    search = Search(operations, initial)
    for time, is_end, index in sorted(moments):
        if not is_end:
            search.begin(index)
            continue
        before = search.ways
        if not search.end(index):
            around = [other for other in operations if other.start <= time and other.end >= operations[index].start - 1]
            states = sorted({state for state, _ in before})[:5]
            return "\n  ".join([f"cannot be: {operations[index]}", f"possible before: {states}", *map(str, around)])
    return None
