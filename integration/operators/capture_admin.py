"""Captures what a genuine AdminServer answers, as goldens for test_admin.py.

    python3 -m integration.operators.capture_admin [folder]

Every command in each state that a member can be in: alone, leader, follower, observer, without a quorum. Kept are status,
content type, error, and the names, order and types of all fields: values differ from run to run.
"""

import contextlib
import json
import pathlib
import sys
import tempfile

from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.zkwire import Conn, eventually
from integration.operators.admin import COMMANDS, admin_cfg, command, described, pretty
from integration.zookeeper.genuine import GenuineZooKeeper

FOLDER = pathlib.Path(__file__).parent / "golden" / "admin"
NETTY = {"serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"}
EPHEMERAL = 1
OBSERVER = 4
# A genuine one fails on it with an exception while it does not serve.
FAILING = {"monitor"}


def prepare(conn):
    """A session with an ephemeral znode and a watch."""
    conn.create("/a", b"x")
    conn.create("/e", b"", flags=EPHEMERAL)
    conn.get("/a", watch=True)


def capture(port, without=()):
    answers = {}
    for name in COMMANDS:
        if name in without:
            continue
        answer = command(port, name)
        assert answer.text == pretty(answer.json), f"{name} is printed in another form"
        answers[name] = described(answer)
    for name in ("monitor", "system_properties"):
        # Which there are differs from server to server; see test_admin.py.
        if name in answers:
            answers[name]["shape"] = dict(sorted(answers[name]["shape"].items()))
    return answers


def is_up(port):
    with contextlib.suppress(OSError):
        return command(port, "ruok").status == 200
    return False


def not_serving(port):
    return command(port, "server_stats").error is not None


def capture_all(folder):
    port = free_port()
    with GenuineZooKeeper(folder / "alone", {**NETTY, **admin_cfg(port)}, heap="200m") as server, Conn(server.port) as conn:
        prepare(conn)
        answers = {"standalone": capture(port)}
    ports = {number: free_port() for number in range(1, OBSERVER + 1)}
    own = {number: admin_cfg(port) for number, port in ports.items()}
    with Ensemble(folder / "four", members=OBSERVER, observers=[OBSERVER], cfg=NETTY, member_cfg=own,
                  target="genuine") as ensemble:
        leader, follower = ensemble.leader(), ensemble.followers()[0]
        members = {"leader": leader, "follower": follower, "observer": ensemble[OBSERVER]}
        with contextlib.ExitStack() as conns:
            first = conns.enter_context(Conn(leader.port))
            prepare(first)
            for member in (follower, ensemble[OBSERVER]):
                eventually(lambda member=member: member.zxid() == leader.zxid(), seconds=60)
                other = conns.enter_context(Conn(member.port))
                other.get("/a", watch=True)
            for state, member in members.items():
                eventually(lambda member=member: is_up(ports[member.number]), seconds=60)
                answers[state] = capture(ports[member.number])
        for member in ensemble.followers():
            member.kill9()
        eventually(lambda: not_serving(ports[leader.number]), seconds=60)
        answers["not_serving"] = capture(ports[leader.number], without=FAILING)
    return answers


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        for state, answers in capture_all(pathlib.Path(data)).items():
            (folder / f"{state}.json").write_text(json.dumps(answers, indent=1) + "\n")
            print(f"{state}: {len(answers)} answers")


if __name__ == "__main__":
    main()
