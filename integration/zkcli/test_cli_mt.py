"""The C client's shell, multi-threaded form."""

import re

from integration.lib.zkwire import Conn

STAT = (r"\tctime = ", r"\tczxid=[0-9a-f]+", r"\tmtime=", r"\tmzxid=", r"\tversion=", r"\tephemeralOwner = ")


def watcher(kind, path):
    return f"Watcher {kind}_EVENT state = CONNECTED_STATE for path {path}$"


def test_create_in_every_mode(cli_mt, root, port):
    m = root

    def created(command, path, name, mode):
        return cli_mt.run(
            f"{command} {path}", rf"^Creating \[{re.escape(path)}\] node \(mode: {mode}\)$", "rc = 0$", f"name = {name}$"
        )

    created("create", f"{m}/a", f"{m}/a", 0)
    created("create +e", f"{m}/e", f"{m}/e", 1)
    created("create +s", f"{m}/s-", f"{m}/s-0000000002", 2)
    created("create +es", f"{m}/es-", f"{m}/es-0000000003", 3)
    created("create +c", f"{m}/c", f"{m}/c", 4)
    created("create +t=100000", f"{m}/t", f"{m}/t", 5)
    created("create +st=100000", f"{m}/ts-", f"{m}/ts-0000000006", 6)
    created("create2", f"{m}/b", f"{m}/b", 0)
    cli_mt.wait_for(*STAT)
    created("create2 +s", f"{m}/bs-", f"{m}/bs-0000000008", 2)
    cli_mt.wait_for(*STAT)
    cli_mt.run(f"create {m}/a", "rc = -110$")
    cli_mt.run(f"create {m}/none/a", "rc = -101$")
    with Conn(port) as other:
        names = other.children(m)
        assert names == ["a", "b", "bs-0000000008", "c", "e", "es-0000000003", "s-0000000002", "t", "ts-0000000006"]
        text = cli_mt.run(f"ls {m}", f"^{m}: rc = 0$", *[r"^\t\S+$"] * len(names))
        assert sorted(re.findall(r"^\t(\S+)$", text, re.MULTILINE)) == names
        cli_mt.run("quit", "Quitting")
        assert cli_mt.ended() == 0
        assert not {"e", "es-0000000003"} & set(other.children(m))


def test_read_set_delete_and_watches(cli_mt, root, port):
    m = root
    cli_mt.run(f"create {m}/a", "rc = 0$")
    cli_mt.run(f"get {m}/a", f"^{m}/a: rc = 0$", "^ value_len = 3$", "^new$", *STAT)
    # `get` and `ls` leave a watch, so the shell hears of its own writes.
    cli_mt.run(f"set {m}/a hello world", watcher("CHANGED", f"{m}/a"), f"^{m}/a: rc = 0 Stat:$", r"version=1\s")
    cli_mt.run(f"get {m}/a", "^ value_len = 11$", "^hello world$")
    with Conn(port) as other:
        other.set(f"{m}/a", b"x")
        cli_mt.wait_for(watcher("CHANGED", f"{m}/a"))
        cli_mt.run(f"ls2 {m}", r"^\ta$", *STAT)
        other.create(f"{m}/b")
        cli_mt.wait_for(watcher("CHILD", m))
        cli_mt.run(f"wexists {m}/later", f"^Error -101 for {m}/later$")
        other.create(f"{m}/later")
        cli_mt.wait_for(watcher("CREATED", f"{m}/later"))
        cli_mt.run(f"get {m}/later", "rc = 0$", *STAT)
        other.delete(f"{m}/later")
        cli_mt.wait_for(watcher("DELETED", f"{m}/later"))
        cli_mt.run(f"exists {m}/none", f"^Error -101 for {m}/none$")
        cli_mt.run(f"get {m}/none", "rc = -101$")
        cli_mt.run(f"delete {m}/none", "rc = -101$")
        cli_mt.run(f"delete {m}", "rc = -111$")
        cli_mt.run(f"delete {m}/b", f"^{m}/b: rc = 0$")
        cli_mt.run(f"sync {m}", f"name = {m}$")
        cli_mt.run(f"aget {m}/a", f"^{m}/a: rc = 0$", "^ value_len = 1$")
        cli_mt.run(f"als {m}", f"^{m}: rc = 0$", r"^\ta$")
        assert other.children(m) == ["a"]


def test_identities_configuration_and_session(cli_mt, root, port):
    m = root
    with Conn(port) as other:
        other.auth("digest", b"u:p")
        other.create(f"{m}/mine", b"secret", acl=((31, "auth", ""),))
        cli_mt.run(f"get {m}/mine", "rc = -102$")
        cli_mt.run("addauth digest u:p")
        cli_mt.run(f"get {m}/mine", "rc = 0$", "^secret$")
    cli_mt.run("config", "^/zookeeper/config: rc = 0$", " value_len = 0$", r"aversion=ffffffff$")
    cli_mt.run("reconfig -remove 1", r"rc = -(123|6)$")
    cli_mt.run("verbose", "logging level set to DEBUG")
    cli_mt.run("verbose", "logging level set to WARN")
    cli_mt.run("quit", "Quitting")
    assert cli_mt.ended() == 0
