"""What can be seen of a server process from outside: memory, and the time until it serves."""

import contextlib
import pathlib
import subprocess
import threading
import time

from integration.lib import zkwire


def status_bytes(pid, field):
    """A memory field of /proc/<pid>/status in bytes: VmRSS now, VmHWM at its peak."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/{pid}/status has no {field}")


def resident_bytes(pids):
    """Resident memory of some processes together."""
    return sum(status_bytes(pid, "VmRSS") for pid in pids)


def settled_bytes(*pids, seconds=5.0):
    """Resident memory once it has stopped to move, or after that many seconds."""
    deadline = time.monotonic() + seconds
    last = resident_bytes(pids)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        now = resident_bytes(pids)
        if abs(now - last) < 1 << 20:
            return now
        last = now
    return last


def collect_garbage(pid):
    """Asks a Java process for a full collection."""
    subprocess.run(["jcmd", str(pid), "GC.run"], stdout=subprocess.DEVNULL, check=True)


def first_reply(port, path, deadline):
    """Waits until a getData of `path` is answered on a new session; returns the length of the data."""
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, zkwire.Closed, zkwire.Refused):
            with zkwire.Conn(port) as conn:
                reply = conn.call(zkwire.OP.GET_DATA, zkwire.read(path)).ok()
                return len(reply.reader().buffer())
        time.sleep(0.005)
    raise TimeoutError(f"no reply from port {port} in time")


class Sampler(threading.Thread):
    """Samples the resident memory of some processes, together, until it is stopped."""

    def __init__(self, pids, period=0.2):
        super().__init__(daemon=True)
        self.pids = pids
        self.period = period
        self.samples = []
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(self.period):
            with contextlib.suppress(OSError, ValueError):
                self.samples.append(resident_bytes(self.pids))

    def stop(self):
        self._ended.set()
        self.join()
        return self.samples
