"""Starts a genuine Apache ZooKeeper for a harness.

    with GenuineZooKeeper(data_dir) as server:
        client.connect("127.0.0.1", server.port)
"""

import os
import pathlib
import subprocess

from integration.lib.process import ServerError, ServerProcess

DEFAULT_VERSION = "3.9.5"
SUPER_DIGEST_PROPERTY = "zookeeper.DigestAuthenticationProvider.superDigest"


def _jars(script, *arguments):
    """The jars that a script beside this file downloads, unless the cache has them."""
    command = [str(pathlib.Path(__file__).with_name(script)), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise ServerError(f"{' '.join(command)} failed with status {done.returncode}")
    folder = pathlib.Path(done.stdout.strip().splitlines()[-1])
    return os.pathsep.join(str(jar) for jar in sorted(folder.glob("*.jar")))


def class_path(version=DEFAULT_VERSION):
    """The class path of a release."""
    return _jars("install", version)


def admin_class_path():
    """What the AdminServer of the default version needs besides."""
    return _jars("install-admin")


def prometheus_class_path():
    """The metrics provider for Prometheus. It needs the AdminServer's too."""
    return _jars("install-prometheus")


def debian_class_path():
    """The class path of Debian's `zookeeper` package (3.8.0 with security patches)."""
    share = pathlib.Path("/usr/share/java")
    names = ["zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "netty-all", "metrics-core", "snappy-java",
             "commons-cli", "jackson-core", "jackson-databind", "jackson-annotations"]
    jars = [share / f"{name}.jar" for name in names]
    if not jars[0].exists():
        raise ServerError("Debian's zookeeper package is not installed")
    return os.pathsep.join(str(jar) for jar in jars if jar.exists())


class GenuineZooKeeper(ServerProcess):
    """One Java server. `jvm_props` become -D options; `heap` is -Xmx; `jvm_opts` are given as they are."""

    name = "genuine"

    def __init__(self, data_dir, extra_cfg=None, jvm_props=None, env=None, port=None, heap="512m", jvm_opts=(),
                 version=DEFAULT_VERSION, log_level="warn"):
        super().__init__(data_dir, extra_cfg, env, port)
        self.name = f"genuine {version}"
        self.jvm_props = {"org.slf4j.simpleLogger.defaultLogLevel": log_level, **(jvm_props or {})}
        self.heap = heap
        self.jvm_opts = list(jvm_opts)
        self.class_path = debian_class_path() if version == "debian" else class_path(version)
        has_metrics = "prometheus" in self.extra_cfg.get("metricsProvider.className", "")
        if self.extra_cfg.get("admin.enableServer") == "true" or has_metrics:
            self.class_path += os.pathsep + admin_class_path()
        if has_metrics:
            self.class_path += os.pathsep + prometheus_class_path()

    def command(self):
        props = [f"-D{key}={value}" for key, value in self.jvm_props.items()]
        return ["java", f"-Xmx{self.heap}", *self.jvm_opts, *props, "-cp", self.class_path,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.cfg_path)]
