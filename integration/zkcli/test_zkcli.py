"""ZooKeeper's own shell, command by command. Debian's is 3.8.0 without line editing, which suits a pipe."""

import subprocess

import pytest
from integration.lib.shell import Shell
from integration.lib.zkwire import Conn

STAT = (r"cZxid = 0x[0-9a-f]+\n", "ctime = ", "mZxid = 0x", "mtime = ", "pZxid = 0x", "cversion = ", "dataVersion = ",
        "aclVersion = ", "ephemeralOwner = 0x", "dataLength = ", "numChildren = ")


def event(kind, path):
    return f"WatchedEvent state:SyncConnected type:{kind} path:{path}$"


def test_create_in_every_mode(zkcli, root, other):
    t = root
    zkcli.run(f"create {t}/p data", f"^Created {t}/p$")
    zkcli.run(f"create {t}/empty", f"^Created {t}/empty$")
    zkcli.run(f"create -s {t}/s- data", f"^Created {t}/s-0000000002$")
    zkcli.run(f"create -e {t}/e data", f"^Created {t}/e$")
    zkcli.run(f"create -e -s {t}/es- data", f"^Created {t}/es-0000000004$")
    zkcli.run(f"create -c {t}/c", f"^Created {t}/c$")
    zkcli.run(f"create -t 100000 {t}/ttl data", f"^Created {t}/ttl$")
    zkcli.run(f"create -t 100000 -s {t}/ttl- data", f"^Created {t}/ttl-0000000007$")
    zkcli.run(f"create {t}/p again", f"^Node already exists: {t}/p$")
    zkcli.run(f"create {t}/none/x data", f"^Node does not exist: {t}/none/x$")
    zkcli.run(f"create {t}/e/x data", f"^Ephemerals cannot have children: {t}/e/x$")
    zkcli.run(f"create {t}//x data", "Path must not|Invalid path|empty node name")
    names = "c, e, empty, es-0000000004, p, s-0000000002, ttl, ttl-0000000007"
    zkcli.run(f"ls {t}", rf"^\[{names}\]$")
    zkcli.run(f"ls -R {t}", f"^{t}$", *(f"^{t}/{name}$" for name in names.split(", ")))
    zkcli.run("getEphemerals", rf"^\[({t}/e|{t}/es-0000000004), (?!\1\])({t}/e|{t}/es-0000000004)\]$")
    zkcli.run(f"getEphemerals {t}/es", rf"^\[{t}/es-0000000004\]$")
    zkcli.run(f"getAllChildrenNumber {t}", "^8$")
    zkcli.run("quit", "state:Closed")
    assert zkcli.ended() == 0
    assert other.children(t) == ["c", "empty", "p", "s-0000000002", "ttl", "ttl-0000000007"]


def test_read_set_and_delete(zkcli, root):
    t = root
    zkcli.run(f"create {t}/p data", "Created")
    zkcli.run(f"get {t}/p", "^data$")
    zkcli.run(f"get -s {t}/p", "^data$", *STAT)
    zkcli.run(f"stat {t}/p", *STAT[:9], "^dataLength = 4$", "^numChildren = 0$")
    zkcli.run(f"ls -s {t}", r"^\[p\]$", *STAT[:5], "^cversion = 1$", *STAT[6:10], "^numChildren = 1$")
    zkcli.run(f"set -s {t}/p new", *STAT[:6], "^dataVersion = 1$", *STAT[7:9], "^dataLength = 3$")
    zkcli.run(f"set -v 1 {t}/p newer")
    zkcli.run(f"set -v 1 {t}/p stale", f"^version No is not valid : {t}/p$")
    zkcli.run(f"get {t}/p", "^newer$")
    zkcli.run(f"get {t}/none", f"^Node does not exist: {t}/none$")
    zkcli.run(f"stat {t}/none", f"^Node does not exist: {t}/none$")
    zkcli.run(f"delete -v 0 {t}/p", f"^version No is not valid : {t}/p$")
    zkcli.run(f"delete {t}", f"^Node not empty: {t}$")
    zkcli.run(f"delete -v 2 {t}/p")
    zkcli.run(f"delete {t}/p", f"^Node does not exist: {t}/p$")
    for path in ("a", "a/b", "a/b/c", "a/d"):
        zkcli.run(f"create {t}/{path}", "Created")
    zkcli.run(f"deleteall {t}/a")
    zkcli.run(f"ls {t}", r"^\[\]$")
    zkcli.run(f"create {t}/ümlaut/", "Path must not end|Invalid path")
    zkcli.run(f"create {t}/ümlaut größe", f"^Created {t}/ümlaut$")
    zkcli.run(f"get {t}/ümlaut", "^größe$")
    zkcli.run(f"sync {t}", "^Sync is OK$")


def test_watches_fire(zkcli, root, other):
    t = root
    other.create(f"{t}/p", b"data")
    zkcli.run(f"get -s -w {t}/p", "^data$", *STAT)
    other.set(f"{t}/p", b"x")
    zkcli.wait_for(event("NodeDataChanged", f"{t}/p"))
    zkcli.run(f"stat -w {t}/p", *STAT)
    zkcli.run(f"set {t}/p own", event("NodeDataChanged", f"{t}/p"))
    zkcli.run(f"ls -w {t}", r"^\[p\]$")
    other.create(f"{t}/q")
    zkcli.wait_for(event("NodeChildrenChanged", t))
    zkcli.run(f"get -w {t}/p", "^own$")
    other.delete(f"{t}/p")
    zkcli.wait_for(event("NodeDeleted", f"{t}/p"))
    zkcli.run("printwatches off")
    zkcli.run("printwatches", "printwatches is off")
    zkcli.run("printwatches on")


def test_persistent_and_recursive_watches(zkcli, root, other):
    t = root
    zkcli.run(f"addWatch {t}")
    zkcli.run(f"create {t}/w x", event("NodeCreated", f"{t}/w"))  # printed by two threads: either comes first
    other.create(f"{t}/w/deep")
    zkcli.wait_for(event("NodeCreated", f"{t}/w/deep"))
    other.set(f"{t}/w/deep", b"x")
    zkcli.wait_for(event("NodeDataChanged", f"{t}/w/deep"))
    other.delete(f"{t}/w/deep")
    zkcli.wait_for(event("NodeDeleted", f"{t}/w/deep"))
    zkcli.run(f"removewatches {t}", event("PersistentWatchRemoved", t))
    zkcli.run(f"removewatches {t}", f"No such watcher for {t}")
    zkcli.run(f"addWatch -m PERSISTENT {t}")
    zkcli.run(f"sync {t}", "Sync is OK")  # the command before is silent: wait for it
    for name in "ab":
        other.create(f"{t}/{name}")
        zkcli.wait_for(event("NodeChildrenChanged", t))
    other.set(t, b"x")
    zkcli.wait_for(event("NodeDataChanged", t))
    zkcli.run(f"removewatches {t} -a", event("PersistentWatchRemoved", t))
    zkcli.run(f"get -w {t}", "^x$")
    zkcli.run(f"removewatches {t} -d", event("DataWatchRemoved", t))


def test_acls_and_identities(zkcli, root):
    t = root
    zkcli.run(f"getAcl {t}", "^'world,'anyone$", "^: cdrwa$")
    zkcli.run("whoami", "^Auth scheme: User$", r"^ip: 127\.0\.0\.1$")
    zkcli.run(f"create {t}/a x auth::cdrwa", f"^Acl is not valid : {t}/a$")
    zkcli.run("addauth digest u:p")
    zkcli.run("whoami", "^digest: u$")
    zkcli.run(f"create {t}/mine x auth::cdrwa", f"^Created {t}/mine$")
    zkcli.run(f"getAcl {t}/mine", "^'digest,'u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=$", "^: cdrwa$")
    zkcli.run(f"setAcl -s -v 0 {t}/mine world:anyone:r", *STAT[:7], "^aclVersion = 1$", *STAT[8:])
    zkcli.run(f"getAcl -s {t}/mine", "^'world,'anyone$", "^: r$", *STAT)
    zkcli.run(f"set {t}/mine y", f"^Insufficient permission : {t}/mine$")
    zkcli.run(f"setAcl {t} world:nobody:r", f"^Acl is not valid : {t}$")
    zkcli.run(f"create {t}/deep", "Created")
    zkcli.run(f"create {t}/deep/er", "Created")
    zkcli.run(f"setAcl -R {t}/deep world:anyone:cr")
    zkcli.run(f"getAcl {t}/deep/er", "^'world,'anyone$", "^: cr$")
    zkcli.run("addauth digest super:test")
    zkcli.run(f"set {t}/mine y")
    zkcli.run(f"get {t}/mine", "^y$")
    zkcli.run("addauth nonsense x")
    zkcli.wait_for("state:AuthFailed")


def test_quotas(zkcli, root):
    t = root
    zkcli.run(f"create {t}/a 12345", "Created")
    zkcli.run(f"listquota {t}", "does not exist")
    zkcli.run(f"setquota -n 20 {t}")
    zkcli.run(f"setquota -b 1000 {t}")
    zkcli.run(f"setquota -N 30 {t}")
    zkcli.run(f"setquota -B 2000 {t}")
    zkcli.run(
        f"listquota {t}", f"^Output quota for {t} count=20,bytes=1000=;byteHardLimit=2000;countHardLimit=30$",
        f"^Output stat for {t} count=2,bytes=5$",
    )
    zkcli.run(f"create {t}/b 123", "Created")
    zkcli.run(f"set {t}/a 1")
    zkcli.run(f"listquota {t}", f"^Output stat for {t} count=3,bytes=4$")
    zkcli.run(f"delquota -n {t}")
    zkcli.run(f"listquota {t}", f"^Output quota for {t} count=-1,bytes=1000")
    zkcli.run(f"delquota {t}")
    zkcli.run(f"listquota {t}", "does not exist")


def test_configuration_and_reconfig(zkcli):
    zkcli.run("config", "^$")
    zkcli.run("config -s", *STAT[:7], "^aclVersion = -1$")
    zkcli.run("reconfig -add server.5=127.0.0.1:1:2;3", "Reconfig is disabled|Unimplemented")
    zkcli.run("reconfig -remove 5", "Reconfig is disabled|Unimplemented")
    zkcli.run("ls /zookeeper", r"^\[config, quota\]$")


def test_version_history_close_connect_quit(zkcli, port, root):
    t = root
    zkcli.run("version", "^ZooKeeper CLI version: 3")
    zkcli.run(f"ls {t}", r"^\[\]$")
    zkcli.run("history", "^0 - version$", f"^1 - ls {t}$")
    zkcli.run("redo 1", r"^\[\]$")
    zkcli.run(f"create -e {t}/e", "Created")
    zkcli.run("close", "state:Closed")
    zkcli.run(f"ls {t}", "Not connected")
    with Conn(port) as other:
        assert other.exists(f"{t}/e") is None
    zkcli.run(f"connect 127.0.0.1:{port}", "state:SyncConnected")
    zkcli.run(f"ls {t}", r"^\[\]$")
    zkcli.run("quit", "state:Closed")
    assert zkcli.ended() == 0


@pytest.mark.parametrize("arguments, code, text", [("get /zookeeper/quota", 0, ""), ("ls /", 0, "zookeeper"),
                                                   ("get /none", 1, "Node does not exist: /none")])
def test_one_command_from_the_command_line(port, arguments, code, text):
    done = subprocess.run(
        ["/usr/share/zookeeper/bin/zkCli.sh", "-server", f"127.0.0.1:{port}", *arguments.split()],
        capture_output=True, text=True, timeout=30, check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert text in done.stdout + done.stderr


def test_a_client_confined_to_a_subtree(port, root, other):
    shell = Shell(["/usr/share/zookeeper/bin/zkCli.sh", "-server", f"127.0.0.1:{port}{root}"])
    try:
        shell.wait_for("state:SyncConnected")
        shell.run("create /inside x", "^Created /inside$")
        shell.run("get -w /inside", "^x$")
        other.set(f"{root}/inside", b"y")
        shell.wait_for(event("NodeDataChanged", "/inside"))
    finally:
        shell.kill()
