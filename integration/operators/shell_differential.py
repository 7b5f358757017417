"""Random lines of input for zkCli, run by the genuine shell at a genuine server and by Quenda's at Quenda.

    python3 -m integration.operators.shell_differential [seed [sessions]]

Prints the first difference and the seed that makes it again, and ends with 1 then.
"""

import difflib
import pathlib
import random
import sys
import tempfile

from integration.lib.quenda_server import QuendaServer
from integration.operators.capture_shell import shell
from integration.operators.shell_session import CFG, quenda_shell, run
from integration.zookeeper.genuine import GenuineZooKeeper

LINES = 250
NAMES = ("a", "b", "c-", "d e", "ü", "é.x")
BAD_PATHS = ("/", "a", "/a/", "//", "/a//b", "/..", "/a/./b", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "")
DATA = ("x", "two words", "", "größe", "12345", "a=b,c", "{}", "-x", "--", "'", "null")
ACLS = ("world:anyone:cdrwa", "world:anyone:r", "world:anyone:cdra,ip:127.0.0.1:rw", "auth::cdrwa", "digest:u:x:r",
        "none", "world:anyone:", ":", "a:b", "ip:127.0.0.1/8:cdrwa", "world:anyone:rrwq")
NUMBERS = ("0", "1", "-1", "2", "7", "99999")


class Lines:
    """Makes lines that the genuine shell survives: it ends on numbers that are none."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def maybe(self, *words, chance=0.3):
        return list(words) if self.random.random() < chance else []

    def path(self):
        if self.random.random() < 0.06:
            return self.pick(*BAD_PATHS)
        return "".join(f"/{self.pick(*NAMES)}" for _ in range(self.pick(1, 1, 1, 2, 2, 3)))

    def quoted(self, word):
        quote = "'" if '"' in word else '"'
        return f"{quote}{word}{quote}" if word == "" or " " in word or "'" in word else word

    def mixed(self, *words):
        """Options may stand anywhere, values of options right behind them."""
        options = [word for word in words if isinstance(word, list) and word]
        plain = [word for word in words if isinstance(word, str)]
        for option in options:
            plain.insert(self.random.randint(0, len(plain)), option)
        flat = [piece for word in plain for piece in (word if isinstance(word, list) else [word])]
        return [self.quoted(word) for word in flat]

    def flags(self, letters, chance=0.2):
        return [self.maybe(f"-{letter}", chance=chance) for letter in letters]

    def version(self):
        return self.maybe("-v", self.pick(*NUMBERS))

    def limit(self):
        return f"-{self.pick(*'nbNB')}"

    def old_watch(self):
        return self.maybe("w", chance=0.08)

    def data(self):
        return self.maybe(self.pick(*DATA), chance=0.8)

    def create(self):
        ttl = self.maybe("-t", self.pick("500000", "x", "0"), chance=0.06)
        acl = self.maybe(self.pick(*ACLS), chance=0.2)
        return self.mixed(*self.flags("esc", 0.12), ttl, self.path(), *self.data(), *acl)

    def line(self):
        weighted = {
            "create": (9, self.create),
            "delete": (4, lambda: self.mixed(self.version(), self.path(), *self.maybe("3", chance=0.1))),
            "deleteall": (1, lambda: self.mixed(self.maybe("-b", self.pick("1", "3", "0", "x")), self.path())),
            "set": (6, lambda: self.mixed(self.maybe("-s"), self.version(), self.path(), *self.data())),
            "get": (6, lambda: self.mixed(*self.flags("sbxw"), self.path(), *self.old_watch())),
            "stat": (4, lambda: self.mixed(self.maybe("-w"), self.path(), *self.old_watch())),
            "ls": (6, lambda: self.mixed(*self.flags("swR"), *self.maybe(self.path(), chance=0.97), *self.old_watch())),
            "getAcl": (3, lambda: self.mixed(self.maybe("-s"), self.path())),
            "setAcl": (2, lambda: self.mixed(*self.flags("sR"), self.version(), self.path(), self.pick(*ACLS))),
            "getAllChildrenNumber": (2, lambda: self.mixed(self.path())),
            "sync": (1, lambda: self.mixed(self.path())),
            "setquota": (3, lambda: self.mixed([self.limit(), self.pick("1", "5", "99", "0", "x", "-3")], self.path())),
            "delquota": (2, lambda: self.mixed(self.maybe(self.limit(), chance=0.5), self.path())),
            "listquota": (3, lambda: self.mixed(self.path())),
            "removewatches": (2, lambda: self.mixed(*self.flags("cdal"), self.path())),
            # The genuine one keeps the mode of the last time, and ends on a malformed path.
            "addWatch": (2, lambda: self.mixed(["-m", self.pick("PERSISTENT", "persistent_recursive", "x")],
                                               f"/{self.pick(*NAMES)}")),
            "addauth": (1, lambda: self.mixed("digest", self.pick("u:p", "v:q"))),
            "redo": (1, lambda: [str(self.random.randint(0, 300))]),
            "history": (1, list),
            "printwatches": (1, lambda: self.maybe("on")),
            "config": (1, lambda: self.mixed(*self.flags("cs"))),
            "version": (1, lambda: self.maybe("x")),
        }
        names = list(weighted)
        name = self.random.choices(names, [weight for weight, _ in weighted.values()])[0]
        words = weighted[name][1]()
        if self.random.random() < 0.01:
            words.append(self.pick("-z", "-sw", "--long", "-s=3"))
        return " ".join([name, *words])


def write(seed, file):
    lines = Lines(seed)
    mode = lines.pick("editor", "plain")
    # The exit code is that of the last line; Quenda's own after `redo`.
    made = [*(lines.line() for _ in range(LINES)), "get /a"]
    file.write_text(f"mode {mode}\n" + "".join(f"| {line}\n" for line in made))


def compare(seed, command):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        session = folder / "session.txt"
        write(seed, session)
        with GenuineZooKeeper(folder / "genuine", CFG, heap="200m") as server:
            wanted = run(session, server.port, command)
        with QuendaServer(folder / "quenda", CFG) as server:
            found = run(session, server.port, quenda_shell(folder))
    return list(difflib.unified_diff(wanted.splitlines(), found.splitlines(), "genuine", "quenda", lineterm="", n=3))


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    sessions = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    command = shell()
    for seed in range(first, first + sessions):
        difference = compare(seed, command)
        print(f"seed {seed}: {'the same' if not difference else 'different'}")
        if difference:
            print("\n".join(difference))
            sys.exit(1)


if __name__ == "__main__":
    main()
