"""zkpython: its calls, and a server that is lost under it. For the Python that it wants, see ../install.

Of its calls `client_id` is not here: it reads the session's password, 16 bytes, as text, and fails on most.
"""

import os
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import zkpython_module  # noqa: E402

zookeeper = zkpython_module.load()
from steps import PATIENCE_SECONDS, ask, eventually, failures, told  # noqa: E402

HOSTS, MEMBERS = sys.argv[-2], int(sys.argv[-1])
OPEN = [{"perms": zookeeper.PERM_ALL, "scheme": "world", "id": "anyone"}]
READ = [{"perms": zookeeper.PERM_READ, "scheme": "world", "id": "anyone"}]
AUTH = [{"perms": zookeeper.PERM_ALL, "scheme": "auth", "id": ""}]


class Box:
    """What a callback is called with; the first argument, the handle, left out."""

    def __init__(self):
        self.filled = threading.Event()
        self.values = None

    def __call__(self, _handle, *values):
        self.values = values
        self.filled.set()

    def wait(self):
        if not self.filled.wait(PATIENCE_SECONDS):
            raise AssertionError("no answer")
        return self.values


def connect():
    connected = threading.Event()

    def watcher(_handle, kind, state, _path):
        if kind == zookeeper.SESSION_EVENT and state == zookeeper.CONNECTED_STATE:
            connected.set()

    handle = zookeeper.init(HOSTS, watcher, 20000)
    if not connected.wait(PATIENCE_SECONDS):
        raise AssertionError("not connected")
    return handle


def raises(error, call, *arguments):
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError("no " + error.__name__)


class Program:
    def connects(self):
        self.zh = connect()
        assert zookeeper.state(self.zh) == zookeeper.CONNECTED_STATE
        assert 0 < zookeeper.recv_timeout(self.zh) <= 20000
        zookeeper.is_unrecoverable(self.zh)
        zookeeper.deterministic_conn_order(True)
        zookeeper.deterministic_conn_order(False)

    def creates_and_deletes(self):
        zh = self.zh
        assert zookeeper.create(zh, "/py", "one", OPEN, 0) == "/py"
        raises(zookeeper.NodeExistsException, zookeeper.create, zh, "/py", "", OPEN, 0)
        raises(zookeeper.NoNodeException, zookeeper.create, zh, "/none/x", "", OPEN, 0)
        assert zookeeper.create(zh, "/py/s-", "", OPEN, zookeeper.SEQUENCE) == "/py/s-0000000000"
        zookeeper.create(zh, "/py/e", "", OPEN, zookeeper.EPHEMERAL)
        raises(zookeeper.NoChildrenForEphemeralsException, zookeeper.create, zh, "/py/e/x", "", OPEN, 0)
        raises(zookeeper.NotEmptyException, zookeeper.delete, zh, "/py", -1)
        raises(zookeeper.BadVersionException, zookeeper.delete, zh, "/py/e", 7)
        zookeeper.delete(zh, "/py/s-0000000000", 0)
        raises(zookeeper.NoNodeException, zookeeper.delete, zh, "/py/s-0000000000", 0)

    def reads_and_writes(self):
        zh = self.zh
        data, stat = zookeeper.get(zh, "/py")
        assert (data, stat["version"], stat["numChildren"]) == ("one", 0, 1)
        zookeeper.set(zh, "/py", "two", 0)
        raises(zookeeper.BadVersionException, zookeeper.set, zh, "/py", "three", 0)
        assert zookeeper.set2(zh, "/py", "three", -1)["version"] == 2
        assert zookeeper.exists(zh, "/py")["dataLength"] == 5
        assert zookeeper.exists(zh, "/none") is None
        assert zookeeper.get_children(zh, "/py") == ["e"]
        raises(zookeeper.NoNodeException, zookeeper.get_children, zh, "/none")

    def asks_asynchronously(self):
        zh = self.zh

        def asked(call, *arguments):
            box = Box()
            assert call(zh, *arguments, box) == zookeeper.OK
            return box.wait()

        def watched(call, path):
            box = Box()
            assert call(zh, path, None, box) == zookeeper.OK
            return box.wait()

        box = Box()
        zookeeper.acreate(zh, "/py/a", "data", OPEN, 0, box)
        assert box.wait() == (zookeeper.OK, "/py/a")
        box = Box()
        zookeeper.acreate(zh, "/py/a", "data", OPEN, 0, box)
        assert box.wait()[0] == zookeeper.NODEEXISTS
        assert watched(zookeeper.aget, "/py/a")[:2] == (zookeeper.OK, "data")
        assert watched(zookeeper.aexists, "/py/none")[0] == zookeeper.NONODE
        assert sorted(watched(zookeeper.aget_children, "/py")[1]) == ["a", "e"]
        box = Box()
        zookeeper.aset(zh, "/py/a", "new", 0, box)
        assert box.wait()[0] == zookeeper.OK
        assert asked(getattr(zookeeper, "async"), "/py")[0] == zookeeper.OK
        assert asked(zookeeper.aget_acl, "/py/a")[1] == OPEN
        box = Box()
        zookeeper.aset_acl(zh, "/py/a", -1, READ, box)
        assert box.wait()[0] == zookeeper.OK
        raises(zookeeper.NoAuthException, zookeeper.set, zh, "/py/a", "", -1)
        box = Box()
        zookeeper.adelete(zh, "/py/a", -1, box)
        assert box.wait()[0] == zookeeper.OK

    def watches(self):
        zh, other = self.zh, connect()
        data, kids, made = Box(), Box(), Box()
        zookeeper.get(zh, "/py", data)
        zookeeper.get_children(zh, "/py", kids)
        assert zookeeper.exists(zh, "/py/new", made) is None
        zookeeper.set(other, "/py", "changed", -1)
        zookeeper.create(other, "/py/new", "", OPEN, 0)
        connected = zookeeper.CONNECTED_STATE
        assert data.wait() == (zookeeper.CHANGED_EVENT, connected, "/py")
        assert kids.wait() == (zookeeper.CHILD_EVENT, connected, "/py")
        assert made.wait() == (zookeeper.CREATED_EVENT, connected, "/py/new")
        gone = Box()
        zookeeper.get(zh, "/py/new", gone)
        zookeeper.delete(other, "/py/new", -1)
        assert gone.wait() == (zookeeper.DELETED_EVENT, connected, "/py/new")
        zookeeper.close(other)

    def guards(self):
        owner, box = connect(), Box()
        raises(zookeeper.InvalidACLException, zookeeper.create, owner, "/py/mine", "", AUTH, 0)
        zookeeper.add_auth(owner, "digest", "user:pw", box)
        assert box.wait() == (zookeeper.OK,)
        zookeeper.create(owner, "/py/mine", "secret", AUTH, 0)
        self.catches_up()
        raises(zookeeper.NoAuthException, zookeeper.get, self.zh, "/py/mine")
        assert zookeeper.get_acl(owner, "/py/mine")[1][0]["scheme"] == "digest"
        zookeeper.set_acl(owner, "/py/mine", 0, READ)
        self.catches_up()
        assert zookeeper.get(self.zh, "/py/mine")[0] == "secret"
        zookeeper.close(owner)

    def catches_up(self):
        """With what others have written: this client's server may be behind theirs."""
        box = Box()
        getattr(zookeeper, "async")(self.zh, "/", box)
        assert box.wait()[0] == zookeeper.OK

    def loses_a_server(self):
        zh, owner, seen = self.zh, zookeeper.exists(self.zh, "/py/e")["ephemeralOwner"], Box()
        zookeeper.get(zh, "/py", seen)
        ask("lose")

        def written():
            try:
                zookeeper.set(zh, "/py", "behind", -1)
                return True
            except zookeeper.ConnectionLossException:
                return False

        eventually(written, "a write")
        assert zookeeper.exists(zh, "/py/e")["ephemeralOwner"] == owner
        # The handle's change of state may be told first.
        eventually(lambda: seen.filled.is_set(), "an event")
        ask("regain")

    def closes(self):
        zookeeper.close(self.zh)
        other = connect()
        zookeeper.set(other, "/py", "last", -1)
        assert zookeeper.exists(other, "/py/e") is None
        zookeeper.close(other)
        raises(zookeeper.ZooKeeperException, zookeeper.get, other, "/py")


def main():
    program = Program()
    for step in ("connects", "creates_and_deletes", "reads_and_writes", "asks_asynchronously", "watches", "guards",
                 "loses_a_server", "closes"):
        told(step.replace("_", " "), getattr(program, step))
    sys.stdout.flush()
    os._exit(1 if failures else 0)  # handles that were closed by the server would keep the module from ending


main()
