"""What the random streams leave out because Apache ZooKeeper dies of it or races: Quenda alone has to get it right.

    python3 -m unittest integration.differential.test_quenda
"""

import pathlib
import tempfile
import unittest

from integration.differential import client, jute, ops, settings
from integration.lib.quenda_server import QuendaServer

OPEN = [{"perms": 31, "scheme": "world", "id": "anyone"}]


class QuendaAlone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.server = QuendaServer(pathlib.Path(cls.folder.name), settings.CFG)
        cls.addClassCleanup(cls.server.kill9)
        cls.server.start()

    def setUp(self):
        self.connection, response = client.open_session(self.server.port)
        self.addCleanup(self.connection.close)
        self.assertNotEqual(response["sessionId"], 0)
        self.root = f"/{self.id().rsplit('.', 1)[1]}"
        self.create(self.root)

    def call(self, op, fields, xid=1):
        return self.connection.call(op, fields, xid)[1]

    def create(self, path, data=b"", **more):
        reply = self.call(ops.CREATE, {"path": path, "data": data, "acl": OPEN, "flags": 0, **more})
        self.assertEqual(reply["err"], 0, path)

    def exists(self, path):
        return self.call(ops.EXISTS, {"path": path, "watch": False})["err"] == 0

    def send(self, *requests):
        self.connection.send(b"".join(jute.frame(ops.encode_request(*request)) for request in requests))

    def replies(self, *operations):
        return [ops.decode_reply(op, self.connection.receive()) for op in operations]

    def test_create_ttl_without_a_ttl_mode(self):
        for flags in range(5):
            for ttl in (-1, -2**63):
                reply = self.call(ops.CREATE_TTL, {
                    "path": self.root + "/t", "data": b"", "acl": OPEN, "flags": flags, "ttl": ttl})
                self.assertEqual(reply["err"], -8, (flags, ttl))
        self.assertFalse(self.exists(self.root + "/t"))
        self.create(self.root + "/after")

    def test_delete_container_deletes_nothing(self):
        self.create(self.root + "/n")
        reply = self.call(ops.DELETE_CONTAINER, {"path": (self.root + "/n").encode()})
        self.assertEqual(reply["err"], -8)
        self.assertTrue(self.exists(self.root + "/n"))

    def test_create_session_is_no_request(self):
        self.send((5, ops.CREATE_SESSION, {"raw": b"\x00\x00\x27\x10"}))
        [payload] = self.connection.receive_until_closed(5.0)
        self.assertEqual(jute.Reader(payload).record("ReplyHeader"), {"xid": 5, "zxid": -1, "err": -6})

    def test_quota_on_the_root_is_a_plain_node(self):
        quota = "/zookeeper/quota/zookeeper_limits"
        self.create(quota, b"count=1,bytes=1=;byteHardLimit=1;countHardLimit=1")
        self.create(self.root + "/below", b"more than one byte")
        self.assertEqual(self.call(ops.DELETE, {"path": quota, "version": -1})["err"], 0)

    def test_quota_texts_that_do_not_parse_are_no_quota(self):
        self.create("/zookeeper/quota" + self.root)
        for number, text in enumerate([b"junk", b"count=x,bytes=1", b"", None, b"\xff\xfe", b"=;,==", b"count=" + b"9" * 40]):
            limits = f"/zookeeper/quota{self.root}/zookeeper_limits"
            stats = f"/zookeeper/quota{self.root}/zookeeper_stats"
            self.create(limits, text)
            self.create(stats, text)
            self.create(f"{self.root}/a{number}", b"data")
            self.assertEqual(self.call(ops.SET_DATA, {"path": stats, "data": text, "version": -1})["err"], 0)
            self.create(f"{self.root}/b{number}", b"data")
            for path in (limits, stats):
                self.assertEqual(self.call(ops.DELETE, {"path": path, "version": -1})["err"], 0)

    def test_set_watches_with_a_null_list_behind_others(self):
        lists = {"relativeZxid": 0, "dataWatches": [self.root], "existWatches": [self.root], "childWatches": None}
        self.assertEqual(self.call(ops.SET_WATCHES, lists, xid=-8)["err"], -5)
        self.create(self.root + "/after")

    def test_a_pipelined_write_sees_the_acl_set_before_it(self):
        read_only = [{"perms": 1, "scheme": "world", "id": "anyone"}]
        for round_ in range(20):
            path = f"{self.root}/{round_}"
            self.create(path)
            self.send((1, ops.SET_ACL, {"path": path, "acl": read_only, "version": -1}),
                      (2, ops.CREATE, {"path": path + "/c", "data": b"", "acl": OPEN, "flags": 0}),
                      (3, ops.SET_DATA, {"path": path, "data": b"x", "version": -1}))
            errs = [reply["err"] for reply in self.replies(ops.SET_ACL, ops.CREATE, ops.SET_DATA)]
            self.assertEqual(errs, [0, -102, -102])

    def test_what_stands_behind_close_session_is_not_done(self):
        self.send((1, ops.CLOSE_SESSION, {}),
                  (2, ops.CREATE, {"path": self.root + "/late", "data": b"", "acl": OPEN, "flags": 0}))
        payloads = self.connection.receive_until_closed(5.0)
        first = ops.decode_reply(ops.CLOSE_SESSION, payloads[0])
        self.assertEqual((first["xid"], first["err"]), (1, 0))
        self.connection, _ = client.open_session(self.server.port)
        self.addCleanup(self.connection.close)
        self.assertFalse(self.exists(self.root + "/late"))

    def test_a_request_with_xid_minus_one_is_answered_with_it(self):
        self.send((-1, ops.GET_CHILDREN, {"path": self.root, "watch": False}))
        [reply] = self.replies(ops.GET_CHILDREN)
        self.assertEqual((reply["xid"], reply["err"], reply["body"]), (-1, 0, {"children": []}))


if __name__ == "__main__":
    unittest.main()
