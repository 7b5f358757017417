"""Captures what a genuine leader answers that by `leaderServes=no` serves no clients, as the golden of
test_leader_serves.py: the four-letter words, and whether the AdminServer's commands have an answer. Their form is that
of any other leader, see capture_admin.py.

    python3 -m integration.operators.capture_leader_serves
"""

import contextlib
import json
import pathlib
import tempfile

from integration.lib.ensemble import Ensemble
from integration.lib.process import four_letter_word, free_port
from integration.lib.zkwire import eventually
from integration.operators.admin import COMMANDS, admin_cfg, command

CFG = {"leaderServes": "no"}
WORDS = "ruok isro srvr stat mntr conf cons crst srst dump dirs hash gtmk wchs wchc wchp".split()
GOLDEN = pathlib.Path(__file__).parent / "golden" / "leader_serves.json"
# A genuine one fails on it with an exception, as there is nothing behind the client port.
FAILING = {"connection_stat_reset"}


def build(folder, target, members=3, **options):
    """An ensemble whose leader serves nobody, and the ports of administration by number. Nothing is started."""
    ports = {number: free_port() for number in range(1, members + 1)}
    own = {number: admin_cfg(port) for number, port in ports.items()}
    cfg = {**CFG, **options.pop("cfg", {})}
    return Ensemble(folder, members=members, cfg=cfg, member_cfg=own, target=target, **options), ports


def settled(ensemble, ports):
    """The leader, once all others serve and it counts them as in step."""
    eventually(lambda: len(ensemble.modes()) == len(ensemble) - 1, seconds=60, what="the others serve")
    leader = next(member for member in ensemble if not member.mode())

    def counted():
        answer = command(ports[leader.number], "monitor").json
        return answer.get("synced_followers") == len(ensemble) - 1

    eventually(counted, seconds=60, what="all are in step")
    return leader


def answers(leader, port):
    words = {word: four_letter_word(leader.port, word, host=leader.host) for word in WORDS}
    told = {name: command(port, name) for name in COMMANDS if name not in FAILING}
    return {"words": words, "commands": {name: [answer.status, answer.error] for name, answer in told.items()}}


def main():
    with tempfile.TemporaryDirectory() as folder:
        ensemble, ports = build(pathlib.Path(folder), "genuine")
        with contextlib.closing(ensemble):
            ensemble.spawn()
            leader = settled(ensemble, ports)
            found = answers(leader, ports[leader.number])
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{GOLDEN}: {len(found['words'])} words, {len(found['commands'])} commands")


if __name__ == "__main__":
    main()
