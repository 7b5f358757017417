"""A program of an application under test: started, listened to, killed, started again.

What it prints goes to one file over all its runs; conditions on lines wait for that file to have them.
"""

import hashlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

from integration.lib.process import HOST, ServerError

_KEPT = set()

# Little memory and little compiling: several of them share a small machine with the servers.
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")


def wait_until(condition, seconds, what, every=0.1):
    """The condition's value as soon as it is true. An OSError counts as "not yet"."""
    deadline = time.monotonic() + seconds
    error = None
    while True:
        try:
            if value := condition():
                return value
            error = None
        except OSError as refused:
            error = refused
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s" + (f" ({error})" if error else ""))
        time.sleep(every)


class Program:
    """`command` is the argument vector; `folder` becomes its working directory and gets its output."""

    def __init__(self, name, command, folder, env=None):
        self.name = name
        self.command = [str(word) for word in command]
        self.folder = pathlib.Path(folder)
        self.env = dict(env or {})
        self.process = None

    @property
    def output_path(self):
        return self.folder / f"{self.name}.out"

    @property
    def error_path(self):
        return self.folder / f"{self.name}.err"

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.output_path, "ab") as out, open(self.error_path, "ab") as err:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=self.folder,
                env={**os.environ, **self.env}, start_new_session=True)
        return self

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def output(self, since=0):
        """What it has printed behind `since` characters."""
        return self.output_path.read_text("utf-8", "replace")[since:] if self.output_path.exists() else ""

    def printed(self):
        """How much it has printed so far: where a later condition begins to look."""
        return len(self.output())

    def find(self, pattern, since=0):
        """Every match of `pattern` at the beginning of a whole line."""
        whole = self.output(since).rpartition("\n")[0]
        return re.findall(f"^(?:{pattern})$", whole, re.MULTILINE)

    def wait_for(self, pattern, seconds, since=0):
        """The last match of a line."""

        def found():
            if matches := self.find(pattern, since):
                return matches
            if not self.alive():
                raise ServerError(f"{self.name} ended (status {self.process.poll()}):\n{self.tail()}")
            return None

        return wait_until(found, seconds, f"{self.name} prints {pattern!r}")[-1]

    def say(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def stop(self, seconds=60.0):
        """SIGTERM, and waits for its end."""
        return self._end(signal.SIGTERM, seconds)

    def kill9(self):
        return self._end(signal.SIGKILL, 30.0)

    def wait(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {seconds} s:\n{self.tail()}") from None

    def tail(self, size=3000):
        err = self.error_path.read_text("utf-8", "replace")[-size:] if self.error_path.exists() else ""
        return f"{self.output()[-size:]}\n{err}"

    def _end(self, number, seconds):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdin.close()


def kept_port():
    """A port for a program that binds it later, or again: below those that the system gives away by itself, so that no
    connection and no "any port" takes it in between."""
    range_path = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
    end = int(range_path.read_text().split()[0]) if range_path.exists() else 32768
    while True:
        port = random.randrange(min(10_000, end - 1_000), end)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        if port not in _KEPT:
            _KEPT.add(port)
            return port


def java_folder(suite):
    """Where a suite's class path lies: its own `install` says it in its last line."""
    script = pathlib.Path(suite) / "install"
    done = subprocess.run([str(script)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"{script} failed with status {done.returncode}")
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def java_command(suite, main, *arguments, heap="192m", options=(), own=True, conf=None):
    """The command line of a class. The suite's own classes are compiled when their sources have changed; what the
    programs look for on the class path may lie in the folder `conf`."""
    jars = java_folder(suite)
    path = [str(conf)] if conf else []
    path += [str(compiled(suite, jars))] if own else []
    path.append(f"{jars}/*")
    return [*JAVA, f"-Xmx{heap}", *options, "-cp", os.pathsep.join(path), main, *arguments]


def compiled(suite, jars):
    """The folder of the classes that `SUITE/src/*.java` compile to, for exactly these sources."""
    sources = sorted((pathlib.Path(suite) / "src").glob("*.java"))
    digest = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in sources)).hexdigest()
    classes = jars.with_name(f"{jars.name}-classes-{digest[:16]}")
    if not classes.exists():
        staging = classes.with_name(f"{classes.name}.{os.getpid()}")
        subprocess.run(["javac", "-nowarn", "-parameters", "-proc:none", "-d", str(staging), "-cp", f"{jars}/*", *map(str, sources)],
                       check=True)
        try:
            staging.rename(classes)
        except OSError:
            if not classes.exists():  # else another run was faster
                raise
    return classes
