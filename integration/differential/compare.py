"""Compares packets of two servers, zxids and session ids up to renaming, times by their relations.

zxids: those of transactions (write replies, events, Stat) are paired one to one, order kept. The last applied
zxid that read replies carry is compared by its rank among the paired ones, because the servers need not spend
zxids on exactly the same mishaps (for example requests that do not decode).
"""

import bisect
import itertools
import time

from integration.differential import ops

STAT_ZXIDS = ("czxid", "mzxid", "pzxid")
STAT_TIMES = ("ctime", "mtime")
STAT_PLAIN = ("version", "cversion", "aversion", "dataLength", "numChildren")
CLOCK_SLACK_MS = 10_000
# Failures that come before a write is ordered; their zxid is the last applied one.
UNORDERED_ERRORS = {-5, -6, -112}


class Renaming:
    """What is known of how the left server's zxids and session ids map to the right one's."""

    def __init__(self):
        self.left = []
        self.right = []
        self.seen = [0, 0]
        self.sessions = ({0: 0}, {0: 0})
        self.times = ({}, {})
        self.started_ms = time.time() * 1000 - CLOCK_SLACK_MS

    def recent(self, side, back):
        """The zxid `back` places from the latest paired one, on side 0 or 1."""
        known = self.right if side else self.left
        return known[-1 - back] if back < len(known) else 0

    def transaction(self, left, right, newest=False):
        """Pairs two zxids of a transaction; the text of a contradiction or None."""
        if left <= 0 or right <= 0:
            return None if left == right else f"zxid {left} | {right}"
        at = bisect.bisect_left(self.left, left)
        if at < len(self.left) and self.left[at] == left:
            if self.right[at] != right:
                return f"zxid {left} was paired with {self.right[at]}, now {right}"
            return None
        if bisect.bisect_left(self.right, right) != at or right in self.right[at:at + 1]:
            return f"zxid {left} is new at rank {at}, {right} is not"
        for side, zxid in enumerate((left, right)):
            if newest and zxid <= self.seen[side]:
                return f"zxid of a new write {left} | {right} is not above the last {self.seen}"
        self.left.insert(at, left)
        self.right.insert(at, right)
        self._saw(left, right)
        return None

    def last_applied(self, left, right):
        if left <= 0 or right <= 0:
            return None if left == right else f"last zxid {left} | {right}"
        for side, zxid in enumerate((left, right)):
            if zxid < self.seen[side]:
                return f"last zxid {left} | {right} is below one already seen {self.seen}"
        ranks = bisect.bisect_right(self.left, left), bisect.bisect_right(self.right, right)
        self._saw(left, right)
        return None if ranks[0] == ranks[1] else f"last zxid {left} | {right} has rank {ranks[0]} | {ranks[1]}"

    def _saw(self, left, right):
        self.seen = [max(self.seen[0], left), max(self.seen[1], right)]

    def session(self, left, right):
        if self.sessions[0].get(left, right) != right or self.sessions[1].get(right, left) != left:
            return f"session {left:#x} | {right:#x} contradicts an earlier pairing"
        self.sessions[0][left] = right
        self.sessions[1][right] = left
        return None

    def stat(self, left, right):
        found = [self.transaction(left[name], right[name]) for name in STAT_ZXIDS]
        found = [f"{name}: {text}" for name, text in zip(STAT_ZXIDS, found) if text]
        found += [f"{name}: {left[name]} | {right[name]}" for name in STAT_PLAIN if left[name] != right[name]]
        owner = self.session(left["ephemeralOwner"], right["ephemeralOwner"])
        return found + ([f"ephemeralOwner: {owner}"] if owner else []) + self._stat_times(left, right)

    def _stat_times(self, left, right):
        found = []
        for name in STAT_TIMES:
            if (left[name] == 0) != (right[name] == 0):
                found.append(f"{name}: {left[name]} | {right[name]}")
        for side, stat in enumerate((left, right)):
            found += [f"{text} ({'right' if side else 'left'})" for text in self._one_stat_times(side, stat)]
        return found

    def _one_stat_times(self, side, stat):
        """Contradictions inside one server: two times for one transaction, times out of this run."""
        known = self.times[side]
        for zxid, moment in ((stat["czxid"], stat["ctime"]), (stat["mzxid"], stat["mtime"])):
            if known.setdefault(zxid, moment) != moment:
                yield f"time of zxid {zxid}: {known[zxid]}, then {moment}"
            if moment and not self.started_ms < moment < time.time() * 1000 + CLOCK_SLACK_MS:
                yield f"time {moment} lies outside this run"


def compare_packets(names, left, right):
    """The differences between two packets as texts; empty when they agree."""
    if left["kind"] != right["kind"]:
        return [f"kind: {left['kind']} | {right['kind']}"]
    if left["kind"] == "connect":
        return compare_connects(names, left, right)
    if left["kind"] in ("reply", "event"):
        return compare_answers(names, left, right)
    if left["kind"] == "text" and left["text"] != right["text"]:
        return [f"text: {left['text']} | {right['text']}"]
    if left["kind"] in ("silent", "undecodable"):
        return [f"{left['kind']} on both: {left} | {right}"]
    return []


def compare_connects(names, left, right):
    found = [f"{name}: {left[name]} | {right[name]}" for name in ("protocolVersion", "timeOut", "readOnly")
             if left[name] != right[name]]
    for name in ("sessionId", "passwd"):
        shape = [len(p[name]) if name == "passwd" else 0 for p in (left, right)]
        zero = [not any(p[name]) if name == "passwd" else p[name] == 0 for p in (left, right)]
        if shape[0] != shape[1] or zero[0] != zero[1]:
            found.append(f"{name}: {left[name]} | {right[name]}")
    if left.get("rest") != right.get("rest"):
        found.append(f"bytes behind: {left.get('rest')} | {right.get('rest')}")
    pairing = names.session(left["sessionId"], right["sessionId"])
    return found + ([pairing] if pairing else [])


def compare_answers(names, left, right):
    found = [f"{name}: {left[name]} | {right[name]}" for name in ("xid", "err") if left[name] != right[name]]
    if found:
        return found
    zxid = compare_header_zxids(names, left, right)
    found = [f"header {zxid}"] if zxid else []
    # Java sends the results it had when a multiRead failed to decode; clients ignore a body behind an error.
    if left.get("rest") != right.get("rest") and not (left["err"] and left.get("op") == ops.MULTI_READ):
        found.append(f"bytes behind: {left.get('rest')} | {right.get('rest')}")
    for side, packet in enumerate((left, right)):
        if packet["kind"] == "reply" and newest_zxid(packet["body"]) > packet["zxid"]:
            found.append(f"header zxid {packet['zxid']} is older than what the body shows ({'right' if side else 'left'})")
    return found + compare_values(names, "", left["body"], right["body"])


def newest_zxid(body):
    """The highest zxid in a reply's body; -1 when there is none, as in the reply to an unknown operation."""
    if isinstance(body, dict):
        if "czxid" in body:
            return max(body[name] for name in STAT_ZXIDS)
        return max((newest_zxid(inner) for inner in body.values()), default=-1)
    if isinstance(body, list):
        return max((newest_zxid(inner) for inner in body), default=-1)
    return -1


def compare_header_zxids(names, left, right):
    if left["kind"] == "event":
        return names.transaction(left["zxid"], right["zxid"])
    if left["op"] in ops.WRITES and left["err"] not in UNORDERED_ERRORS:
        return names.transaction(left["zxid"], right["zxid"], newest=True)
    return names.last_applied(left["zxid"], right["zxid"])


def with_identities_sorted(acl):
    """An entry of scheme auth becomes one entry for each identity of its author; Java takes them in hash order."""
    ordered = []
    for _, group in itertools.groupby(acl, key=lambda entry: (entry["perms"], entry["scheme"] == "digest")):
        group = list(group)
        ordered += sorted(group, key=lambda e: e["id"] or "") if group[0]["scheme"] == "digest" else group
    return ordered


UNORDERED = {"children", "ephemerals", "clientInfo"}


def compare_values(names, where, left, right):
    if isinstance(left, dict) and isinstance(right, dict):
        if "czxid" in left and "czxid" in right:
            return [f"{where}{text}" for text in names.stat(left, right)]
        if set(left) != set(right):
            return [f"{where}fields {sorted(left)} | {sorted(right)}"]
        return [text for key in left for text in compare_values(names, f"{where}{key} ", left[key], right[key])]
    if isinstance(left, list) and isinstance(right, list):
        if where.split()[-1] in UNORDERED:
            left, right = sorted(left, key=repr), sorted(right, key=repr)
        if where.split()[-1] == "acl":
            left, right = with_identities_sorted(left), with_identities_sorted(right)
        if len(left) != len(right):
            return [f"{where}: {left} | {right}"]
        return [text for at, pair in enumerate(zip(left, right))
                for text in compare_values(names, f"{where}[{at}] ", *pair)]
    return [] if left == right else [f"{where}: {left!r} | {right!r}"]


def without_replies_after_close(packets):
    kept, closing = [], False
    for packet in packets:
        if not (closing and packet["kind"] == "reply"):
            kept.append(packet)
        closing = closing or (packet["kind"] == "reply" and packet["op"] == ops.CLOSE_SESSION)
    return kept


def in_comparable_order(packets, any_order_zxids):
    """Replies of auth and sasl go to the front (they may overtake); events of a session's end are sorted.

    Replies behind that of closeSession are left out: Java answers some requests pipelined behind it with -112 or
    -12 and drops others, as the race goes. That they change nothing is seen by the comparison of the trees.
    """
    packets = without_replies_after_close(packets)
    early = [p for p in packets if p["kind"] == "reply" and p["op"] in (ops.AUTH, ops.SASL)]
    rest = [p for p in packets if not (p["kind"] == "reply" and p["op"] in (ops.AUTH, ops.SASL))]
    ordered = []
    run = []
    for packet in [*rest, None]:
        loose = packet is not None and packet["kind"] == "event" and any_order_zxids(packet["zxid"])
        if run and (not loose or run[0]["zxid"] != packet["zxid"]):
            ordered += sorted(run, key=lambda p: (p["body"]["path"] or "", p["body"]["type"]))
            run = []
        if loose:
            run.append(packet)
        elif packet is not None:
            ordered.append(packet)
    return early + ordered
