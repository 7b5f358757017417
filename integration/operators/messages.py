"""Every error and warning that an operator can meet, as they stand in the sources.

    python3 -m integration.operators.messages            # those that the documentation lacks
    python3 -m integration.operators.messages --all
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operating.md"
# What a server or one of its commands says to its operator. Clients and the bench speak to others.
SOURCES = ("crates/server/src", "crates/storage/src", "crates/cli/src/serve.rs", "crates/cli/src/recover",
           "crates/cli/src/logging.rs", "crates/cli/src/log_sink.rs", "crates/cli/src/check_config.rs")
LEFT_OUT = (
    # Answers to whoever calls a command over HTTP, who reads them at once.
    "crates/server/src/admin/auth.rs",
    "crates/server/src/admin/transfer.rs",
    "crates/server/src/http/body.rs",
    # Faulty stores exist for tests alone.
    "crates/storage/src/faulty.rs",
)
TEXT = r'"((?:[^"\\]|\\.)*)"'
CALL = re.compile(r"\b(?:error|warn)!\s*\(|\bRemark::warn\s*\(|\bConfigError::invalid\s*\(|#\[error\s*\(")
WORDS = 4


def sources():
    for place in SOURCES:
        path = ROOT / place
        for file in sorted(path.rglob("*.rs")) if path.is_dir() else [path]:
            name = str(file.relative_to(ROOT))
            if name not in LEFT_OUT and not re.search(r"(^|/|_)tests?(\.rs|/)", name):
                yield name, file.read_text().split("#[cfg(test)]\nmod tests")[0]


def argument(text, start):
    """What stands between the bracket before `start` and the one that closes it."""
    depth, at = 1, start
    while depth and at < len(text):
        sign = text[at]
        if sign == '"':
            at = re.compile(TEXT, re.S).match(text, at).end()
            continue
        if sign == "'" and text[at + 2: at + 3] == "'":
            at += 3
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
        at += 1
    return text[start: at - 1]


def literals(text):
    found = re.findall(TEXT, text, re.S)
    return [re.sub(r"\\\n\s*", "", literal).replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\") for literal in found]


def key(literal):
    """The first words of a literal that say what it is; None for one that only puts others together."""
    parts = [part.strip(" .,:;()=…") for part in re.split(r"\{[^{}]*\}", literal.replace("{{", "").replace("}}", ""))]
    parts = [part for part in parts if len(re.findall(r"[A-Za-z]{2,}", part)) >= 2]
    if not parts:
        return None
    return " ".join(parts[0].split()[:WORDS]).rstrip(".,:;")


def messages():
    """First words → where they stand."""
    found = {}
    for name, text in sources():
        for match in CALL.finditer(text):
            inside = argument(text, match.end())
            if "transparent" in inside[:12]:
                continue
            texts = [literal for literal in literals(inside) if key(literal)]
            for literal in texts[:1] if match[0].startswith("#") else texts:
                line = text.count("\n", 0, match.start()) + 1
                found.setdefault(key(literal), f"{name}:{line}: {literal}")
    return found


def documented():
    section = PAGE.read_text().split("\n## Messages\n")[1].split("\n## ")[0]
    return " ".join(section.replace("`", "").split())


def missing():
    told = documented()
    return {words: place for words, place in messages().items() if words not in told}


if __name__ == "__main__":
    for words, place in (messages() if "--all" in sys.argv else missing()).items():
        print(f"{words!r:60} {place}")
