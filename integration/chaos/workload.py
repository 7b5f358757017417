"""What all workloads share: clients that keep notes of their sessions, workers that go on until they are told."""

import collections
import logging
import random
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError, ConnectionLoss, OperationTimeoutError, SessionExpiredError, SystemZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import RetryFailedError

SESSION_SECONDS = 20.0
ANSWER_SECONDS = 10.0
# After these nobody knows whether the request was carried out.
UNKNOWN_FATE = (
    ConnectionLoss, ConnectionClosedError, SessionExpiredError, OperationTimeoutError, KazooTimeoutError,
    RetryFailedError,
)

logging.getLogger("kazoo").setLevel(logging.CRITICAL)


class Violation(Exception):
    """A promise that was not kept."""


class Client:
    """A kazoo client whose session is watched over: one that the server ended is a lost one."""

    def __init__(self, addresses, first=0, seconds=SESSION_SECONDS):
        order = addresses[first % len(addresses) :] + addresses[: first % len(addresses)]
        retry = {"max_tries": -1, "delay": 0.05, "max_delay": 0.5, "backoff": 2}
        self.kazoo = KazooClient(
            ",".join(f"{host}:{port}" for host, port in order), timeout=seconds, randomize_hosts=False,
            connection_retry=retry, command_retry=retry,
        )
        self.lost = 0
        self.interruptions = 0
        self._ended = False
        self.kazoo.add_listener(self._note)

    def _note(self, state):
        if self._ended:
            return
        if state == KazooState.LOST:
            self.lost += 1
        elif state == KazooState.SUSPENDED:
            self.interruptions += 1

    @property
    def session(self):
        return self.kazoo.client_id[0]

    def start(self):
        self.kazoo.start(timeout=60)
        return self

    def close(self):
        self._ended = True
        self.kazoo.stop()
        self.kazoo.close()


class Progress:
    """When writes were acknowledged, by whichever client: shows how long none was."""

    def __init__(self):
        self._lock = threading.Lock()
        self._last = time.monotonic()
        self._longest = 0.0
        self.count = 0
        # A full disk is answered with an error in place of a change; at other times such an error is wrong.
        self.may_refuse_until = 0.0

    def may_refuse(self):
        return time.monotonic() < self.may_refuse_until

    def acknowledged(self):
        now = time.monotonic()
        with self._lock:
            self._longest = max(self._longest, now - self._last)
            self._last = now
            self.count += 1

    def take_longest(self):
        """The longest pause since this was asked last, the present one included."""
        now = time.monotonic()
        with self._lock:
            longest = max(self._longest, now - self._last)
            self._longest = 0.0
            self._last = now
            return longest


class Workload:
    """A kind of use with its workers; `check` is asked when they have ended and all members serve."""

    name = "workload"
    pause = 0.03  # seconds between two steps of a worker, on average

    def __init__(self, addresses, seed, progress):
        self.addresses = addresses
        self.progress = progress
        self.choose = random.Random(f"{seed}/{self.name}")
        self.clients = []
        self.counts = collections.Counter()
        self.errors = collections.Counter()
        self.violations = []
        self._threads = []
        self._ended = threading.Event()

    def client(self):
        made = Client(self.addresses, first=len(self.clients))
        self.clients.append(made)
        return made.start()

    def setup(self, admin):
        """Makes the nodes that it needs; nothing is broken yet."""

    def workers(self):
        """Functions of (random numbers) that do one step each time they are called."""
        raise NotImplementedError

    def check(self, ensemble):
        """Adds what is wrong to `violations`."""

    def start(self):
        for number, worker in enumerate(self.workers()):
            thread = threading.Thread(target=self._run, args=(number, worker), name=f"{self.name}-{number}")
            self._threads.append(thread)
            thread.start()

    def end(self):
        self._ended.set()

    def join(self, seconds):
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
            if thread.is_alive():
                self.violations.append(f"{thread.name} hangs")

    def close(self):
        for client in self.clients:
            client.close()

    @property
    def lost_sessions(self):
        return sum(client.lost for client in self.clients)

    def refused(self, error):
        """The change was not made. If it is seen nevertheless, the checks find it: nobody has noted it."""
        if self.progress.may_refuse():
            self.errors["refused"] += 1
        else:
            self.violations.append(f"{threading.current_thread().name}: refused with {error!r} although there was room")

    def _run(self, number, worker):
        choose = random.Random(f"{self.choose.random()}/{number}")
        while not self._ended.is_set():
            try:
                worker(choose)
            except UNKNOWN_FATE as error:
                self.errors[type(error).__name__] += 1
                self._ended.wait(0.05)
            except SystemZookeeperError as error:
                self.refused(error)
                self._ended.wait(0.1)
            except Exception as error:
                self.violations.append(f"{threading.current_thread().name}: {type(error).__name__}: {error}")
                return
            self._ended.wait(choose.random() * 2 * self.pause)
