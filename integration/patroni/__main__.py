"""Two PostgreSQL servers under Patroni on Quenda: bootstrap, switchover, failover, pause, and faults of Quenda itself.

  integration/patroni/run                three members
  integration/patroni/run --members 1    one server, which is restarted in the place of the leader's kill
  integration/patroni/run --bounded      without the steps that repeat much of another
  integration/patroni/run --secured      over TLS, the tree protected by access lists for Patroni's certificate
  TARGET=genuine integration/patroni/run a genuine ZooKeeper, to check the scenario
"""

import importlib.metadata
import subprocess
import sys
import threading

from integration.lib.stage import main
from integration.patroni.cluster import PatroniCluster, Writer, postgres_programs
from integration.patroni.scenario import PatroniScenario
from integration.patroni.security import Security


def play(stage):
    with PatroniCluster(stage) as cluster:
        writer, ended = Writer(cluster), threading.Event()
        thread = threading.Thread(target=writer.run, args=(ended,))
        thread.start()
        try:
            PatroniScenario(stage, cluster, writer).play(stage)
        finally:
            ended.set()
            thread.join()


def versions():
    postgres = subprocess.run([postgres_programs() / "postgres", "--version"], capture_output=True, text=True, check=True)
    return (f"{importlib.metadata.version('patroni')} (kazoo {importlib.metadata.version('kazoo')}), "
            f"PostgreSQL {postgres.stdout.split()[2]}")


sys.exit(main(
    "patroni", play, client="Patroni", version=versions(),
    ran="two PostgreSQL servers: failover, switchover, pause, faults of the ensemble", doc=__doc__,
    secure=Security))
