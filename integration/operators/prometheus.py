"""Debian's Prometheus, run on this machine: unpacked into the cache, not installed, so that no daemon is started.

    with Prometheus(folder, {"zoo1": "127.0.0.1:7000"}, rules=...) as prometheus:
        prometheus.query("up")
"""

import fcntl
import json
import os
import pathlib
import subprocess
import time
import urllib.parse
import urllib.request

from integration.lib.process import ServerError, free_port

CACHE = pathlib.Path(os.environ.get("QUENDA_CACHE", pathlib.Path.home() / ".cache/quenda"))
DEBIAN = pathlib.Path(__file__).parents[1] / "lib" / "debian-release"
RELEASE = "bookworm"
HOST = "127.0.0.1"


def program(name):
    """The path of `prometheus` or `promtool`, fetched first if the cache lacks it."""
    folder = CACHE / f"prometheus-{RELEASE}"
    path = folder / "usr" / "bin" / name
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "prometheus.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                subprocess.run([str(DEBIAN), RELEASE, "binary", str(folder), "prometheus"], check=True)
    return str(path)


def promtool(*words, folder=None, text=None):
    done = subprocess.run([program("promtool"), *map(str, words)], cwd=folder, input=text, text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Prometheus:
    """Scrapes the targets every second. `targets` maps names to addresses; `tls` is how, if by TLS."""

    def __init__(self, folder, targets, rules=(), ensemble="test", tls=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.targets = targets
        self.port = free_port()
        self.process = None
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [{
                "job_name": "quenda",
                **({"scheme": "https", "tls_config": tls} if tls else {}),
                "static_configs": [
                    {"targets": [address], "labels": {"ensemble": ensemble, "instance": name}}
                    for name, address in targets.items()
                ],
            }],
        }
        self.config = self.folder / "prometheus.yml"
        self.config.write_text(json.dumps(config))  # JSON is YAML

    def __enter__(self):
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [program("prometheus"), f"--config.file={self.config}", f"--storage.tsdb.path={self.folder / 'data'}",
                 f"--web.listen-address={HOST}:{self.port}", "--log.level=warn"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.wait(lambda: {t["labels"]["instance"]: t["health"] for t in self.active()} ==
                  dict.fromkeys(self.targets, "up"), "the targets are not all up")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def get(self, path, **parameters):
        url = f"http://{HOST}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            got = json.load(answer)
        assert got["status"] == "success", got
        return got["data"]

    def active(self):
        try:
            return self.get("targets", state="active")["activeTargets"]
        except OSError:
            return []  # it does not listen yet

    def query(self, expression):
        """Values by the instance."""
        found = self.get("query", query=expression)["result"]
        return {sample["metric"].get("instance"): float(sample["value"][1]) for sample in found}

    def wait(self, condition, complaint, seconds=60.0):
        deadline = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > deadline:
                targets = [(t["labels"]["instance"], t["health"], t["lastError"]) for t in self.active()]
                raise ServerError(f"{complaint}: {targets}\n{(self.folder / 'log').read_text()[-4000:]}")
            time.sleep(0.1)
