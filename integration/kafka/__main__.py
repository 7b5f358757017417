"""Three Kafka brokers on Quenda: topics, records, users, controllers, and faults of the brokers and of Quenda itself.

  integration/kafka/run                three members
  integration/kafka/run --members 1    one server, which is restarted in the place of the leader's kill
  integration/kafka/run --bounded      without the steps that repeat much of another
  integration/kafka/run --secured      over TLS with certificates and SASL, the tree protected by access lists
  TARGET=genuine integration/kafka/run a genuine ZooKeeper, to check the scenario
"""

import sys

from integration.kafka.brokers import Brokers
from integration.kafka.java import version
from integration.kafka.scenario import KafkaScenario
from integration.kafka.security import Security
from integration.lib.stage import main


def play(stage):
    with KafkaScenario(stage, Brokers(stage)) as scenario:
        scenario.play(stage)


sys.exit(main(
    "kafka", play, client="Kafka", version=f"{version('kafka_2.13')} (ZooKeeper's client {version('zookeeper')})",
    ran="three brokers: topics, records, users, controllers, faults of brokers and of the ensemble", doc=__doc__,
    secure=Security))
