"""Three Kafka brokers, and what they keep in the tree."""

import json

from integration.kafka.java import java
from integration.lib.process import free_port
from integration.lib.program import Program, wait_until

ROOT = "/kafka"  # brokers and tools reach the service below a chroot
SESSION_MS = 10_000
LONG = 240.0


class Broker:
    def __init__(self, stage, number):
        self.number = number
        self.folder = stage.folder / f"broker-{number}"
        self.folder.mkdir(parents=True)
        self.port, self.sasl_port = free_port(), free_port()
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._settings(stage).items()))
        command = java("kafka.Kafka", properties, heap="256m", level="INFO",
                       options=stage.secured.java_options if stage.secured else ())
        self.program = stage.add(Program(f"broker-{number}", command, self.folder))

    def __repr__(self):
        return f"broker {self.number}"

    def _settings(self, stage):
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "broker.id": self.number,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": scram,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            "zookeeper.connect": f"{stage.hosts}{ROOT}",
            "zookeeper.session.timeout.ms": SESSION_MS,
            "zookeeper.connection.timeout.ms": 60_000,
            "log.dirs": self.folder / "logs",
            "min.insync.replicas": 2,
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": 3,
            "offsets.topic.replication.factor": 3,
            "group.initial.rebalance.delay.ms": 0,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.cleaner.dedupe.buffer.size": 4 << 20,
            **(stage.secured.settings() if stage.secured else {}),
        }

    def start(self):
        self.program.start()

    def stop(self):
        """SIGTERM: it hands its partitions over, and closes its session."""
        self.program.stop(LONG)

    def kill9(self):
        self.program.kill9()


class Brokers:
    def __init__(self, stage, count=3):
        self.stage = stage
        self.all = {number: Broker(stage, number) for number in range(1, count + 1)}

    def __iter__(self):
        return iter(self.all.values())

    def __getitem__(self, number):
        return self.all[number]

    def __len__(self):
        return len(self.all)

    @property
    def bootstrap(self):
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self)

    @property
    def sasl_bootstrap(self):
        return ",".join(f"127.0.0.1:{broker.sasl_port}" for broker in self)

    # What the tree says.

    def node(self, path):
        """Data (JSON) and Stat of a node; None when there is none."""
        def look(conn):
            return conn.get(f"{ROOT}{path}") if conn.exists(f"{ROOT}{path}") else None
        found = self.stage.look(look)
        return found and (json.loads(found[0]), found[1])

    def children(self, path):
        return self.stage.look(lambda conn: conn.children(f"{ROOT}{path}") if conn.exists(f"{ROOT}{path}") else [])

    def registered(self):
        """Broker → the zxid that its node was created at, which is its epoch."""
        return {number: stat.czxid for number, stat in self._stats().items()}

    def sessions(self):
        """Of the registered brokers."""
        return [stat.ephemeral_owner for stat in self._stats().values()]

    def _stats(self):
        def look(conn):
            base = f"{ROOT}/brokers/ids"
            names = conn.children(base) if conn.exists(base) else []
            stats = {int(name): conn.exists(f"{base}/{name}") for name in names}
            return {number: stat for number, stat in stats.items() if stat}
        return self.stage.look(look)

    def controller(self):
        """Number and epoch of the controller; None while there is none."""
        controller, epoch = self.node("/controller"), self.node("/controller_epoch")
        return (controller[0]["brokerid"], epoch[0]) if controller and epoch else None

    def partitions(self, topic):
        """Partition → its state: leader, in-sync replicas and epochs."""
        names = self.children(f"/brokers/topics/{topic}/partitions")
        states = {int(name): self.node(f"/brokers/topics/{topic}/partitions/{name}/state") for name in names}
        return {number: state[0] for number, state in states.items() if state}

    def replicas(self, topic):
        """Partition → its replicas in order of preference."""
        found = self.node(f"/brokers/topics/{topic}")
        return {int(number): replicas for number, replicas in found[0]["partitions"].items()} if found else {}

    def in_sync(self, topic):
        """Whether every partition has a leader, and all its replicas are in sync."""
        wanted, states = self.replicas(topic), self.partitions(topic)
        return bool(wanted) and wanted.keys() == states.keys() and all(
            states[number]["leader"] in replicas and sorted(states[number]["isr"]) == sorted(replicas)
            for number, replicas in wanted.items())

    def wait_registered(self):
        def registered():
            ended = [broker for broker in self if not broker.program.alive()]
            assert not ended, f"{ended} did not start"
            return len(self.registered()) == len(self)
        wait_until(registered, LONG, "all brokers in the tree")
        return wait_until(self.controller, LONG, "a controller")

    def wait_in_sync(self, topic):
        wait_until(lambda: self.in_sync(topic), LONG, f"all replicas of {topic} in sync")
