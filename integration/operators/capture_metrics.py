"""Captures which metrics a genuine server has, as goldens for test_metrics.py.

    python3 -m integration.operators.capture_metrics [folder]

Scrapes the provider for Prometheus of a server that runs alone, of a leader and of a follower, after the same few
requests and with a quota. Kept are names, types, labels and quantiles: values differ from run to run.
"""

import pathlib
import sys
import tempfile
import time
import urllib.request

from integration.lib.ensemble import Ensemble
from integration.lib.process import free_port
from integration.lib.zkwire import Conn
from integration.operators.prometheus_text import described
from integration.zookeeper.genuine import GenuineZooKeeper

FOLDER = pathlib.Path(__file__).parent / "golden" / "metrics"
CLASS = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"


def metrics_cfg(port):
    return {
        "metricsProvider.className": CLASS,
        "metricsProvider.httpHost": "127.0.0.1",
        "metricsProvider.httpPort": str(port),
    }


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return answer.read().decode()


def use(conn):
    """A few requests of each kind, a watch that fires, a quota."""
    conn.create("/zookeeper/quota/space", b"")
    conn.create("/space", b"")
    conn.create("/zookeeper/quota/space/zookeeper_limits", b"count=10,bytes=1000")
    conn.create("/zookeeper/quota/space/zookeeper_stats", b"count=0,bytes=0")
    conn.create("/space/a", b"x")
    conn.get("/space/a", watch=True)
    conn.set("/space/a", b"y")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        port = free_port()
        with GenuineZooKeeper(f"{scratch}/alone", metrics_cfg(port), heap="200m") as server:
            with Conn(server.port) as conn:
                use(conn)
                (folder / "alone.txt").write_text(described(scrape(port)))
        ports = {number: free_port() for number in (1, 2, 3)}
        cfg = {number: metrics_cfg(port) for number, port in ports.items()}
        with Ensemble(f"{scratch}/three", member_cfg=cfg, target="genuine") as ensemble:
            leader = ensemble.wait_leader()
            follower = next(member for member in ensemble if member is not leader)
            with follower.connect_soon() as conn:
                use(conn)
                time.sleep(1)
                (folder / "leader.txt").write_text(described(scrape(ports[leader.number])))
                (folder / "follower.txt").write_text(described(scrape(ports[follower.number])))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
