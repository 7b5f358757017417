"""A queue of sequential nodes: what was put in is taken out once, by one consumer, and nothing is lost."""

import collections
import itertools
import threading

from kazoo.exceptions import NoNodeError

from integration.chaos.workload import ANSWER_SECONDS, UNKNOWN_FATE, Workload

PRODUCERS, CONSUMERS = 2, 2


class Queues(Workload):
    name = "queue"
    root = "/chaos/queue"

    def __init__(self, addresses, seed, progress):
        super().__init__(addresses, seed, progress)
        self._lock = threading.Lock()
        self.put = []  # (producer, number, name), acknowledged
        self.perhaps_put = set()
        self.taken = collections.Counter()
        self.perhaps_taken = set()

    def setup(self, admin):
        admin.ensure_path(self.root)

    def workers(self):
        producers = [self._producer(self.client().kazoo, number) for number in range(PRODUCERS)]
        return producers + [self._consumer(self.client().kazoo) for _ in range(CONSUMERS)]

    def _producer(self, kazoo, producer):
        numbers = itertools.count()

        def step(_choose):
            number = next(numbers)
            item = f"{producer}.{number}"
            try:
                made = kazoo.create_async(f"{self.root}/i-", item.encode(), sequence=True).get(timeout=ANSWER_SECONDS)
            except UNKNOWN_FATE:
                self.perhaps_put.add(item)
                raise
            self.progress.acknowledged()
            with self._lock:
                self.put.append((producer, number, made))

        return step

    def _consumer(self, kazoo):
        def take(choose):
            names = sorted(kazoo.get_children_async(self.root).get(timeout=ANSWER_SECONDS))
            if not names:
                return
            path = f"{self.root}/{choose.choice(names[:3])}"
            try:
                item = kazoo.get_async(path).get(timeout=ANSWER_SECONDS)[0].decode()
                kazoo.delete_async(path).get(timeout=ANSWER_SECONDS)
            except NoNodeError:
                return  # the other one was faster
            except UNKNOWN_FATE:
                with self._lock:
                    self.perhaps_taken.add(path)
                raise
            self.progress.acknowledged()
            with self._lock:
                self.taken[(path, item)] += 1

        def step(choose):
            take(choose)
            take(choose)

        return step

    def check(self, ensemble):
        with ensemble.leader().connect_soon() as conn:
            conn.sync("/")
            left = {f"{self.root}/{name}" for name in conn.children(self.root)}
            left = {(path, conn.get(path)[0].decode()) for path in left}
        put = {(name, f"{producer}.{number}") for producer, number, name in self.put}
        twice = [entry for entry, times in self.taken.items() if times > 1]
        if twice:
            self.violations.append(f"taken twice: {twice[:5]}")
        both = left & self.taken.keys()
        if both:
            self.violations.append(f"taken and still there: {sorted(both)[:5]}")
        items = collections.Counter(item for _, item in left | self.taken.keys())
        again = [item for item, times in items.items() if times > 1]
        if again:
            self.violations.append(f"one put made several nodes: {again[:5]}")
        lost = [entry for entry in put - left - self.taken.keys() if entry[0] not in self.perhaps_taken]
        if lost:
            self.violations.append(f"acknowledged and gone: {sorted(lost)[:5]}")
        strange = {item for _, item in (left | self.taken.keys()) - put} - self.perhaps_put
        if strange:
            self.violations.append(f"nobody put that in: {sorted(strange)[:5]}")
        for producer in range(PRODUCERS):
            names = [name for one, _, name in self.put if one == producer]
            if names != sorted(names) or len(set(names)) != len(names):
                self.violations.append(f"producer {producer}'s sequence numbers are out of order")
        self.counts.update(put=len(put), taken=len(self.taken), left=len(left), unknown=len(self.perhaps_put))
