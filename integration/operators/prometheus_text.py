"""Reading Prometheus' text format, version 0.0.4, by its definition; stricter than Prometheus itself."""

import collections
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"'
SAMPLE = re.compile(rf"^({NAME})(?:\{{(.*)\}})? (\S+)$")
SUFFIXES = {"summary": ("", "_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}

Sample = collections.namedtuple("Sample", "name labels value")


class Family:
    """One metric: its type, its help and its samples."""

    def __init__(self, kind, help_text):
        self.kind = kind
        self.help = help_text
        self.samples = []

    def value(self, suffix="", **labels):
        """The value of the only sample with these labels; None without one."""
        found = [s.value for s in self.samples if s.name.endswith(suffix) and labels.items() <= s.labels.items()]
        assert len(found) < 2, f"{labels} name {len(found)} samples"
        return found[0] if found else None


def parse(text):
    """Families by name."""
    assert text.endswith("\n"), "the last line has no end"
    families, current, helps = {}, None, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            assert name not in helps, f"{name} is explained twice"
            helps[name] = words
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in families, f"{name} is declared twice"
            assert kind in ("counter", "gauge", "summary", "histogram", "untyped"), line
            current = name
            families[name] = Family(kind, helps.get(name))
        elif line and not line.startswith("#"):
            sample = read_sample(line)
            family = families[current]
            allowed = SUFFIXES.get(family.kind, ("",))
            assert sample.name in [current + suffix for suffix in allowed], f"{line} is in the family {current}"
            family.samples.append(sample)
    seen = [(s.name, tuple(sorted(s.labels.items()))) for f in families.values() for s in f.samples]
    assert len(seen) == len(set(seen)), "a sample comes twice"
    return families


def read_sample(line):
    match = SAMPLE.match(line)
    assert match, f"{line!r} is no sample"
    name, labels, value = match.groups()
    pairs = {}
    rest = labels or ""
    while rest:
        label = re.match(LABEL + r",?", rest)
        assert label, f"{line!r} has broken labels"
        assert label[1] not in pairs, f"{line!r} has a label twice"
        pairs[label[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), label[2])
        rest = rest[label.end():]
    return Sample(name, pairs, float(value))


def described(text):
    """Names with types, quantiles and the names of labels: what differs between servers only if their forms differ."""
    lines = []
    for name, family in sorted(parse(text).items()):
        quantiles = sorted({s.labels["quantile"] for s in family.samples if "quantile" in s.labels}, key=float)
        labels = sorted({label for s in family.samples for label in s.labels} - {"quantile", "le"})
        extra = [f"{{{','.join(labels)}}}"] if labels else []
        lines.append(" ".join([name, family.kind, *extra, *quantiles]))
    return "".join(f"{line}\n" for line in lines)
