"""Captures the answers of a genuine ensemble to the four-letter words that say more there than elsewhere, as goldens
for the tests of the server crate.

    TARGET=genuine python3 -m integration.four_letter.capture_ensemble [folder]

Three voters and an observer, a session with an ephemeral znode on the leader and one on a follower. Then the followers
are killed: what is left answers without a quorum, by default not at all, then in read-only mode.
"""

import pathlib
import re
import sys
import tempfile

from integration.four_letter import capture
from integration.lib.ensemble import Ensemble
from integration.lib.process import four_letter_word
from integration.lib.target import IS_QUENDA
from integration.lib.zkwire import Conn, eventually

CFG = {} if IS_QUENDA else capture.NETTY
OBSERVER = 4
PLACED_WORDS = "isro srvr conf dump mntr".split()
ALONE_WORDS = "ruok isro srvr stat mntr conf dump hash cons dirs wchs wchc wchp crst srst gtmk".split()
READ_ONLY_WORDS = "isro srvr stat conf mntr dump".split()
SUBSTITUTES = (
    (r"(initLimit|syncLimit)=\d+", r"\1=7"),
    (r"(electionPort|quorumPort)=\d+", r"\1=1000"),
    (r"serverId=\d+", "serverId=3"),
    (r"127\.0\.0\.1:\d+:\d+:(participant|observer);127\.0\.0\.1:\d+", r"127.0.0.1:2888:3888:\1;127.0.0.1:2181"),
    # Without reconfig a genuine ensemble shows 0, ours the zxid that it was founded with.
    (r"^version=[0-9a-f]+", "version=0"),
    (r"Proposal sizes last/min/max: \d+/\d+/\d+", "Proposal sizes last/min/max: 87/48/87"),
    (r"(Zxid: 0x)[0-9a-f]+", r"\g<1>100000004"),
    (r"(Outstanding|Connections|Received|Sent): \d+", r"\1: 1"),
    (r"^ /127\.0\.0\.1:\d+\[.*", " /127.0.0.1:40003[1](queued=0,recved=1,sent=0)"),
)
PLACE = "version server_state peer_state observer_master_id quorum_size learners followers synced_followers"
PLACE += " synced_non_voting_followers synced_observers pending_syncs"


def ask(member, names, word):
    if word == "mntr":
        lines = four_letter_word(member.port, word, host=member.host).splitlines()
        values = dict(line.split("\t", 1) for line in lines if "\t" in line)
        values["zk_version"] = "VERSION"
        if "zk_observer_master_id" in values:
            values["zk_observer_master_id"] = "3"
        values.pop("zk_followers", None)  # the name of old releases, which we answer too
        placed = {f"zk_{key}": values.get(f"zk_{key}") for key in PLACE.split()}
        return "".join(f"{key}\t{value}\n" for key, value in placed.items() if value is not None)
    text = capture.ask(member.port, names, word)
    for pattern, fixed in SUBSTITUTES:
        text = re.sub(pattern, fixed, text, flags=re.MULTILINE)
    # The connections of `dump` are those of a single server, and captured there.
    return text.partition("Connections Sets")[0]


def placed(ensemble):
    """Answers of a leader, a follower and the observer, in that state."""
    leader, follower = ensemble.leader(), ensemble.followers()[0]
    answers = {"leader_srvr_fresh": ask(leader, {}, "srvr")}
    with Conn(leader.port) as first, Conn(follower.port) as second:
        first.create("/e1", b"", flags=capture.EPHEMERAL)
        second.create("/e2", b"", flags=capture.EPHEMERAL)
        names = {f"{first.session:x}": "100000000000001", f"{second.session:x}": "100000000000002"}
        for member in (follower, ensemble[OBSERVER]):
            eventually(lambda member=member: member.zxid() == leader.zxid(), seconds=60)
        for name, member in (("leader", leader), ("follower", follower), ("observer", ensemble[OBSERVER])):
            answers.update({f"{name}_{word}": ask(member, names, word) for word in PLACED_WORDS})
    return answers


def left_alone(ensemble):
    """Kills all voters but the leader and gives the one that is left."""
    leader = ensemble.leader()
    for follower in ensemble.followers():
        follower.kill9()
    return leader


def capture_all(folder):
    answers = {}
    with Ensemble(folder / "three", members=OBSERVER, observers=[OBSERVER], cfg=CFG) as ensemble:
        answers.update(placed(ensemble))
        member = left_alone(ensemble)
        eventually(lambda: "not currently serving" in four_letter_word(member.port, "srvr"), seconds=60)
        answers.update({f"alone_{word}": four_letter_word(member.port, word) for word in ALONE_WORDS})
    with Ensemble(folder / "two", members=2, cfg={**CFG, "readonlymode.enabled": "true"}) as ensemble:
        member = left_alone(ensemble)
        eventually(lambda: member.mode() == "read-only", seconds=60)
        answers.update({f"readonly_{word}": ask(member, {}, word) for word in READ_ONLY_WORDS})
    return answers


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else capture.DEFAULT_FOLDER / "ensemble"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        answers = capture_all(pathlib.Path(data))
    for name, text in answers.items():
        (folder / f"{name}.txt").write_text(text)
    print(f"{len(answers)} answers in {folder}")


if __name__ == "__main__":
    main()
