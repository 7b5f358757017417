"""Has callgrind count a program's rounds: instructions, and calls of the allocator, of each."""

import collections
import os
import pathlib
import re
import subprocess
import tempfile

# What is called in it counts; see crates/node/examples/instructions/main.rs.
COUNTED = "counted_by_callgrind"
ALLOCATIONS = {"__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"}

# Counts must not hang on the processor: of the C library's ways to copy bytes the one that every x86-64 processor has
# (names of old and new releases), and an allocator that does not look at the clock.
ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=" + ",".join(
        f"-{name}" for name in (
            "AVX_Fast_Unaligned_Load", "AVX2_Usable", "AVX2", "AVX512F_Usable", "AVX512F", "AVX512VL", "EVEX", "ERMS", "FSRM",
        )
    ),
    "MIMALLOC_PURGE_DELAY": "-1",
}

Counts = collections.namedtuple("Counts", "instructions allocations")


def measure(program, names):
    """{name of the work: Counts an operation}, in order; of all work, or of `names`."""
    measured = {}
    for name in names or [None]:
        measured.update(_run(program, name))
    return measured


def _run(program, name):
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/counted",
            # What comes before goes into a dump of its own. With the same pattern twice one of the options would be dropped.
            f"--dump-before=*::{COUNTED}", f"--dump-after=instructions::{COUNTED}", program,
        ] + ([name] if name else [])
        environment = {**os.environ, **ENVIRONMENT}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stderr}")
        measured = {}
        for number, line in enumerate(done.stdout.splitlines(), start=1):
            operations, work = line.split("\t")
            dump = pathlib.Path(folder, f"counted.{2 * number}").read_text(encoding="utf-8", errors="replace")
            counts = parse(dump)
            measured[work] = Counts(*(count / int(operations) for count in counts))
        if not measured:
            raise SystemExit(f"the program has no such work: {name}")
        return measured


def parse(dump):
    """Counts of one dump."""
    instructions = int(re.search(r"^(?:summary|totals): (\d+)", dump, re.MULTILINE).group(1))
    if instructions == 0:
        raise SystemExit(f"callgrind does not find {COUNTED} in the program")
    names, allocations, called = {}, 0, None
    for line in dump.splitlines():
        if found := re.match(r"c?fn=\((\d+)\)(?: (.*))?$", line):
            number, name = found.groups()
            if name is not None:
                names[number] = name
            called = names.get(number, "") if line.startswith("c") else None
        elif line.startswith("calls=") and called and called.split("::")[-1] in ALLOCATIONS:
            allocations += int(re.match(r"calls=(\d+)", line).group(1))
    return Counts(instructions, allocations)
