"""What the suites of client libraries share: a network of their own, the server that a client's own tests start, and
programs that use a client on one server or three while servers are lost.

A program gets the connection string and the number of members as its last two arguments. It prints `ok STEP` or
`FAILED STEP: reason` for each step and `end` behind the last. For a line `fail over` the leader is killed (one server
alone is killed and started); once it is back, the program is answered `done` on its standard input.
"""

import os
import pathlib
import queue
import re
import stat
import subprocess
import sys
import tempfile
import threading
import time

from integration.lib.ensemble import ENSEMBLE_CFG, Ensemble
from integration.lib.quenda_server import quenda_binary
from integration.lib.target import IS_QUENDA, TARGET, build_server
from integration.zookeeper.genuine import DEFAULT_VERSION

CACHE = pathlib.Path(os.environ.get("QUENDA_CACHE", pathlib.Path.home() / ".cache/quenda"))
INSTALL_ZOOKEEPER = pathlib.Path(__file__).resolve().parent.parent / "zookeeper/install"
INSIDE = "QUENDA_OWN_NETWORK"


def enter_own_network():
    """Goes on in a network namespace with nothing but a loopback: tests that choose their ports by chance, or have them
    fixed, meet nobody. Packages have to be there before. Does nothing where it may not (it needs root)."""
    if os.environ.get(INSIDE):
        return
    if not IS_QUENDA:
        _genuine()
    script = 'ip link set lo up && exec "$@"'
    command = ["unshare", "--net", "--", "sh", "-c", script, "sh", sys.executable, *sys.argv]
    if subprocess.run(["unshare", "--net", "--", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("no network namespace of its own (that needs root): ports are the machine's", flush=True)
        return
    os.execvpe(command[0], command, {**os.environ, INSIDE: "1"})


def write_zk_server(folder):
    """`zkServer.sh start-foreground zoo.cfg` of the server under test, for tests that start servers by that name. The
    paths are written into it: some start it without an environment."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "zkServer.sh"
    if IS_QUENDA:
        start = f'exec "{quenda_binary()}" serve --config "$2"'
    else:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        start = f'exec java -Xmx200m $SERVER_JVMFLAGS -cp "{_genuine()}/*" {main} "$2"'
    guard = '[ "$1" = start-foreground ] || { echo "only start-foreground, not $1" >&2; exit 2; }'
    script.write_text(f"#!/bin/sh\n{guard}\n{start}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def _genuine():
    """The folder of the class path; fetched where it is not there."""
    version = DEFAULT_VERSION if TARGET == "genuine" else TARGET
    done = subprocess.run([str(INSTALL_ZOOKEEPER), version], check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout.strip()


def start_servers(folder, members):
    """One server without a membership, or an ensemble; for a `with`."""
    if members == 1:
        return build_server(pathlib.Path(folder), dict(ENSEMBLE_CFG), heap="200m")
    return Ensemble(folder, members)


def fail_over(servers):
    """kill -9 of the leader and, once another one leads, its return. One server alone is killed and started."""
    if not isinstance(servers, Ensemble):
        servers.restart(hard=True)
        return
    leader = servers.leader()
    leader.kill9()
    servers.wait_serving()
    leader.start()


def run_program(command, members, seconds=240.0, env=None):
    """Runs a program on servers of its own; returns how many of its steps passed and failed."""
    with tempfile.TemporaryDirectory(prefix="quenda-client-") as folder, start_servers(folder, members) as servers:
        words = [*map(str, command), servers.hosts, str(members)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, **(env or {})})
        lines = queue.Queue()
        threading.Thread(target=_collect, args=(process.stdout, lines), daemon=True).start()
        try:
            return _follow(process, lines, servers, time.monotonic() + seconds)
        finally:
            process.kill()
            process.wait()


def _collect(stream, lines):
    for line in stream:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def _follow(process, lines, servers, deadline):
    passed = failed = 0
    while True:
        try:
            line = lines.get(timeout=max(deadline - time.monotonic(), 0.0))
        except queue.Empty:
            print("FAILED: the program did not come to its end in time", flush=True)
            return passed, failed + 1
        if line is None:
            print(f"FAILED: the program ended before its last step (status {process.wait()})", flush=True)
            return passed, failed + 1
        print(line, flush=True)
        passed += line.startswith("ok ")
        failed += line.startswith("FAILED ")
        if line == "fail over":
            fail_over(servers)
            process.stdin.write("done\n")
            process.stdin.flush()
        if line == "end":
            return passed, failed


def three_member_tests(sources, pattern):
    """Names of the test functions whose text starts three servers. `pattern` finds heads of functions; its one group is
    the name."""
    names = set()
    for source in sources:
        text = source.read_text()
        heads = list(re.finditer(pattern, text, re.MULTILINE))
        for head, following in zip(heads, [*heads[1:], None]):
            if "StartTestCluster(t, 3," in text[head.end() : following.start() if following else None]:
                names.add(head[1])
    return names
