"""One server process under test: configuration file, start, readiness, stop.

The genuine server and Quenda are driven through the same interface, so that a harness can exchange one for
the other. Everything stays on this machine: on 127.0.0.1, or in network namespaces of its own.
"""

import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time

HOST = "127.0.0.1"

BASE_CFG = {
    "tickTime": "2000",
    "maxClientCnxns": "0",
    "4lw.commands.whitelist": "*",
    "admin.enableServer": "false",
}


class ServerError(Exception):
    """The server did not start, died, or did not stop in time."""


def free_port():
    """A TCP port on 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def four_letter_word(port, word, timeout=5.0, host=HOST):
    """The whole answer to a four-letter word, as text; empty when the server just closes."""
    with socket.create_connection((host, port), timeout=timeout) as sock:
        sock.sendall(word.encode("ascii"))
        answer = b""
        while True:
            piece = sock.recv(65536)
            if not piece:
                return answer.decode("utf-8", "replace")
            answer += piece


class ServerProcess:
    """Base of the launchers. `extra_cfg` entries override the base ones; a value of None drops the key.

    `prefix` are words in front of the command line, such as the ones that enter a network namespace; they must
    replace themselves by the server, so that signals and the process id are its own.
    """

    name = "server"
    host = HOST
    prefix = ()
    # A server that writes its configuration file itself (reconfig does) finds it again as it has left it.
    keeps_cfg = False

    def __init__(self, data_dir, extra_cfg=None, env=None, port=None):
        self.data_dir = pathlib.Path(data_dir)
        self.extra_cfg = dict(extra_cfg or {})
        self.env = dict(env or {})
        self.port = port
        self.process = None
        self._log = None

    @property
    def log_path(self):
        """Where standard output and standard error of all runs are appended."""
        return self.data_dir / "server.log"

    @property
    def cfg_path(self):
        return self.data_dir / "zoo.cfg"

    @property
    def pid(self):
        return self.process.pid if self.process else None

    @property
    def pids(self):
        return [self.pid]

    @property
    def hosts(self):
        """Connection string for a client."""
        return f"{self.host}:{self.port}"

    def command(self):
        """The argument vector that starts the server with `self.cfg_path`."""
        raise NotImplementedError

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def start(self, timeout=60.0):
        """Starts the process and returns when it serves requests."""
        if self.alive():
            raise ServerError(f"{self.name} is already running")
        self.data_dir.mkdir(parents=True, exist_ok=True)
        # A port found free may be taken before the server binds it; a chosen port is kept over restarts.
        attempts = 3 if self.port is None else 1
        for attempt in range(attempts):
            if self.port is None or attempt:
                self.port = free_port()
            self.spawn()
            if self._wait_ready(timeout):
                return self
        status = self.process.poll()
        self.kill9()
        raise ServerError(f"{self.name} did not start (exit status {status}); log:\n{self.log_tail()}")

    def stop(self, timeout=30.0):
        """Asks the process to end (SIGTERM) and waits; returns its exit status."""
        return self._signal_and_wait(signal.SIGTERM, timeout)

    def kill9(self):
        """Ends the process at once, as a crash would."""
        return self._signal_and_wait(signal.SIGKILL, 30.0)

    def restart(self, hard=False, timeout=60.0):
        """Stops (or kills) and starts again on the same port and data."""
        if hard:
            self.kill9()
        else:
            self.stop()
        return self.start(timeout)

    def wipe(self):
        """Removes everything the stopped server has stored."""
        shutil.rmtree(self.data_dir / "data", ignore_errors=True)

    def log_tail(self, size=4000):
        if not self.log_path.exists():
            return ""
        return self.log_path.read_text("utf-8", "replace")[-size:]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill9()

    def _cfg(self):
        cfg = dict(BASE_CFG, dataDir=str(self.data_dir / "data"), clientPort=str(self.port))
        cfg["clientPortAddress"] = self.host
        cfg.update(self.extra_cfg)
        return {key: value for key, value in cfg.items() if value is not None}

    def spawn(self):
        """Starts the process and does not wait for anything."""
        if not (self.keeps_cfg and self.cfg_path.exists()):
            self.cfg_path.write_text("".join(f"{key}={value}\n" for key, value in self._cfg().items()))
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.env},
                cwd=self.data_dir,
                start_new_session=True,
            )

    def _wait_ready(self, timeout):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.alive():
            try:
                if self.serving():
                    return True
            except OSError:
                pass  # not listening yet
            time.sleep(0.02)
        return False

    def serving(self):
        """Whether it answers requests at this moment; OSError when nobody listens."""
        answer = four_letter_word(self.port, "srvr", host=self.host)
        if "not currently serving" in answer:
            return False
        return "Mode:" in answer or self._handshake_answered()

    def _handshake_answered(self):
        """Whether a new session is granted; for configurations that do not answer `srvr`."""
        request = struct.pack(">iqiqi", 0, 0, 1000, 0, 16) + bytes(16) + b"\0"
        with socket.create_connection((self.host, self.port), timeout=5.0) as sock:
            sock.sendall(struct.pack(">i", len(request)) + request)
            granted = len(sock.recv(4)) == 4
            sock.sendall(struct.pack(">iii", 8, 1, -11))
            return granted

    def _signal_and_wait(self, number, timeout):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise ServerError(f"{self.name} did not end within {timeout} s; log:\n{self.log_tail()}") from None
