"""The comparison must be able to fail: every kind of change to one side's packets is found.

    python3 -m unittest integration.differential.test_compare
"""

import copy
import time
import unittest

from integration.differential import client, compare, jute, ops

NOW = int(time.time() * 1000)
STAT = {"czxid": 5, "mzxid": 7, "ctime": NOW, "mtime": NOW + 1, "version": 1, "cversion": 2, "aversion": 3,
        "ephemeralOwner": 9, "dataLength": 4, "numChildren": 1, "pzxid": 8}
REPLY = {"kind": "reply", "op": ops.GET_CHILDREN2, "xid": 3, "zxid": 8, "err": 0,
         "body": {"children": ["a", "b"], "stat": STAT}}
WRITE = {"kind": "reply", "op": ops.DELETE, "xid": 4, "zxid": 9, "err": 0, "body": None}
EVENT = {"kind": "event", "xid": -1, "zxid": 8, "err": 0, "body": {"type": 3, "state": 3, "path": "/a"}}
CONNECT = {"kind": "connect", "protocolVersion": 0, "timeOut": 1000, "sessionId": 9, "passwd": b"x" * 16, "readOnly": 0}


def shifted(packet):
    """The same packet from a server whose zxids, sessions and clock differ."""
    other = copy.deepcopy(packet)
    if other.get("zxid", 0) > 0:
        other["zxid"] += 100
    if other["kind"] == "connect":
        other["sessionId"] += 1000
        other["passwd"] = b"y" * 16
    stat = (other.get("body") or {}).get("stat")
    if stat:
        for name in ("czxid", "mzxid", "pzxid"):
            stat[name] += 100
        stat["ctime"] += 17
        stat["mtime"] += 170
        stat["ephemeralOwner"] += 1000
    return other


def differences(pairs):
    names = compare.Renaming()
    return [text for left, right in pairs for text in compare.compare_packets(names, left, right)]


STREAM = [CONNECT, REPLY, WRITE, EVENT]


class Renamed(unittest.TestCase):
    def test_a_renamed_stream_agrees(self):
        self.assertEqual(differences([(p, shifted(p)) for p in STREAM]), [])

    def test_children_come_in_any_order(self):
        right = shifted(REPLY)
        right["body"]["children"].reverse()
        self.assertEqual(differences([(REPLY, right)]), [])


class Changed(unittest.TestCase):
    def assert_found(self, at, change):
        pairs = [(p, shifted(p)) for p in STREAM]
        change(pairs[at][1])
        self.assertTrue(differences(pairs), f"not found: {pairs[at][1]}")

    def test_every_stat_field(self):
        for name in STAT:
            with self.subTest(name):
                # Past the neighbours, so that an order-preserving renaming cannot explain it; times by minutes.
                step = 3_600_000 if name.endswith("time") else 5
                self.assert_found(1, lambda p: p["body"]["stat"].update({name: p["body"]["stat"][name] + step}))

    def test_reply_header(self):
        for name, value in (("xid", 99), ("err", -101), ("zxid", 1), ("zxid", 0)):
            with self.subTest(name, value=value):
                self.assert_found(1, lambda p: p.update({name: value}))

    def test_write_zxid_not_newer(self):
        self.assert_found(2, lambda p: p.update(zxid=108))

    def test_event(self):
        for name, value in (("type", 4), ("state", 0), ("path", "/b")):
            with self.subTest(name):
                self.assert_found(3, lambda p: p["body"].update({name: value}))
        self.assert_found(3, lambda p: p.update(zxid=-1))

    def test_connect(self):
        for name, value in (("timeOut", 2), ("sessionId", 0), ("passwd", b"y"), ("passwd", bytes(16)),
                            ("readOnly", None), ("protocolVersion", 1)):
            with self.subTest(name, value=value):
                self.assert_found(0, lambda p: p.update({name: value}))

    def test_children(self):
        self.assert_found(1, lambda p: p["body"]["children"].append("c"))

    def test_null_is_not_empty(self):
        left = {**REPLY, "op": ops.GET_DATA, "body": {"data": None, "stat": STAT}}
        right = shifted(left)
        self.assertEqual(differences([(left, right)]), [])
        right["body"]["data"] = b""
        self.assertTrue(differences([(left, right)]))

    def test_kind(self):
        self.assertTrue(differences([(WRITE, {"kind": "closed"})]))
        self.assertTrue(differences([({"kind": "silent"}, {"kind": "silent"})]))


class Codec(unittest.TestCase):
    def test_connect_forms(self):
        self.assertEqual(len(client.connect_payload(read_only=None)), 44)
        self.assertEqual(len(client.connect_payload(read_only=False)), 45)

    def test_truncated_reply_is_an_error(self):
        payload = jute.encode("ReplyHeader", {"xid": 1, "zxid": 2, "err": 0}) + jute.encode(
            "GetDataResponse", {"data": b"d", "stat": STAT})
        self.assertEqual(ops.decode_reply(ops.GET_DATA, payload)["body"]["data"], b"d")
        for size in range(17, len(payload)):
            with self.assertRaises(jute.DecodeError):
                ops.decode_reply(ops.GET_DATA, payload[:size])


if __name__ == "__main__":
    unittest.main()
