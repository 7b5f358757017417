"""Starts etcd with the interface of the other servers."""

import base64
import functools
import json
import pathlib
import re
import subprocess
import time
import urllib.request

from integration.lib.process import HOST, ServerError, ServerProcess, free_port

FOLDER = pathlib.Path(__file__).with_name("etcd")
# The default, 2 GiB, would end the writes in the middle of a run: nothing is compacted in so short a time.
QUOTA = 8 << 30


@functools.cache
def programs():
    """The folder of `server` and `load`; builds them where they are missing."""
    done = subprocess.run([str(FOLDER / "install")], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"{FOLDER / 'install'} failed with status {done.returncode}")
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def version():
    """The release that go.mod names."""
    return re.search(r"go\.etcd\.io/etcd/server/v3 v(\S+)", (FOLDER / "go.mod").read_text())[1]


class EtcdServer(ServerProcess):
    """One member on `data_dir`. `cluster` is a dictionary of all members' names and peer URLs, its own among them."""

    name = "etcd"

    def __init__(self, data_dir, member="one", cluster=None, port=None):
        super().__init__(data_dir, port=port)
        self.member = member
        self.cluster = cluster or {member: f"http://{HOST}:{free_port()}"}

    def _cfg(self):
        """All is said on the command line."""
        return {}

    def command(self):
        client, peer = f"http://{HOST}:{self.port}", self.cluster[self.member]
        return [str(programs() / "server"), "--name", self.member, "--data-dir", str(self.data_dir / "data"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", ",".join(f"{name}={url}" for name, url in self.cluster.items()),
                "--quota-backend-bytes", str(QUOTA), "--log-level", "warn"]

    def serving(self):
        with urllib.request.urlopen(f"http://{HOST}:{self.port}/health", timeout=5.0) as answer:
            return json.load(answer)["health"] == "true"

    def value(self, key):
        """The value of a key, as the JSON gateway tells it; b"" when it has none."""
        wanted = {"key": base64.b64encode(key.encode()).decode()}
        request = urllib.request.Request(f"http://{HOST}:{self.port}/v3/kv/range", json.dumps(wanted).encode())
        with urllib.request.urlopen(request, timeout=30.0) as answer:
            found = json.load(answer).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")) if found else b""


class EtcdEnsemble:
    """Several members on this machine."""

    def __init__(self, folder, members):
        cluster = {f"m{number}": f"http://{HOST}:{free_port()}" for number in range(members)}
        self.members = [EtcdServer(pathlib.Path(folder) / name, name, cluster, port=free_port()) for name in cluster]

    def __iter__(self):
        return iter(self.members)

    @property
    def hosts(self):
        return ",".join(member.hosts for member in self)

    def start(self, timeout=60.0):
        for member in self:
            member.data_dir.mkdir(parents=True, exist_ok=True)
            member.spawn()
        deadline = time.monotonic() + timeout
        for member in self:
            while not self._serves(member):
                if time.monotonic() > deadline or not member.alive():
                    raise ServerError(f"{member.member} does not serve:\n{member.log_tail()}")
                time.sleep(0.02)
        return self

    @staticmethod
    def _serves(member):
        # 503 while there is no leader is an OSError as well.
        try:
            return member.serving()
        except OSError:
            return False

    def close(self):
        for member in self:
            member.kill9()

    def log_tails(self, size):
        return "\n".join(member.log_tail(size) for member in self)
