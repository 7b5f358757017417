"""The servers under comparison, one at a time, each on a fresh directory of a real disk."""

import contextlib
import os
import pathlib
import shutil
import tempfile

from integration.lib.process import ServerError
from integration.lib.quenda_server import QuendaServer
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

ZOOKEEPER = "zookeeper"
QUENDA = "quenda"
KINDS = (ZOOKEEPER, QUENDA)
HEAP = "2g"
IN_MEMORY = {"tmpfs", "ramfs"}


def cache_dir():
    return pathlib.Path(os.environ.get("QUENDA_CACHE") or pathlib.Path.home() / ".cache" / "quenda")


def file_system(path):
    """Type of the file system that holds `path`."""
    best, kind = "", "unknown"
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, mount, this_kind = line.split()[:3]
        inside = mount == "/" or str(path) == mount or str(path).startswith(mount + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, this_kind
    return kind


def disk_for(path):
    """Creates the folder for the data directories; a memory file system would make every sync free."""
    path = path.resolve()
    path.mkdir(parents=True, exist_ok=True)
    kind = file_system(path)
    if kind in IN_MEMORY:
        raise ServerError(f"{path} is on {kind}; --data names a folder on a disk")
    return path, kind


@contextlib.contextmanager
def running(kind, base):
    """A started server; killed and its directory removed at the end, whatever happens."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=base))
    server = GenuineZooKeeper(folder, heap=HEAP) if kind == ZOOKEEPER else QuendaServer(folder)
    try:
        yield server.start()
    finally:
        server.kill9()
        shutil.rmtree(folder, ignore_errors=True)


def describe(kind):
    if kind == ZOOKEEPER:
        return f"Apache ZooKeeper {DEFAULT_VERSION}, heap {HEAP}, the JVM's default collector, forceSync on"
    return "Quenda, one member, default settings"
