"""Sessions with zkCli as files, run by the genuine shell or by Quenda's, and what is compared of them.

A file has one step a line: `$ WORDS` runs the shell once with these words behind its options; lines `| LINE` that
follow each other are the input of one shell. Its first line may be `mode editor`: the shell with its line editor,
zkCli's usual form, which is Quenda's program under the name zkCli.sh. In `mode plain` it is zkCli without one, and
`quenda shell`.
"""

import itertools
import os
import pathlib
import re
import shlex
import subprocess

from integration.lib.quenda_server import quenda_binary

HERE = pathlib.Path(__file__).parent
SESSIONS = sorted((HERE / "shell_sessions").glob("*.txt"))
CFG = {
    "extendedTypesEnabled": "true",
    "DigestAuthenticationProvider.superDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",  # super:test
    "enforceQuota": "true",
}
ENVIRONMENT = {"TZ": "Europe/Berlin"}
JAVA = ("java", "-Xmx200m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
# The genuine one prints the two lines apart: others may come between.
HEADING = "\nWATCHER::\n"
EVENT = re.compile(r"\n(WatchedEvent .*)\n")
CONNECTED = "WatchedEvent state:SyncConnected type:None path:null zxid: -1"
# What the genuine one says of its terminal.
CHATTER = re.compile(r"^.* org\.jline\.utils\.Log logr\nWARNING: Unable to create a system terminal.*\n", re.MULTILINE)
EDITOR, NO_EDITOR = "JLine support is enabled\n", "JLine support is disabled\n"
OWNER = re.compile(r"(ephemeralOwner = )0x([1-9a-f][0-9a-f]*)")
ZXID = re.compile(r"([cmp]Zxid = )0x([1-9a-f][0-9a-f]*)")
EVENT_ZXID = re.compile(r"(zxid: )(\d+)")
VERSION = re.compile(r"ZooKeeper CLI version: 3\.9\.5.*")
DATE = re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d (CET|CEST) \d{4}")


def golden(session):
    return HERE / "golden" / "shell" / session.name


def genuine_shell(class_path, editor_jars):
    """The command of the genuine shell; `editor_jars` are those of its own needs."""

    def command(editor):
        jars = [jar for jar in editor_jars if editor or "jline" not in pathlib.Path(jar).name]
        return [*JAVA, "-cp", os.pathsep.join([class_path, *map(str, jars)]), "org.apache.zookeeper.ZooKeeperMain"]

    return command


def quenda_shell(folder):
    """The command of Quenda's shell."""

    def command(editor):
        if not editor:
            return [str(quenda_binary()), "shell"]
        link = pathlib.Path(folder) / "zkCli.sh"
        if not link.exists():
            link.symlink_to(quenda_binary().resolve())
        return [str(link)]

    return command


def steps(session):
    """Mode and steps of a file: (words, None) or ([], input)."""
    editor, found = False, []
    for line in session.read_text().splitlines():
        if line.startswith("mode "):
            editor = line == "mode editor"
        elif line.startswith("$"):
            found.append((line, shlex.split(line[1:]), None))
        elif line.startswith("|"):
            if not found or found[-1][2] is None:
                found.append(("|", ["-waitforconnection"], ""))
            found[-1] = (*found[-1][:2], found[-1][2] + line[2:] + "\n")
    return editor, found


def without_order(events):
    """What comes in the order of Java's hash codes is sorted: watches removed together, znodes deleted in one batch."""

    def together(event):
        return "WatchRemoved" if "WatchRemoved" in event else re.search(r"zxid: (.*)", event)[1]

    runs = itertools.groupby(events, key=together)
    return [event for _, run in runs for event in sorted(run)]


class Normaliser:
    """Replaces what differs from run to run; the same number gets the same name all over a session."""

    def __init__(self, port):
        self.hosts = f"127.0.0.1:{port}"
        self.names = {}

    def name(self, kind, number):
        return self.names.setdefault((kind, number), f"{kind}{len(self.names) + 1}")

    def text(self, text):
        text = text.replace(self.hosts, "HOST:PORT")
        text = DATE.sub("DATE", text)
        text = OWNER.sub(lambda found: found[1] + self.name("SESSION", found[2]), text)
        text = ZXID.sub(lambda found: found[1] + self.name("ZXID", int(found[2], 16)), text)
        text = EVENT_ZXID.sub(lambda found: found[1] + self.name("ZXID", int(found[2])), text)
        return VERSION.sub("ZooKeeper CLI version: 3.9.5", text)

    def outcome(self, done):
        """Exit code, standard output without events, standard error, events."""
        out = done.stdout.replace(HEADING, "")
        if EDITOR in out:
            # At the end of the input it says that its editor is gone; not after `quit`.
            out = out.replace(NO_EDITOR, "")
        # When the connection stands is up to the clock, and so is where in the text events come.
        events = without_order([event for event in EVENT.findall(out) if event != CONNECTED])
        parts = {
            "out": EVENT.sub("", out),
            "err": CHATTER.sub("", done.stderr),
            "events": "".join(f"{event}\n" for event in events),
        }
        shown = [f"--{title}\n{self.text(text)}".rstrip("\n") for title, text in parts.items() if text]
        return "\n".join([f"exit code {done.returncode}", *shown]) + "\n"


def run(session, port, command):
    """The whole session, normalised."""
    editor, found = steps(session)
    normaliser = Normaliser(port)
    shown = []
    for title, words, lines in found:
        done = subprocess.run(
            [*command(editor), "-server", normaliser.hosts, *words], input=lines if lines is not None else "",
            capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **ENVIRONMENT},
        )
        heading = title if lines is None else "".join(f"| {line}\n" for line in lines.splitlines()).rstrip("\n")
        shown.append(f"{heading}\n{normaliser.outcome(done)}\n")
    return "".join(shown)
