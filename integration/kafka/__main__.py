"""Three Kafka brokers on Quenda: topics, records, users, controllers, and faults of the brokers and of Quenda itself.

  integration/kafka/run                three members
  integration/kafka/run --members 1    one server, which is restarted in the place of the leader's kill
  integration/kafka/run --bounded      without the steps that repeat much of another
  TARGET=genuine integration/kafka/run a genuine ZooKeeper, to check the scenario
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

from integration.kafka.brokers import Brokers
from integration.kafka.java import version
from integration.kafka.scenario import KafkaScenario
from integration.lib.compat import record
from integration.lib.service import Service
from integration.lib.target import IS_QUENDA, TARGET


def versions():
    return f"{version('kafka_2.13')} (ZooKeeper's client {version('zookeeper')})"


def play(folder, options):
    with Service(folder / "service", options.members) as service, Brokers(folder, service) as brokers:
        with KafkaScenario(folder, service, brokers) as scenario:
            return scenario.play(options.bounded)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, choices=(1, 3), default=3, help="size of the ensemble")
    parser.add_argument("--bounded", action="store_true", help="fewer steps")
    parser.add_argument("--keep", action="store_true", help="leave the folder with all logs, and tell where it is")
    options = parser.parse_args()
    print(f"target {TARGET}, {options.members} members, Kafka {versions()}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="quenda-kafka-"))
    try:
        passed, failed = play(folder, options)
    finally:
        if options.keep:
            print(f"logs in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if IS_QUENDA:
        record(f"kafka-{options.members}", client="Kafka", version=versions(), members=options.members,
               ran="three brokers: topics, records, users, controllers, faults of brokers and of the ensemble",
               command="make kafka", passed=passed, failed=failed)
    else:
        print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
