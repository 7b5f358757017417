"""Captures a genuine server's answers to the four-letter words, as goldens for the tests of the server crate.

    python3 -m integration.four_letter.capture [folder]

Two sessions create ephemeral znodes and watches, then every word is asked. What differs from run to run (ports, ids,
times, latencies, sizes) and what comes in hash order is normalised, so that a second capture gives the same files.
The server uses its Netty listener, whose `[1]` of every connection is what we follow; `dump` alone is that of the NIO
listener, which shows the connections.
"""

import pathlib
import re
import sys
import tempfile

from integration.lib.zkwire import OP, Conn, four_letter, read
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

DEFAULT_FOLDER = pathlib.Path(__file__).parents[2] / "crates" / "server" / "src" / "four_letter" / "golden"
NETTY = {"serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"}
EPHEMERAL = 1
WORDS = "ruok isro gtmk srvr stat cons conf dirs dump envi hash wchs wchc wchp mntr"
IDLE_WORDS = "wchs wchc wchp"
AFTER_RESET = {"crst": "cons", "srst": "srvr"}
SUBSTITUTES = (
    (r"Zookeeper version: .*", "Zookeeper version: VERSION"),
    (r"Latency min/avg/max: (?!0/0\.0/0$).*", "Latency min/avg/max: 1/2.9167/18"),
    (r"Received: \d+", "Received: 28"),
    (r"Sent: \d+", "Sent: 26"),
    (r"est=\d+", "est=1795984076326"),
    (r"lresp=[1-9]\d*,.*\)", "lresp=822492,llat=39,minlat=1,avglat=20,maxlat=116)"),
    (r"clientPort=\d+", "clientPort=2181"),
    (r"(dataDir|dataLogDir)=.*", r"\1=/data/version-2"),
    (r"(dataDirSize=|dataLogSize=|datadir_size: |logdir_size: )\d+", r"\g<1>67109358"),
    (r"expire at .*", "expire at Sun Nov 29 20:28:28 UTC 2026:"),
)
# When the sets of connections end, the first one first; a server that rounds less may have more of them.
CONNECTIONS_END = ["18", "28"]


def ask(port, names, word):
    """The normalised answer to one word; `names` maps session ids and ports to fixed ones."""
    text = four_letter(port, word)
    for volatile, fixed in names.items():
        text = text.replace(volatile, fixed)
    if word == "mntr":
        # Names alone: values differ from run to run. Those with a namespace depend on the paths in use.
        keys = sorted(line.split("\t")[0] for line in text.splitlines())
        return "".join(f"{key}\n" for key in keys if not key.endswith("_per_namespace"))
    if word == "envi":
        text = re.sub(r"=\d+MB", "=1MB", text)
        return re.sub(r"=(?!1MB\n).*", "=VALUE", text)
    text = re.sub(r"/127\.0\.0\.1:(?!4000)\d+", "/127.0.0.1:40003", text)
    for pattern, fixed in SUBSTITUTES:
        text = re.sub(pattern, fixed, text, flags=re.MULTILINE)
    return in_order(word, text)


def as_slow_as(golden, text):
    """`text` with latencies where `golden` has some: those of a fast server may all round to 0."""
    if "Latency min/avg/max: 1/2.9167/18" not in golden:
        return text
    return text.replace("Latency min/avg/max: 0/0.0/0\n", "Latency min/avg/max: 1/2.9167/18\n")


def in_order(word, text):
    """Sorts what the server prints in hash order: connections, and the lines below each heading."""
    lines = text.split("\n")
    if word in ("cons", "stat"):
        lines[lines.index("Clients:") + 1 if word == "stat" else 0 : lines.index("")] = sorted(
            line for line in lines if line.startswith(" ")
        )
    elif word in ("wchc", "wchp"):
        lines = [*sorted_blocks(lines[:-2]), "", ""]
    elif word == "dump":
        sets, ephemerals, end = 2, lines.index("ephemeral nodes dump:"), lines.index("Connections dump:")
        lines = [
            *lines[:sets],
            *sorted_blocks(lines[sets:ephemerals]),
            *lines[ephemerals : ephemerals + 2],
            *sorted_blocks(lines[ephemerals + 2 : end]),
            *lines[end : end + 2],
            *numbered_sets(lines[end + 2 :]),
        ]
    return "\n".join(lines)


def sorted_blocks(lines):
    """Headings in order, each with its indented lines in order behind it."""
    blocks = []
    for line in lines:
        if line.startswith("\t"):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return [line for block in sorted(blocks) for line in [block[0], *sorted(block[1:])]]


def numbered_sets(lines):
    """Sets of connections with the times of CONNECTIONS_END, and each set's lines in order."""
    ends, blocks = iter(CONNECTIONS_END), []
    for line in lines:
        if "expire at" in line:
            blocks.append([line.replace(":28 UTC", f":{next(ends, '59')} UTC")])
        elif line.startswith("\t"):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return [line for block in blocks for line in [block[0], *sorted(block[1:])]]


def prepare(first, second):
    first.create("/a", b"x")
    first.create("/b", b"xyz")
    first.create("/e1", b"", flags=EPHEMERAL)
    first.create("/e2", b"", flags=EPHEMERAL)
    second.create("/e3", b"", flags=EPHEMERAL)
    first.get("/a", watch=True)
    first.get("/b", watch=True)
    first.send(OP.GET_CHILDREN, read("/", True))
    first.reply()
    second.get("/a", watch=True)


def capture(port):
    """All answers by file name."""
    with Conn(port) as first, Conn(port) as second:
        prepare(first, second)
        names = {}
        for number, connection in ((1, first), (2, second)):
            names[f"{connection.session:x}"] = f"10000000000000{number}"
            for behind in ("[", " sessionId"):
                names[f":{connection.sock.getsockname()[1]}{behind}"] = f":4000{number}{behind}"
        answers = {word: ask(port, names, word) for word in WORDS.split()}
        for word, shown in AFTER_RESET.items():
            answers[word] = ask(port, names, word)
            answers[f"{shown}_after_{word}"] = ask(port, names, shown)
        answers["stmk"] = four_letter(port, "stmk\0\0\0\0\0\0\0B")
        answers["gtmk_after_stmk"] = four_letter(port, "gtmk")
    return answers


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        with GenuineZooKeeper(pathlib.Path(data) / "all", NETTY) as server:
            idle = {f"{word}_idle": ask(server.port, {}, word) for word in IDLE_WORDS.split()}
            answers = {**idle, **capture(server.port)}
        with GenuineZooKeeper(pathlib.Path(data) / "nio") as server:
            answers["dump"] = capture(server.port)["dump"]
        with GenuineZooKeeper(pathlib.Path(data) / "few", {**NETTY, "4lw.commands.whitelist": "ruok"}) as server:
            answers["refused"] = four_letter(server.port, "wchc")
    for name, text in answers.items():
        (folder / f"{name}.txt").write_text(text)
    print(f"{len(answers)} answers of ZooKeeper {DEFAULT_VERSION} in {folder}")


if __name__ == "__main__":
    main()
