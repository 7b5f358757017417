"""Drives an interactive shell over pipes: one command in, wait for what it must print."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import threading
import time


class Shell:
    """A started shell. `run` sends a line and waits until each pattern has appeared, in order, in what came since."""

    def __init__(self, command, env=None, seconds=20.0):
        self.seconds = seconds
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})}, start_new_session=True,
        )
        self.chunks = queue.Queue()
        self.text = ""
        self.collector = threading.Thread(target=self._collect, daemon=True)
        self.collector.start()

    def _collect(self):
        while piece := os.read(self.process.stdout.fileno(), 65536):
            self.chunks.put(piece.decode("utf-8", "replace"))
        self.chunks.put(None)

    def wait_for(self, *patterns, seconds=None):
        """Waits for the patterns one behind the other; returns the text up to the end of the last match."""
        deadline = time.monotonic() + (seconds or self.seconds)
        taken = ""
        for pattern in patterns:
            while not (match := re.search(pattern, self.text, re.MULTILINE)):
                try:
                    piece = self.chunks.get(timeout=max(deadline - time.monotonic(), 0.001))
                except queue.Empty:
                    raise AssertionError(f"no {pattern!r} in: {taken}{self.text}") from None
                if piece is None:
                    self.chunks.put(None)
                    raise AssertionError(f"the shell ended before {pattern!r}; output: {taken}{self.text}")
                self.text += piece
            taken += self.text[: match.end()]
            self.text = self.text[match.end() :]
        return taken

    def run(self, line, *patterns, seconds=None):
        self.text = ""
        while not self.chunks.empty():
            if self.chunks.get() is None:
                self.chunks.put(None)
                break
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()
        return self.wait_for(*patterns, seconds=seconds)

    def ended(self, seconds=20.0):
        """The exit code, once the shell has ended by itself."""
        return self.process.wait(seconds)

    def kill(self):
        # The whole group: zkCli.sh is a script with Java as its child, which would live on.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.collector.join()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                stream.close()
