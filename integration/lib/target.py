"""The server that a suite runs against: Quenda, or a genuine ZooKeeper to check the suite itself.

TARGET=quenda (default), genuine (ZooKeeper 3.9.5), debian (Debian's 3.8.0) or a release number.
"""

import os

from integration.lib.quenda_server import QuendaServer
from integration.zookeeper.genuine import DEFAULT_VERSION, GenuineZooKeeper

TARGET = os.environ.get("TARGET", "quenda")
IS_QUENDA = TARGET == "quenda"
# Java reads these as system properties only, under these names.
JAVA_PROPERTIES = (
    "java.security.auth.login.config",
    "jute.maxbuffer",
    "readonlymode.enabled",
    "znode.container.checkIntervalMs",
    "znode.container.maxNeverUsedIntervalMs",
)


def build_server(folder, cfg, port=None, heap="512m", target=TARGET):
    """A server of the target's kind that is not started yet; `cfg` has the keys of zoo.cfg, `heap` is Java's."""
    cfg = dict(cfg)
    if target == "quenda":
        return QuendaServer(folder, cfg, port=port)
    props = {key: cfg.pop(key) for key in JAVA_PROPERTIES if key in cfg}
    version = DEFAULT_VERSION if target == "genuine" else target
    return GenuineZooKeeper(folder, cfg, props, version=version, port=port, heap=heap)
