"""Java programs of Kafka: the broker and the tools, all from one class path."""

import pathlib
import subprocess

from integration.lib.program import java_command, java_folder

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 240.0


def java(main_class, *words, heap="100m", level="WARN", options=()):
    """The argument vector of a program."""
    options = [*options, f"-Dlog.level={level}", f"-Dlog4j.configuration=file:{HERE}/log4j.properties"]
    return java_command(HERE, main_class, *words, heap=heap, options=options, own=False)


def tool(main_class, *words, options=()):
    """Runs one of Kafka's tools to its end; returns what it prints."""
    done = subprocess.run(java(main_class, *words, options=options), capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise AssertionError(f"{main_class} {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def version(artifact):
    """The version of a jar of the class path, from its name."""
    return next(java_folder(HERE).glob(f"{artifact}-[0-9]*.jar")).stem.removeprefix(f"{artifact}-")
