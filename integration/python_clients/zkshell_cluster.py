"""A pytest plugin for zk-shell's own tests: they ask kazoo's harness for a cluster, and get the servers of QUENDA_HOSTS."""

import os
import sys
import types


class Server:
    def __init__(self, address):
        self.address = address


class Cluster:
    def start(self):
        """The servers are there."""

    def __iter__(self):
        return map(Server, os.environ["QUENDA_HOSTS"].split(","))


# In the place of the real one, which would start Java and has requirements of its own.
testing, harness = types.ModuleType("kazoo.testing"), types.ModuleType("kazoo.testing.harness")
harness.get_global_cluster = Cluster
testing.harness = harness
sys.modules.update({"kazoo.testing": testing, "kazoo.testing.harness": harness})
