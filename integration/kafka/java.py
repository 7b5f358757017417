"""Java programs of Kafka: the broker and the tools, all from one class path."""

import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
# Short-lived programs and small brokers: what starts fast is worth more than what is fast after a minute.
FAST_START = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]


def home():
    """The folder with the jars, see `install`."""
    return pathlib.Path(os.environ["KAFKA_HOME"])


def java(main_class, *words, heap="100m", level="WARN"):
    """The argument vector of a program."""
    return ["java", f"-Xmx{heap}", *FAST_START, f"-Dlog.level={level}", f"-Dlog4j.configuration=file:{HERE}/log4j.properties",
            "-cp", f"{home()}/*", main_class, *words]


def tool(main_class, *words, seconds=180.0):
    """Runs one of Kafka's tools to its end; returns what it prints."""
    done = subprocess.run(java(main_class, *words), capture_output=True, text=True, timeout=seconds, check=False)
    if done.returncode:
        raise AssertionError(f"{main_class} {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def version(artifact):
    """The version of a jar of the class path, from its name."""
    return next(home().glob(f"{artifact}-[0-9]*.jar")).stem.removeprefix(f"{artifact}-")
