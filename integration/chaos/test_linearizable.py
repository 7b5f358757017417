"""The checker itself: what it must let pass, and what it must not."""

import math
import random

import pytest

from integration.chaos.linearizable import CAS, OK, READ, REFUSED, UNKNOWN, WRITE, Operation, explain


def op(client, kind, start, end, value=None, version=None, outcome=OK):
    return Operation(client, kind, outcome, start, math.inf if outcome == UNKNOWN else end, value, version)


def write(start, end, value, version, client="a"):
    return op(client, WRITE, start, end, value, version)


def lost(start, value, client="a"):
    return op(client, WRITE, start, None, value, None, UNKNOWN)


def read(start, end, value, version, client="b"):
    return op(client, READ, start, end, value, version)


def cas(start, end, value, version, outcome=OK, client="c"):
    return op(client, CAS, start, end, value, version, outcome)


GOOD = {
    "nothing": [],
    "one after the other": [write(0, 1, b"x", 1), read(2, 3, b"x", 1), write(4, 5, b"y", 2), read(6, 7, b"y", 2)],
    "a read under way sees either": [write(0, 9, b"x", 1), read(1, 2, b"", 0), read(3, 4, b"x", 1)],
    "writes under way in any order": [write(0, 9, b"x", 2), write(1, 8, b"y", 1, "c"), read(10, 11, b"x", 2)],
    "unknown and never": [lost(0, b"x"), read(5, 6, b"", 0)],
    "unknown and at once": [lost(0, b"x"), read(5, 6, b"x", 1)],
    "unknown and late": [lost(0, b"x"), read(5, 6, b"", 0), write(7, 8, b"y", 1), read(9, 10, b"x", 2)],
    "unknown, unread, told by the version": [lost(0, b"x"), lost(1, b"z"), write(5, 6, b"y", 3), read(9, 10, b"y", 3)],
    "a refused condition": [write(0, 1, b"x", 1), cas(2, 3, b"y", 0, REFUSED), cas(4, 5, b"z", 1), read(6, 7, b"z", 2)],
    "a condition of unknown fate": [cas(0, None, b"y", 0, UNKNOWN), read(2, 3, b"y", 1)],
    "a refusal that saw a write under way": [write(0, 9, b"x", 1), cas(1, 2, b"y", 0, REFUSED), read(3, 4, b"x", 1)],
}
BAD = {
    "a stale read": [write(0, 1, b"x", 1), write(2, 3, b"y", 2), read(4, 5, b"x", 1)],
    "a lost write": [write(0, 1, b"x", 1), read(2, 3, b"", 0)],
    "a value from nowhere": [read(0, 1, b"z", 1)],
    "an old value comes back": [write(0, 9, b"x", 1), read(1, 2, b"x", 1), read(3, 4, b"", 0, "c")],
    "two readers disagree about the order": [
        write(0, 9, b"x", 1), write(0, 9, b"y", 2, "c"), read(1, 2, b"y", 2), read(3, 4, b"x", 1, "d"),
    ],
    "a version given twice": [write(0, 1, b"x", 1), write(2, 3, b"y", 1)],
    "a version left out": [write(0, 1, b"x", 1), write(2, 3, b"y", 3)],
    "an unknown write twice": [
        lost(0, b"x"), read(1, 2, b"x", 1), write(3, 4, b"y", 2), read(5, 6, b"x", 3),
    ],
    "an unknown write before its start": [read(0, 1, b"x", 1), lost(2, b"x")],
    "a refused condition that has taken effect": [cas(0, 1, b"y", 0, REFUSED), read(2, 3, b"y", 1)],
    "a condition refused that did fit": [write(0, 1, b"x", 1), cas(2, 3, b"y", 1, REFUSED)],
    "two conditions on one version": [cas(0, 5, b"x", 0), cas(1, 6, b"y", 0, client="d")],
    "an unknown write must explain itself": [lost(0, b"x"), read(2, 3, b"x", 2)],
    "a lost write after a leader change": [write(0, 1, b"x", 1), lost(2, b"y"), read(5, 6, b"y", 1)],
}


@pytest.mark.parametrize("name", GOOD)
def test_possible_histories_pass(name):
    assert explain(GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_impossible_histories_are_found(name):
    assert explain(BAD[name]) is not None


def simulated(seed, count=150, clients=5, unknown=0.15):
    """A history of a register that is really one, and the moments at which operations took effect."""
    choose = random.Random(seed)
    events = []
    for client in range(clients):
        at = choose.random()
        for number in range(count // clients):
            start, took = at, choose.random() * 3
            events.append((start + took * choose.random(), start, start + took, client, number))
            at = start + took + choose.random()
    version, value, history = 0, b"", []
    for _, start, end, client, number in sorted(events):
        kind, mine = choose.choice((READ, WRITE, CAS)), b"%d.%d" % (client, number)
        is_lost = choose.random() < unknown
        happens = not is_lost or choose.random() < 0.5
        outcome, shown = (UNKNOWN, None) if is_lost else (OK, version)
        if kind == READ:
            history.append(op(str(client), READ, start, end, value, version, outcome))
            continue
        if kind == CAS:
            wanted = version - choose.choice((0, 0, 1))
            shown = wanted
            if wanted != version:
                happens, outcome = False, outcome if is_lost else REFUSED
        if happens:
            version, value = version + 1, mine
            shown = shown if kind == CAS else version
        history.append(op(str(client), kind, start, end, mine, None if is_lost and kind == WRITE else shown, outcome))
    return history


@pytest.mark.parametrize("seed", range(40))
def test_histories_of_a_real_register_pass_and_damaged_ones_do_not(seed):
    history = simulated(seed)
    assert explain(history) is None
    choose = random.Random(seed)
    reads = [n for n, operation in enumerate(history) if operation.kind == READ and operation.outcome == OK]
    damaged = list(history)
    victim = choose.choice(reads[len(reads) // 2 :])
    # A read that shows what was there long before it began.
    early = history[choose.choice(reads[: len(reads) // 8 + 1])]
    whole = history[victim]
    if early.version >= whole.version:
        raise AssertionError("this seed shows nothing: nothing was written between the two reads")
    damaged[victim] = op(whole.client, READ, whole.start, whole.end, early.value, early.version)
    assert explain(damaged) is not None
