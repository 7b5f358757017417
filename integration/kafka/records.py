"""Kafka's own verifiable producer and consumer: each tells on its standard output what became of every record."""

import json
import signal
import subprocess
import threading

from integration.kafka.java import java
from integration.lib.program import wait_until

LONG = 240.0


class _Events:
    """A program that prints one JSON event a line."""

    def __init__(self, command, log):
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                            start_new_session=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.seen(json.loads(line))

    def seen(self, event):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()

    def stop(self):
        """It sends or commits what it has begun, and ends."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(LONG)
        self._reader.join()


class Producer(_Events):
    """Sends consecutive numbers, a hundred a second, until it is stopped; each is acknowledged by all in-sync replicas."""

    def __init__(self, folder, bootstrap, topic, settings=None, count=-1):
        config = folder / f"producer-{topic}.properties"
        wanted = {"enable.idempotence": "true", "retries": 2147483647, "delivery.timeout.ms": 600_000,
                  "request.timeout.ms": 10_000, **(settings or {})}
        config.write_text("".join(f"{key}={value}\n" for key, value in wanted.items()))
        self.acknowledged = {}  # (partition, offset) → number
        self.errors = []
        super().__init__(java("org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", bootstrap, "--topic", topic,
                              "--acks", "-1", "--throughput", "100", "--max-messages", str(count),
                              "--producer.config", str(config)), folder / "producer.log")

    def seen(self, event):
        if event["name"] == "producer_send_success":
            self.acknowledged[event["partition"], event["offset"]] = event["value"]
        elif event["name"] == "producer_send_error":
            self.errors.append(event)

    def wait_for_more(self, count=100):
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, LONG, f"{count} more acknowledged records")


class Consumer(_Events):
    """Reads a topic from its beginning, as a group of its own."""

    def __init__(self, folder, bootstrap, topic, group, settings=None):
        config = folder / f"consumer-{group}.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in (settings or {}).items()))
        self.records = {}  # (partition, offset) → number
        super().__init__(java("org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", bootstrap, "--topic", topic,
                              "--group-id", group, "--reset-policy", "earliest", "--verbose",
                              "--consumer.config", str(config)), folder / "consumer.log")

    def seen(self, event):
        if event["name"] == "record_data":
            self.records[event["partition"], event["offset"]] = event["value"]

    def wait_for(self, records):
        """Until each of these (place → number) has come; they have to be what was acknowledged there."""
        wait_until(lambda: records.keys() <= self.records.keys(), LONG, f"{len(records)} acknowledged records")
        wrong = [place for place, number in records.items() if self.records[place] != number]
        assert not wrong, f"other records at {wrong[:5]}"
