"""Reconfig and read-only mode of a real ensemble: the answers are those that a genuine one gave when the goldens were
recorded, but for ports, times, session ids and where the zxids begin.

    python3 -m unittest integration.differential.test_ensemble
"""

import pathlib
import re
import struct
import tempfile
import unittest

from integration.differential import client, ops
from integration.differential.ensemble_goldens import record_read_only, record_reconfig
from integration.differential.goldens import DEFAULT_FOLDER

ADDRESS = re.compile(r"127\.0\.0\.1:\d{5}(:\d{5})?")
VERSION = re.compile(r"version=([0-9a-f]+)$")
STAT_ZXIDS = ("czxid", "mzxid", "pzxid")


def parsed(lines):
    """Name, direction and payload of each line."""
    fields = (line.split() for line in lines if not line.startswith("#"))
    return [(name, direction, bytes.fromhex(payload)) for name, direction, payload in fields]


class Answers:
    """The answers of one recording in a form that two recordings can be compared in."""

    def __init__(self, lines):
        self.base = None
        self.op = None
        self.found = [self.answer(*line) for line in parsed(lines)]

    def answer(self, name, direction, payload):
        is_handshake = payload[:4] == bytes(4)
        if direction == ">":
            self.op = None if is_handshake else struct.unpack(">i", payload[4:8])[0]
            return name, direction
        if is_handshake:
            reply = client.decode_connect(payload)
            return name, reply["timeOut"], payload[-1], reply["sessionId"] != 0
        if direction == "event":
            event = ops.decode_event(payload)
            return name, self.offset(event["zxid"]), event["body"]
        reply = ops.decode_reply(self.op, payload)
        return name, reply["xid"], reply["err"], self.offset(reply["zxid"]), self.plain(reply["body"])

    def offset(self, zxid):
        """Counted from the first one; 0 and below have a meaning of their own."""
        if zxid <= 0:
            return zxid
        if self.base is None:
            self.base = zxid
        return f"base{zxid - self.base:+}"

    def plain(self, value):
        if isinstance(value, dict):
            return {key: self.field(key, field) for key, field in value.items()}
        if isinstance(value, list):
            return [self.plain(entry) for entry in value]
        return value

    def field(self, key, value):
        if key in STAT_ZXIDS:
            # The first configuration has the counter 0, before the sessions that were opened behind it.
            return self.offset(value) if value & 0xFFFFFFFF else value != 0
        if key in ("ctime", "mtime"):
            return value != 0
        if key == "data":
            text = ADDRESS.sub("ADDRESS", value.decode())
            return VERSION.sub(lambda match: f"version={self.field('mzxid', int(match[1], 16))}", text)
        return self.plain(value)


class Ensembles(unittest.TestCase):
    def compare(self, name, record):
        with tempfile.TemporaryDirectory() as folder:
            answers = Answers(record(pathlib.Path(folder)))
        recorded = Answers((DEFAULT_FOLDER / f"{name}.txt").read_text().splitlines())
        self.assertGreater(len(recorded.found), 30)
        for ours, theirs in zip(answers.found, recorded.found, strict=True):
            self.assertEqual(ours, theirs)

    def test_reconfig_answers_like_a_genuine_ensemble(self):
        self.compare("reconfig", record_reconfig)

    def test_read_only_mode_answers_like_a_genuine_member(self):
        self.compare("read_only", record_read_only)


if __name__ == "__main__":
    unittest.main()
