"""A program in a real terminal (tmux): keys go in, the screen is read."""

import contextlib
import re
import shlex
import subprocess
import time
import uuid


class Terminal:
    """A command in a terminal of its own. `width` and `height` are columns and rows."""

    def __init__(self, command, env=None, width=110, height=50, seconds=15.0):
        self.seconds = seconds
        self.socket = f"quenda-{uuid.uuid4().hex[:12]}"
        settings = " ".join(f"{key}={shlex.quote(value)}" for key, value in (env or {}).items())
        # The exit code stays on the screen.
        line = f"env {settings} {shlex.join(map(str, command))}; echo \"exit code $?\"; sleep 600"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), line)

    def tmux(self, *words):
        command = ["tmux", "-L", self.socket, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def keys(self, *keys):
        """Keys by tmux's names: `Enter`, `Tab`, `C-c`; anything else is typed."""
        for key in keys:
            literal = [] if re.fullmatch(r"Enter|Tab|Up|Down|Left|Right|Home|End|Escape|C-.", key) else ["-l", "--"]
            self.tmux("send-keys", *literal, key)

    def line(self, text):
        self.keys(text, "Enter")

    def screen(self, colours=False):
        """The rows with something on them."""
        text = self.tmux("capture-pane", "-p", "-J", *(["-e"] if colours else []))
        return "\n".join(row.rstrip() for row in text.splitlines() if row.strip())

    def wait_for(self, pattern, colours=False):
        """Waits until the screen matches, and gives it."""
        deadline = time.monotonic() + self.seconds
        while not re.search(pattern, screen := self.screen(colours), re.MULTILINE):
            assert time.monotonic() < deadline, f"no {pattern!r} on the screen:\n{screen}"
            time.sleep(0.05)
        return screen

    def clear(self):
        """An empty screen with a new prompt, so that what follows is not mistaken for what was."""
        self.keys("C-l")

    def close(self):
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.tmux("kill-server")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
