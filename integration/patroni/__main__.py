"""Two PostgreSQL servers under Patroni on Quenda: bootstrap, switchover, failover, pause, and faults of Quenda itself.

  integration/patroni/run                three members
  integration/patroni/run --members 1    one server, which is restarted in the place of the leader's kill
  integration/patroni/run --bounded      without the steps that repeat much of another
  TARGET=genuine integration/patroni/run a genuine ZooKeeper, to check the scenario
"""

import argparse
import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

from integration.lib.compat import record
from integration.lib.service import Service
from integration.lib.target import IS_QUENDA, TARGET
from integration.patroni.cluster import PatroniCluster, Writer, postgres_programs
from integration.patroni.scenario import PatroniScenario


def play(folder, options):
    servers = folder / "postgres"
    servers.mkdir()
    with Service(folder / "service", options.members) as service, PatroniCluster(servers, service.hosts) as cluster:
        writer, ended = Writer(cluster), threading.Event()
        thread = threading.Thread(target=writer.run, args=(ended,))
        thread.start()
        try:
            return PatroniScenario(service, cluster, writer).play(options.bounded)
        finally:
            ended.set()
            thread.join()


def versions():
    postgres = subprocess.run([postgres_programs() / "postgres", "--version"], capture_output=True, text=True, check=True)
    return (f"Patroni {importlib.metadata.version('patroni')} (kazoo {importlib.metadata.version('kazoo')}), "
            f"PostgreSQL {postgres.stdout.split()[2]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, choices=(1, 3), default=3, help="size of the ensemble")
    parser.add_argument("--bounded", action="store_true", help="fewer steps")
    parser.add_argument("--keep", action="store_true", help="leave the folder with all logs, and tell where it is")
    options = parser.parse_args()
    print(f"target {TARGET}, {options.members} members, {versions()}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-patroni-"))
    folder.chmod(0o711)
    try:
        passed, failed = play(folder, options)
    finally:
        if options.keep:
            print(f"logs in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if IS_QUENDA:
        record(f"patroni-{options.members}", client="Patroni", version=versions(), members=options.members,
               ran="two PostgreSQL servers: failover, switchover, pause, faults of the ensemble", command="make patroni",
               passed=passed, failed=failed)
    else:
        print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
