"""zk-shell: a session of all of its commands that reach a server, which is lost once."""

import contextlib
import io
import json
import os
import pathlib
import re
import sys
import tempfile

import zk_shell.shell
from steps import ask, eventually, failures, told

HOSTS, MEMBERS = sys.argv[1], int(sys.argv[2])
SUPER = "digest super:test"


class Shell:
    """What the program runs its commands on, without its terminal."""

    def __init__(self):
        self.output = io.StringIO()
        self.shell = zk_shell.shell.Shell([HOSTS], 20, self.output, setup_readline=False, asynchronous=False)

    def run(self, line):
        self.output.seek(0)
        self.output.truncate()
        with contextlib.redirect_stdout(sys.stderr):  # some of it is not said to the given output
            self.shell.onecmd(line)
        return self.output.getvalue()

    def says(self, line, *patterns):
        text = self.run(line)
        for pattern in patterns:
            assert re.search(pattern, text, re.MULTILINE), f"{line}: no {pattern!r} in {text!r}"
        return text

    def silent(self, line):
        text = self.run(line)
        assert text == "", f"{line}: {text!r}"

    def close(self):
        self.shell._disconnect()


class Session:
    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.shell = Shell()

    def nodes(self):
        sh = self.shell
        sh.silent("create /s 'root'")
        sh.says("create /s 'root'", "exists")
        sh.says("create /none/a ''", "Missing path")
        sh.silent("create /s/e 'x' ephemeral=true")
        sh.silent("create /s/seq- 'x' ephemeral=false sequence=true")
        sh.silent("create /s/a/b/c 'deep' ephemeral=false sequence=false recursive=true")
        sh.says("get /s", "^root$")
        sh.says("ls /s", "^a$", "^e$", "^seq-0000000001$")
        sh.says("exists /s", r"numChildren=3$", r"version=0$", r"dataLength=4$")
        sh.says("stat /s", r"czxid=0x")
        sh.silent("set /s 'changed'")
        sh.says("set /s 'again' 7", "Bad version")
        sh.says("get /s", "^changed$")
        sh.silent("zero /s/a")
        sh.says("get /s/a", "^None$")
        sh.silent("fill /s/a x 100")
        sh.says("exists /s/a", "dataLength=100$")
        sh.says("get /none", "doesn't exist")
        sh.silent("sync /s")
        sh.silent("cd /s/a")
        sh.says("pwd", "^/s/a$")
        sh.says("ls", "^b$")
        sh.silent("cd /")

    def many_nodes_at_once(self):
        sh = self.shell
        sh.says("tree /s", "a", "b", "c")
        sh.says("child_count /s", r"/s/a: 2|a: 2|/s/a: 1")
        sh.says("du /s", r"^\d+$")
        sh.says("find /s c", "^/s/a/b/c$")
        sh.says("ifind /s C", "^/s/a/b/c$")
        sh.says("grep /s deep", "^/s/a/b/c")
        sh.says("igrep /s DEEP", "^/s/a/b/c")
        sh.says("child_matches /s a", "/s")
        sh.says("summary /s", r"Created|Modified|Owner|Name")
        sh.silent("cp /s/a /s/copy recursive=true")
        sh.says("get /s/copy/b/c", "^deep$")
        sh.says("diff /s/a /s/copy", "equal")
        sh.silent("set /s/copy/b/c 'other'")
        sh.says("diff /s/a /s/copy", "b/c")
        export = self.home / "export.json"
        sh.silent(f"cp /s/a json://{str(export).replace('/', '!')}/backup recursive=true overwrite=true")
        assert "/backup/b/c" in json.loads(export.read_text())
        sh.silent("rmr /s/copy")
        sh.silent("rm /s/seq-0000000001")
        sh.says("rm /s/a", "not empty")

    def transactions(self):
        sh = self.shell
        sh.silent("txn 'create /s/t 1' 'set /s/t 2' 'check /s/t 1'")
        sh.says("get /s/t", "^2$")
        sh.run("txn 'set /s/t 3' 'check /s/t 77'")
        sh.says("get /s/t", "^2$")
        sh.silent("check /s/t 1")
        sh.silent("rm /s/t")

    def json_values(self):
        sh = self.shell
        sh.silent("""create /s/j '{"a": {"b": [1, 2]}, "host": "one"}'""")
        sh.says("json_valid /s/j", "yes")
        sh.says("json_cat /s/j", '"b"')
        sh.says("json_get /s/j a.b", "1")
        sh.silent("json_set /s/j a.c 5 int")
        sh.silent("json_append /s/j a.b 3 int")
        sh.silent("json_set_many /s/j host two str port 80 int")
        sh.silent("json_remove /s/j a.b 1 int")
        assert json.loads(sh.run("get /s/j")) == {"a": {"b": [2, 3], "c": 5}, "host": "two", "port": 80}
        sh.says("json_count_values /s host", "two")
        sh.run("json_dupes_for_keys /s host")
        sh.silent("rm /s/j")

    def access_lists(self):
        sh = self.shell
        sh.silent("add_auth digest user:pw")
        sh.silent("create /s/acl 'x'")
        sh.silent("set_acls /s/acl 'auth::cdrwa'")
        sh.says("get_acls /s/acl", "digest", "user:")
        other = Shell()
        other.says("get /s/acl", "(?i)not authenticated|no auth|denied")
        other.silent(f"add_auth {SUPER}")
        other.says("get /s/acl", "^x$")
        other.close()
        sh.silent("rm /s/acl")

    def four_letter_words_and_sessions(self):
        sh = self.shell
        sh.says("mntr", "zk_server_state", "zk_znode_count")
        sh.says("cons", "queued=")
        sh.says("dump", "Sessions with Ephemerals")
        sh.says("chkzk 1000", "passed")
        found = sh.says("session_info", "state=CONNECTED", "sessionid=")
        session = re.search("sessionid=(0x[0-9a-f]+)", found)[1]
        eventually(lambda: session in sh.run(f"ephemeral_endpoint /s/e {HOSTS}"), "the owner of the ephemeral")
        address = r"127\.0\.0\.1:\d+ +127\.0\.0\.1:\d+"
        sh.says(f"session_endpoint {session} {HOSTS}", address)
        sh.says("conf get", "chkzk")
        sh.says("time 'ls /s'", "Took")
        sh.silent("loop 2 0 'sync /s'")

    def watches(self):
        sh = self.shell
        sh.run("child_watch /s true")
        sh.run("watch start /s")
        sh.run("create /s/w ''")
        sh.run("rm /s/w")
        eventually(lambda: re.search(r"\+ w|/s", sh.run("watch stats /s")), "what the watch has counted")
        sh.run("watch stop /s")
        sh.run("child_watch /s")

    def membership(self):
        sh = self.shell
        joining = "server.100=127.0.0.1:1:2:observer;127.0.0.1:3"
        if MEMBERS == 1:
            assert joining not in sh.run(f"reconfig add {joining}")
            return
        sh.run(f"add_auth {SUPER}")
        sh.says("reconfig add nonsense", "Bad arguments")
        assert joining in sh.run(f"reconfig add {joining}")
        assert joining not in sh.run("reconfig remove 100")
        sh.says("get /zookeeper/config", "server.1=", "version=")

    def a_lost_server(self):
        sh = self.shell
        before = re.search("sessionid=(0x[0-9a-f]+)", sh.run("session_info"))[1]
        ask("lose")
        eventually(lambda: sh.run("set /s 'behind'") == "", "a write")
        sh.says("get /s", "^behind$")
        sh.says("session_info", "state=CONNECTED", f"sessionid={before}$")
        sh.says("exists /s/e", f"ephemeralOwner={before}$")
        ask("regain")

    def ends(self):
        sh = self.shell
        sh.run("reconnect")
        eventually(lambda: "state=CONNECTED" in sh.run("session_info"), "connected again")
        sh.run("rmr /s")
        sh.says("exists /s", "doesn't exist")
        sh.run("disconnect")
        sh.says("ls /", "Not connected")
        sh.run(f"connect {HOSTS}")
        eventually(lambda: "zookeeper" in sh.run("ls /"), "connected to given hosts")
        sh.close()


def main():
    with tempfile.TemporaryDirectory(prefix="quenda-zk-shell-") as home:
        os.environ["HOME"] = home  # where it keeps its settings
        session = Session(home)
        for step in ("nodes", "many_nodes_at_once", "transactions", "json_values", "access_lists",
                     "four_letter_words_and_sessions", "watches", "membership", "a_lost_server", "ends"):
            told(step.replace("_", " "), getattr(session, step))
    return 1 if failures else 0


sys.exit(main())
