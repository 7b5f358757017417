"""Containers and TTL nodes that the server removes by itself: genuine ZooKeeper and Quenda see the same.

    python3 -m unittest integration.differential.test_removal

DIFFERENTIAL_RIGHT names another right side than quenda, as --right of the command line does.
"""

import os
import pathlib
import tempfile
import unittest

from integration.differential import ops, settings
from integration.differential.__main__ import server
from integration.differential.pair import Pair

INTERVAL = {"znode.container.checkIntervalMs": "500"}
ROOT = b"s00001"
BASE = "/@ROOT@"
OPEN = [{"perms": 31, "scheme": "world", "id": "anyone"}]


class Removal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        right = os.environ.get("DIFFERENTIAL_RIGHT", "quenda")
        self.pair = Pair(*(server(kind, pathlib.Path(folder.name) / side, INTERVAL)
                           for kind, side in (("genuine", "left"), (right, "right"))))
        self.addCleanup(self.pair.stop)
        self.pair.start()
        self.pair.begin(ROOT)
        self.xid = 0
        for slot in (0, 1):
            self.pair.run({"kind": "connect", "slot": slot, "requests": [], "closes": False, "connect": {
                "session": 0, "passwd": "right", "timeout": 60000, "version": 0, "last_zxid": 0, "read_only": False}})

    def request(self, op, err=0, slot=0, **fields):
        self.xid += 1
        step = {"kind": "requests", "slot": slot, "closes": False,
                "requests": [{"xid": self.xid, "op": op, "fields": fields}]}
        reply = next(p for p in self.pair.run(step)[slot] if p["kind"] == "reply")
        self.assertEqual(reply["err"], err)

    def create(self, op, path, **more):
        self.request(op, path=path, data=b"", acl=OPEN, **more)

    def wait(self, *paths):
        """Slot 1 watches everything; the events of the removal and nothing else must come."""
        seen = self.pair.run({"kind": "await", "slot": 1, "events": len(paths)})[1]
        self.assertEqual([(p["body"]["type"], p["body"]["path"]) for p in seen if p["kind"] == "event"],
                         [(2, path) for path in paths])

    def watch(self):
        self.request(ops.ADD_WATCH, slot=1, path=BASE, mode=1)

    def test_a_container_goes_after_its_last_child(self):
        self.create(ops.CREATE_CONTAINER, BASE + "/c", flags=4)
        self.create(ops.CREATE_CONTAINER, BASE + "/never-used", flags=4)
        self.create(ops.CREATE, BASE + "/c/a", flags=0)
        self.watch()
        self.request(ops.DELETE, path=BASE + "/c/a", version=-1)
        self.wait(BASE + "/c")
        self.request(ops.EXISTS, err=-101, path=BASE + "/c", watch=False)
        self.request(ops.EXISTS, path=BASE + "/never-used", watch=False)
        self.pair.finish()

    def test_nested_containers_go_from_the_inside(self):
        self.create(ops.CREATE_CONTAINER, BASE + "/c", flags=4)
        self.create(ops.CREATE_CONTAINER, BASE + "/c/d", flags=4)
        self.create(ops.CREATE, BASE + "/c/d/e", flags=0)
        self.watch()
        self.request(ops.DELETE, path=BASE + "/c/d/e", version=-1)
        self.wait(BASE + "/c/d", BASE + "/c")
        self.pair.finish()

    def test_a_ttl_node_goes_when_its_time_is_up_and_it_has_no_child(self):
        self.request(ops.MULTI, ops=[
            (ops.CREATE_TTL, {"path": BASE + "/kept", "data": b"", "acl": OPEN, "flags": 5, "ttl": 1}),
            (ops.CREATE, {"path": BASE + "/kept/child", "data": b"", "acl": OPEN, "flags": 0})], end=True)
        self.watch()
        self.create(ops.CREATE_TTL, BASE + "/t", flags=5, ttl=700)
        self.wait(BASE + "/t")
        self.request(ops.EXISTS, path=BASE + "/kept", watch=False)
        self.request(ops.DELETE, path=BASE + "/kept/child", version=-1)
        self.wait(BASE + "/kept")
        self.pair.finish()


if __name__ == "__main__":
    unittest.main()
