"""What brokers do with their coordination service, step by step, while the service and they themselves are disturbed."""

import json
import re
import time

from integration.kafka.brokers import LONG, ROOT, SESSION_MS
from integration.kafka.java import tool
from integration.kafka.records import Consumer, Producer
from integration.lib.program import wait_until
from integration.lib.scenario import Scenario, step

TOPIC = "numbers"
USER, PASSWORD = "alice", "secret"
SCRAM = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
                        f'username="{USER}" password="{PASSWORD}";',
}


class KafkaScenario(Scenario):
    def __init__(self, stage, brokers):
        self.stage, self.folder, self.brokers = stage, stage.folder, brokers
        self.producer = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.producer:
            self.producer.__exit__(*exception)

    def topics(self, *words):
        return tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.brokers.bootstrap, *words)

    def configs(self, *words, options=()):
        return tool("kafka.admin.ConfigCommand", *words, options=options)

    def undisturbed(self, trouble):
        """`trouble()` may cost no broker its registration and no controller its office; records go on."""
        self.brokers.wait_in_sync(TOPIC)
        self.producer.wait_for_more()
        before = self.brokers.registered(), self.brokers.controller()
        sessions = self.brokers.sessions()
        began = time.monotonic()
        trouble()
        took = time.monotonic() - began
        self.stage.wait_connected(sessions)
        self.producer.wait_for_more()
        after = self.brokers.registered(), self.brokers.controller()
        assert before == after, f"registrations and controller: {before} became {after}"
        return f"{took:.1f} s; broker epochs and controller {after[1]} as before"

    @step("three brokers register below a chroot that they make, and one is the controller")
    def register(self):
        for broker in self.brokers:
            broker.start()
        number, epoch = self.brokers.wait_registered()
        for broker in self.brokers:
            data, stat = self.brokers.node(f"/brokers/ids/{broker.number}")
            assert stat.ephemeral_owner and f"PLAINTEXT://127.0.0.1:{broker.port}" in data["endpoints"], data
        assert self.brokers.node("/cluster/id")
        if self.stage.secured:
            self.protected("/controller_epoch", "/brokers/ids", "/config/users", "/cluster/id")
        return f"controller {number}, epoch {epoch}"

    def protected(self, *paths):
        """Only the brokers may change it."""
        for path in paths:
            entries, _ = self.stage.look(lambda conn, path=path: conn.get_acl(f"{ROOT}{path}"))
            writers = {(scheme, name) for perms, scheme, name in entries if perms != 1}
            assert writers == self.stage.secured.identities, (path, entries)

    @step("a topic of three partitions with three replicas each")
    def create_topic(self):
        self.topics("--create", "--topic", TOPIC, "--partitions", "3", "--replication-factor", "3")
        self.brokers.wait_in_sync(TOPIC)
        described = self.topics("--describe", "--topic", TOPIC)
        assert len(re.findall(r"Partition: \d+", described)) == 3, described

    @step("records with acks=all are consumed by a group")
    def produce_and_consume(self):
        self.producer = Producer(self.folder, self.brokers.bootstrap, TOPIC)
        self.producer.wait_for_more(300)
        with Consumer(self.folder, self.brokers.bootstrap, TOPIC, "first") as consumer:
            consumer.wait_for(dict(self.producer.acknowledged))
            consumer.stop()

    @step("a topic's configuration and number of partitions are changed")
    def change_topic(self):
        self.configs("--bootstrap-server", self.brokers.bootstrap, "--alter", "--entity-type", "topics", "--entity-name", TOPIC,
                     "--add-config", "max.message.bytes=54321")
        assert self.brokers.node(f"/config/topics/{TOPIC}")[0]["config"]["max.message.bytes"] == "54321"
        # The brokers' answer: they have heard of it by their watch on the changes.
        wait_until(lambda: "max.message.bytes=54321" in self.topics("--describe", "--topic", TOPIC), LONG, "the new value")
        self.topics("--alter", "--topic", TOPIC, "--partitions", "4")
        self.brokers.wait_in_sync(TOPIC)
        assert len(self.brokers.partitions(TOPIC)) == 4

    @step("a SCRAM user, written into the tree by kafka-configs, and its access list: it may read and not write")
    def scram_and_acls(self):
        secured, words, options = self.stage.secured, [], []
        if secured:
            words, options = ["--zk-tls-config-file", str(secured.tool_settings)], secured.java_options
        self.configs("--zookeeper", f"{self.stage.hosts}{ROOT}", *words, "--alter", "--entity-type", "users", "--entity-name", USER,
                     "--add-config", f"SCRAM-SHA-256=[iterations=4096,password={PASSWORD}]", options=options)
        tool("kafka.admin.AclCommand", "--bootstrap-server", self.brokers.bootstrap, "--add",
             "--allow-principal", f"User:{USER}", "--consumer", "--topic", TOPIC, "--group", "alices")
        assert "SCRAM-SHA-256" in self.brokers.node(f"/config/users/{USER}")[0]["config"]
        acls = self.brokers.node(f"/kafka-acl/Topic/{TOPIC}")[0]["acls"]
        assert {(acl["principal"], acl["operation"]) for acl in acls} >= {(f"User:{USER}", "Read")}, acls
        with Consumer(self.folder, self.brokers.sasl_bootstrap, TOPIC, "alices", SCRAM) as consumer:
            consumer.wait_for(dict(self.producer.acknowledged))
        with Producer(self.folder, self.brokers.sasl_bootstrap, TOPIC, {**SCRAM, "enable.idempotence": "false"},
                      count=1) as producer:
            wait_until(lambda: producer.errors, LONG, "a refusal")
            assert "TopicAuthorizationException" in producer.errors[0]["exception"], producer.errors
            assert not producer.acknowledged

    @step("kill -9 of the coordination service's leader: no broker loses its session")
    def coordination_fails_over(self):
        return self.undisturbed(self.coordination_loses_one)

    def coordination_loses_one(self):
        self.stage.servers.lose()
        self.producer.wait_for_more()
        self.stage.servers.regain()

    @step("a restart of every member of the coordination service in turn: no broker loses its session", bounded=False)
    def coordination_rolls(self):
        return self.undisturbed(self.stage.servers.restart_each)

    @step("no majority of the coordination service for longer than a session: records go on, nobody is expired by it")
    def outage(self):
        def trouble():
            with self.stage.servers.outage():
                self.producer.wait_for_more()
                over = time.monotonic() + SESSION_MS / 1000 + 2.0
                while time.monotonic() < over:
                    self.producer.wait_for_more(10)
        return self.undisturbed(trouble)

    @step("kill -9 of the controller: another one with the next epoch; it comes back with a new registration")
    def kill_controller(self):
        self.brokers.wait_in_sync(TOPIC)
        number, epoch = self.brokers.controller()
        self.killed_and_back(number)
        successor, next_epoch = self.brokers.controller()
        assert successor != number and next_epoch > epoch, f"{number, epoch} became {successor, next_epoch}"
        return f"epoch {epoch} to {next_epoch}"

    @step("kill -9 of another broker: its partitions are led by others; the controller stays", bounded=False)
    def kill_broker(self):
        self.brokers.wait_in_sync(TOPIC)
        before = self.brokers.controller()
        self.killed_and_back(next(broker.number for broker in self.brokers if broker.number != before[0]))
        assert self.brokers.controller() == before

    def killed_and_back(self, number):
        """A broker's crash, from its last heartbeat to its return; records go on meanwhile."""
        registered = self.brokers.registered()
        self.brokers[number].kill9()
        wait_until(lambda: number not in self.brokers.registered(), LONG, "the end of the broker's session")
        wait_until(lambda: all(state["leader"] not in (number, -1) for state in self.brokers.partitions(TOPIC).values()),
                   LONG, "other leaders")
        self.producer.wait_for_more()
        self.brokers[number].start()
        self.brokers.wait_registered()
        self.brokers.wait_in_sync(TOPIC)
        now = self.brokers.registered()
        assert now.pop(number) > registered.pop(number) and now == registered, f"{registered} became {now}"

    @step("an orderly stop of a broker ends its session at once", bounded=False)
    def stop_broker(self):
        self.brokers.wait_in_sync(TOPIC)
        broker = self.brokers[self.brokers.controller()[0]]
        broker.stop()
        assert broker.number not in self.brokers.registered(), "its session outlives its process"
        self.producer.wait_for_more()
        broker.start()
        self.brokers.wait_registered()
        self.brokers.wait_in_sync(TOPIC)

    @step("preferred leaders are elected")
    def elect_leaders(self):
        tool("org.apache.kafka.tools.LeaderElectionCommand", "--bootstrap-server", self.brokers.bootstrap,
             "--election-type", "preferred", "--all-topic-partitions")
        wanted = {number: replicas[0] for number, replicas in self.brokers.replicas(TOPIC).items()}
        wait_until(lambda: {number: state["leader"] for number, state in self.brokers.partitions(TOPIC).items()} == wanted,
                   LONG, "preferred leaders")

    @step("a topic is moved to other brokers, and deleted: nothing of it stays in the tree", bounded=False)
    def move_and_delete(self):
        topic = "doomed"
        self.topics("--create", "--topic", topic, "--replica-assignment", "1:2,2:3")
        self.brokers.wait_in_sync(topic)
        wanted = {0: [3, 1], 1: [1, 2]}
        plan = self.folder / "moves.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [
            {"topic": topic, "partition": number, "replicas": replicas} for number, replicas in wanted.items()]}))
        tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--bootstrap-server", self.brokers.bootstrap,
             "--reassignment-json-file", str(plan), "--execute")
        wait_until(lambda: self.brokers.replicas(topic) == wanted, LONG, "the moved replicas")
        self.brokers.wait_in_sync(topic)
        self.topics("--delete", "--topic", topic)
        gone = (f"/brokers/topics/{topic}", f"/config/topics/{topic}", f"/admin/delete_topics/{topic}")
        wait_until(lambda: not any(self.brokers.node(path) for path in gone), LONG, "the end of the topic")
        assert self.topics("--list").split().count(topic) == 0

    @step("every acknowledged record is consumed where it was acknowledged")
    def nothing_lost(self):
        self.producer.stop()
        assert not self.producer.errors, self.producer.errors[:3]
        with Consumer(self.folder, self.brokers.bootstrap, TOPIC, "last") as consumer:
            consumer.wait_for(self.producer.acknowledged)
            numbers = list(self.producer.acknowledged.values())
            assert len(set(numbers)) == len(numbers), "a number was acknowledged twice"
        return f"{len(numbers)} records"

    @step("brokers that stop leave no registration and no controller")
    def stop(self):
        for broker in self.brokers:
            broker.stop()
        assert self.brokers.registered() == {} and self.brokers.node("/controller") is None
