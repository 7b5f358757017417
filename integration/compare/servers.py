"""The servers under comparison, one kind at a time, each on a fresh directory of a real disk."""

import contextlib
import os
import pathlib
import resource
import shutil
import tempfile

from integration.compare import etcd_server
from integration.lib.ensemble import Ensemble
from integration.lib.process import ServerError
from integration.lib.quenda_server import QuendaServer
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

ZOOKEEPER = "zookeeper"
QUENDA = "quenda"
ETCD = "etcd"
KINDS = (ZOOKEEPER, QUENDA, ETCD)
TITLES = {ZOOKEEPER: "ZooKeeper", QUENDA: "Quenda", ETCD: "etcd"}
HEAP = "2g"
IN_MEMORY = {"tmpfs", "ramfs"}


def cache_dir():
    return pathlib.Path(os.environ.get("QUENDA_CACHE") or pathlib.Path.home() / ".cache" / "quenda")


def raise_file_limit():
    """Ten thousand sessions are as many sockets, here and in the server."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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


class Together:
    """Several members, measured as one server. Times are ZooKeeper's own sample configuration's."""

    def __init__(self, folder, kind, members):
        cfg = {"tickTime": "2000", "initLimit": "10", "syncLimit": "5"}
        if kind == ETCD:
            self.ensemble = etcd_server.EtcdEnsemble(folder, members)
        else:
            target = "genuine" if kind == ZOOKEEPER else QUENDA
            self.ensemble = Ensemble(folder, members, cfg=cfg, target=target, heap=HEAP)
        self.data_dir = folder

    def start(self):
        self.ensemble.start()
        return self

    def alive(self):
        return all(member.alive() for member in self.ensemble)

    def kill9(self):
        self.ensemble.close()

    @property
    def hosts(self):
        return self.ensemble.hosts

    @property
    def pids(self):
        return [member.pid for member in self.ensemble]

    def log_tail(self, size=2000):
        return self.ensemble.log_tails(size)


def is_etcd(server):
    return isinstance(getattr(server, "ensemble", server), (etcd_server.EtcdServer, etcd_server.EtcdEnsemble))


@contextlib.contextmanager
def running(kind, base, members=1):
    """A started server or ensemble; killed and its directory removed at the end, whatever happens."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=base))
    if members > 1:
        server = Together(folder, kind, members)
    elif kind == ETCD:
        server = etcd_server.EtcdServer(folder)
    else:
        server = GenuineZooKeeper(folder, heap=HEAP) if kind == ZOOKEEPER else QuendaServer(folder)
    try:
        yield server.start()
    finally:
        server.kill9()
        shutil.rmtree(folder, ignore_errors=True)


def describe(kind, members=1):
    count = "one member" if members == 1 else f"{members} members on one disk"
    if kind == ZOOKEEPER:
        return f"Apache ZooKeeper {DEFAULT_VERSION}, {count}, heap {HEAP}, the JVM's default collector, forceSync on"
    if kind == ETCD:
        return f"etcd {etcd_server.version()}, {count}, default settings but for a quota of {etcd_server.QUOTA >> 30} GiB"
    return f"Quenda, {count}, default settings"
