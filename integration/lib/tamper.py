"""Clocks that differ, disks that are slow, a death at a chosen step: a small library preloaded into the server under test
(tamper.c).

    tamper = Tamper(member.folder)
    member.server.env.update(tamper.environment())
    ...
    tamper.clock(60.0)       # its wall clock is a minute ahead from now on
    tamper.slow_disk(0.5)    # each sync takes half a second longer
    tamper.slow_looks(0.5)   # so does each listing of a directory
    tamper.die_at(3)         # it dies before the third opening, sync or renaming of a file with `files` in its path
"""

import os
import pathlib
import struct
import subprocess
import tempfile

from integration.lib.process import ServerError

SOURCE = pathlib.Path(__file__).with_name("tamper.c")


def library():
    """The compiled library, built when it is missing or older than its source."""
    cache = pathlib.Path(os.environ.get("QUENDA_CACHE") or pathlib.Path.home() / ".cache" / "quenda")
    target = cache / "tamper.so"
    if not target.exists() or target.stat().st_mtime < SOURCE.stat().st_mtime:
        cache.mkdir(parents=True, exist_ok=True)
        handle, staged = tempfile.mkstemp(dir=cache)
        os.close(handle)
        words = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", staged, str(SOURCE), "-ldl"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerError(f"cannot compile {SOURCE}: {done.stderr}")
        os.replace(staged, target)
    return target


class Tamper:
    """The controls of one server. They outlive its restarts."""

    def __init__(self, folder, files=""):
        self.files = files
        self._file = pathlib.Path(folder) / "tamper.control"
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(bytes(40))

    def environment(self):
        return {"LD_PRELOAD": str(library()), "TAMPER_CONTROL": str(self._file), "TAMPER_FILES": self.files}

    def _put(self, offset, value):
        with open(self._file, "r+b") as file:
            file.seek(offset)
            file.write(struct.pack("=q", value))

    def clock(self, seconds):
        self._put(0, round(seconds * 1000))

    def slow_disk(self, seconds):
        self._put(8, round(seconds * 1000))

    def slow_looks(self, seconds):
        self._put(24, round(seconds * 1000))

    def die_at(self, step):
        self._put(32, step)

    @property
    def steps_left(self):
        """Of those until it dies."""
        return struct.unpack("=q", self._file.read_bytes()[32:40])[0]

    @property
    def syncs(self):
        """How many syncs there were: 0 means that the library is not in the server."""
        return struct.unpack("=q", self._file.read_bytes()[16:24])[0]
