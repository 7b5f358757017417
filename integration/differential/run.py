"""Runs seeds, cuts a failing stream down, and groups what was found."""

import random
import re
import time

from integration.differential import ops, show
from integration.differential.generator import Stream
from integration.differential.pair import Difference

SHRINK_SECONDS = 40.0


class Finding:
    """A difference with the steps that lead to it."""

    def __init__(self, seed, steps, difference):
        self.seed, self.steps, self.difference = seed, steps, difference

    def kind(self):
        """What groups findings: the request or packet concerned and the texts with their numbers gone."""
        packet = next((p for p in self.difference.packets() if p is not None), None)
        subject = self.difference.step["kind"]
        if packet and packet["kind"] == "reply" and packet["op"] is not None:
            subject = ops.name(packet["op"])
        elif packet:
            subject = packet["kind"]
        text = self.difference.texts[0]
        if not text.startswith(("err", "kind")):
            text = re.sub(r"\d+", "N", text.split(":")[0])[:60]
        return f"{subject}: {text}"

    def report(self):
        difference = self.difference
        lines = [f"seed {self.seed}, difference after {len(self.steps)} steps", "  steps:"]
        lines += [f"    {at + 1:3} {show.step(step)}" for at, step in enumerate(self.steps)]
        lines += [f"  seen on slot {difference.slot}, at step: {show.step(difference.step)}"]
        lines += [f"  differs: {text}" for text in difference.texts]
        for name, packet, whole in zip(("left ", "right"), difference.packets(), (difference.left, difference.right)):
            lines.append(f"  {name}: {show.packet(packet)}")
            around = [show.packet(p) for p in whole]
            if len(around) > 1:
                lines += [f"         {'>' if at == difference.at else ' '} {text[:300]}" for at, text in enumerate(around)]
        return "\n".join(lines)


class Runner:
    def __init__(self, pair, shrink=True):
        self.pair = pair
        self.shrink = shrink
        self.roots = 0

    def next_root(self):
        self.roots += 1
        return b"s%05d" % self.roots

    def seed(self, seed, count):
        """Runs one seed; a Finding or None."""
        steps = []
        try:
            self.pair.begin(self.next_root())
            stream = Stream(random.Random(seed))
            for _ in range(count):
                step = stream.next_step()
                steps.append(step)
                stream.observe(step, self.pair.run(step))
            self.pair.finish()
            return None
        except Difference as difference:
            return self._finding(seed, steps, difference)
        except OSError as error:
            broken = Difference({"kind": "connection", "slot": None}, None, 0, [self._health(error)], [], [])
            self._restart()
            return Finding(seed, steps, broken)

    def _health(self, error):
        dead = [server for server in self.pair.servers if not server.alive()]
        if not dead:
            return f"connection failed: {error!r}"
        return "; ".join(f"{server.name} died:\n{server.log_tail(3000)}" for server in dead)

    def _finding(self, seed, steps, difference):
        self._restart()
        finding = Finding(seed, steps, difference)
        if self.shrink:
            finding = self._shrunk(finding)
            self._restart()
        return finding

    def _restart(self):
        """Fresh servers with no data: a difference leaves the two trees apart for good."""
        self.pair.stop()
        for server in self.pair.servers:
            server.wipe()
        self.pair.start()
        self.roots = 0

    def _replay(self, steps):
        """The difference these steps give, as (steps up to it, Difference), or None."""
        done = []
        try:
            self.pair.begin(self.next_root())
            for step in steps:
                done.append(step)
                self.pair.run(step)
            self.pair.finish()
        except Difference as difference:
            return done, difference
        return None

    def _shrunk(self, finding):
        """Leaves out steps, then requests of steps, while the same kind of difference remains."""
        kind, deadline = finding.kind(), time.monotonic() + SHRINK_SECONDS
        best, size = finding, max(1, len(finding.steps) // 2)
        while size >= 1 and time.monotonic() < deadline:
            at, progress = 0, False
            while at < len(best.steps) and time.monotonic() < deadline:
                shorter = best.steps[:at] + best.steps[at + size:]
                smaller = self._try(best.seed, shorter, kind)
                if smaller:
                    best, progress = smaller, True
                else:
                    at += size
            if size == 1 and not progress:
                break
            size = max(1, size // 2)
        return self._with_fewer_requests(best, kind, deadline)

    def _with_fewer_requests(self, best, kind, deadline):
        at = 0
        while at < len(best.steps) and time.monotonic() < deadline:
            requests = best.steps[at].get("requests", [])
            for number in range(len(requests)):
                fewer = {**best.steps[at], "requests": requests[:number] + requests[number + 1:]}
                smaller = self._try(best.seed, [*best.steps[:at], fewer, *best.steps[at + 1:]], kind)
                if smaller and len(smaller.steps) > at:
                    best = smaller
                    break
            else:
                at += 1
        return best

    def _try(self, seed, steps, kind):
        try:
            outcome = self._replay(steps)
        except OSError:
            self._restart()
            return None
        if outcome is None:
            return None
        self._restart()
        candidate = Finding(seed, *outcome)
        return candidate if candidate.kind() == kind else None
