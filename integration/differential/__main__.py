"""Random requests to a genuine ZooKeeper and to Quenda, every reply compared: --seeds 200 --steps 150. See README.md."""

import argparse
import collections
import pathlib
import sys
import tempfile
import time

from integration.differential import settings, wanted
from integration.differential.pair import Pair
from integration.differential.run import Runner
from integration.lib.quenda_server import QuendaServer
from integration.zookeeper.genuine import GenuineZooKeeper

PROGRESS_SECONDS = 5.0


def server(kind, folder, changes=None):
    """A launcher for one side; `changes` go over the common configuration."""
    cfg = {**settings.CFG, **(changes or {})}
    if kind == "quenda":
        return QuendaServer(folder, cfg)
    version = {"genuine": "3.9.5"}.get(kind, kind)
    props = {name: cfg.get(name, value) for name, value in settings.JVM_PROPS.items()}
    return GenuineZooKeeper(folder, cfg, props, version=version)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="integration.differential", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds, from --seed on (default 200)")
    parser.add_argument("--steps", type=int, default=150, help="steps a seed (default 150)")
    parser.add_argument("--seed", type=int, help="run only this one; with --seeds, the first one")
    parser.add_argument("--left", default="genuine", help="genuine, debian, quenda or a release such as 3.8.4")
    parser.add_argument("--right", default="quenda", help="as --left (default quenda)")
    parser.add_argument("--no-shrink", action="store_true", help="do not cut failing streams down")
    parser.add_argument("--max-findings", type=int, default=10, help="stop after so many failing seeds (default 10)")
    parser.add_argument("--stats", action="store_true", help="print how often each answer was seen")
    parser.add_argument("--no-wanted", action="store_true", help="report the wanted differences too")
    return parser.parse_args(arguments)


def seeds_of(options):
    if options.seed is None:
        return range(1, options.seeds + 1)
    count = options.seeds if "--seeds" in " ".join(sys.argv) else 1
    return range(options.seed, options.seed + count)


def main():
    options = parse(sys.argv[1:])
    rules = [] if options.no_wanted or options.right != "quenda" else wanted.RULES
    with tempfile.TemporaryDirectory(prefix="differential-") as folder:
        pair = Pair(server(options.left, pathlib.Path(folder) / "left"),
                    server(options.right, pathlib.Path(folder) / "right"), rules)
        pair.start()
        try:
            passed, findings = run_all(Runner(pair, not options.no_shrink), options)
        finally:
            pair.stop()
    report(pair, findings)
    if options.stats:
        print_answers(pair.answers)
    print(f"{passed} passed, {len(findings)} failed")
    return 1 if findings else 0


def run_all(runner, options):
    passed, findings = 0, []
    started = spoke = time.monotonic()
    seeds = seeds_of(options)
    for seed in seeds:
        finding = runner.seed(seed, options.steps)
        if finding:
            findings.append(finding)
            print(finding.report(), flush=True)
            if len(findings) >= options.max_findings:
                print(f"stopped after {len(findings)} findings", flush=True)
                break
        else:
            passed += 1
        if time.monotonic() - spoke > PROGRESS_SECONDS:
            spoke = time.monotonic()
            print(f"seed {seed}: {passed} of {len(seeds)} passed, {len(findings)} failed, "
                  f"{spoke - started:.0f} s", flush=True)
    return passed, findings


def report(pair, findings):
    for name, count in sorted(pair.hits.items()):
        print(f"wanted difference seen {count} times: {name}")
    kinds = collections.Counter(finding.kind() for finding in findings)
    for kind, count in kinds.most_common():
        print(f"found {count} times: {kind}")


def print_answers(answers):
    by_name = collections.defaultdict(list)
    for (name, err), count in sorted(answers.items(), key=lambda item: -item[1]):
        by_name[name].append(f"{err}: {count}")
    for name in sorted(by_name):
        print(f"  {name:28} {'  '.join(by_name[name])}")


if __name__ == "__main__":
    sys.exit(main())
