package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.Test;

/** What is put in comes out: all of it, once, in the order that the queue promises. */
class QueuesScenario extends Scenario {
    private static final int PRODUCERS = 3;
    private static final int CONSUMERS = 3;
    private static final int ITEMS = 40;
    private static final long LOCKED_MS = 5_000;

    private static final QueueSerializer<String> SERIALIZER = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes();
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes);
        }
    };

    private interface Take {
        void take(String item) throws Exception;
    }

    private static QueueConsumer<String> consumer(Take take) {
        return new QueueConsumer<>() {
            @Override
            public void consumeMessage(String item) throws Exception {
                take.take(item);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
                // A queue goes on by itself.
            }
        };
    }

    /** A started consumer with a client of its own, which counts how often it takes each item. */
    private CuratorFramework consume(Map<String, AtomicInteger> taken) throws Exception {
        CuratorFramework client = client();
        QueueConsumer<String> consumer =
                consumer(item -> taken.computeIfAbsent(item, key -> new AtomicInteger()).incrementAndGet());
        closing(QueueBuilder.builder(client, consumer, SERIALIZER, root + "/queue")
                .lockPath(root + "/locks").buildQueue()).start();
        return client;
    }

    private void produce(int number) throws Exception {
        DistributedQueue<String> queue =
                closing(QueueBuilder.builder(client(), null, SERIALIZER, root + "/queue").lockPath(root + "/locks").buildQueue());
        queue.start();
        for (int item = 0; item < ITEMS; item++) {
            queue.put(number + "-" + item);
            TimeUnit.MILLISECONDS.sleep(10);
        }
        assertTrue(queue.flushPuts(60, TimeUnit.SECONDS));
    }

    /** Whether nothing is in the queue but items that somebody has locked for long. */
    private boolean areLeftLocked(CuratorFramework reader) throws Exception {
        if (isEmpty(reader, root + "/queue")) {
            return true;
        }
        for (String item : reader.getChildren().forPath(root + "/queue")) {
            Stat lock = reader.checkExists().forPath(root + "/locks/" + item);
            if (lock == null || System.currentTimeMillis() - lock.getCtime() < LOCKED_MS) {
                return false;
            }
        }
        return true;
    }

    @Test
    void everyItemOnce() throws Exception {
        Map<String, AtomicInteger> taken = new ConcurrentHashMap<>();
        for (int number = 0; number < CONSUMERS; number++) {
            consume(taken);
        }
        inParallel(PRODUCERS, this::produce);
        eventuallyEqual(() -> PRODUCERS * ITEMS, taken::size);
        CuratorFramework reader = client();
        eventually("the queue is empty", () -> isEmpty(reader, root + "/queue"));
        assertTrue(taken.values().stream().allMatch(count -> count.get() == 1), taken.toString());
    }

    @Test
    void noItemIsLostWhileTheLeaderIsKilled() throws Exception {
        Map<String, AtomicInteger> taken = new ConcurrentHashMap<>();
        List<CuratorFramework> consumers = new ArrayList<>();
        for (int number = 0; number < CONSUMERS; number++) {
            consumers.add(consume(taken));
        }
        Jobs jobs = start(PRODUCERS, this::produce);
        eventually("they are at it", () -> taken.size() > CONSUMERS);
        Target.killLeader();
        jobs.join();
        CuratorFramework reader = client();
        eventually("all is taken, or locked", () -> areLeftLocked(reader));
        // A consumer that loses its connection while it locks an item finds the lock when it tries again, and takes it for
        // somebody else's: such an item waits until that session ends. Others have to get it then.
        consumers.forEach(CuratorFramework::close);
        consume(taken);
        eventuallyEqual(() -> PRODUCERS * ITEMS, taken::size);
        eventually("the queue is empty", () -> isEmpty(reader, root + "/queue"));
    }

    @Test
    void priorities() throws Exception {
        List<Integer> priorities = new ArrayList<>();
        for (int priority = -5; priority < 15; priority++) {
            priorities.add(priority);
        }
        List<Integer> sorted = List.copyOf(priorities);
        Collections.shuffle(priorities);
        DistributedPriorityQueue<String> in =
                closing(QueueBuilder.builder(client(), null, SERIALIZER, root + "/queue").buildPriorityQueue(0));
        in.start();
        for (int priority : priorities) {
            in.put(Integer.toString(priority), priority);
        }
        assertTrue(in.flushPuts(30, TimeUnit.SECONDS));
        List<Integer> taken = new CopyOnWriteArrayList<>();
        closing(QueueBuilder.builder(client(), consumer(item -> taken.add(Integer.valueOf(item))), SERIALIZER, root + "/queue")
                .buildPriorityQueue(0)).start();
        eventuallyEqual(() -> sorted, () -> List.copyOf(taken));
    }

    @Test
    void delays() throws Exception {
        Map<String, Long> early = new ConcurrentHashMap<>();
        List<String> order = new CopyOnWriteArrayList<>();
        long began = System.currentTimeMillis();
        DistributedDelayQueue<String> queue = closing(QueueBuilder.builder(client(), consumer(item -> {
            order.add(item);
            long due = began + Long.parseLong(item);
            if (System.currentTimeMillis() < due) {
                early.put(item, due - System.currentTimeMillis());
            }
        }), SERIALIZER, root + "/queue").buildDelayQueue());
        queue.start();
        for (long delay : new long[] {2000, 500, 1500, 1000}) {
            queue.put(Long.toString(delay), began + delay);
        }
        eventuallyEqual(() -> List.of("500", "1000", "1500", "2000"), () -> List.copyOf(order));
        assertTrue(early.isEmpty(), "before their time: " + early);
    }

    @Test
    void itemsWithIdsCanBeTakenOut() throws Exception {
        DistributedIdQueue<String> in =
                closing(QueueBuilder.builder(client(), null, SERIALIZER, root + "/queue").buildIdQueue());
        in.start();
        Set<String> kept = new TreeSet<>();
        for (int item = 0; item < 30; item++) {
            in.put("item-" + item, "id-" + item % 10);
            if (item % 10 != 3) {
                kept.add("item-" + item);
            }
        }
        assertTrue(in.flushPuts(30, TimeUnit.SECONDS));
        assertEquals(3, in.remove("id-3"));
        Set<String> taken = Collections.synchronizedSet(new TreeSet<>());
        closing(QueueBuilder.builder(client(), consumer(taken::add), SERIALIZER, root + "/queue").buildIdQueue()).start();
        eventuallyEqual(() -> kept, () -> new TreeSet<>(taken));
    }

    @Test
    void aFullQueueTakesNoMore() throws Exception {
        int most = 5;
        DistributedQueue<String> queue =
                closing(QueueBuilder.builder(client(), null, SERIALIZER, root + "/queue").maxItems(most).buildQueue());
        queue.start();
        Set<String> accepted = new TreeSet<>();
        // How full it is comes from a cache: the bound is not exact.
        for (int item = 0; item < 10 * most && queue.put("item-" + item, 500, TimeUnit.MILLISECONDS); item++) {
            accepted.add("item-" + item);
            TimeUnit.MILLISECONDS.sleep(50);
        }
        assertTrue(accepted.size() >= most && accepted.size() <= 2 * most, accepted.toString());
        Set<String> taken = Collections.synchronizedSet(new TreeSet<>());
        closing(QueueBuilder.builder(client(), consumer(taken::add), SERIALIZER, root + "/queue").buildQueue()).start();
        eventuallyEqual(() -> accepted, () -> new TreeSet<>(taken));
    }

    @Test
    void simpleQueue() throws Exception {
        List<String> taken = Collections.synchronizedList(new ArrayList<>());
        Jobs takers = start(CONSUMERS, number -> {
            SimpleDistributedQueue queue = new SimpleDistributedQueue(client(), root + "/simple");
            while (true) {
                String item = new String(queue.take());
                if (item.equals("end")) {
                    return;
                }
                taken.add(item);
            }
        });
        inParallel(PRODUCERS, number -> {
            SimpleDistributedQueue queue = new SimpleDistributedQueue(client(), root + "/simple");
            for (int item = 0; item < ITEMS; item++) {
                queue.offer((number + "-" + item).getBytes());
            }
        });
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client(), root + "/simple");
        for (int number = 0; number < CONSUMERS; number++) {
            queue.offer("end".getBytes());
        }
        takers.join();
        assertEquals(PRODUCERS * ITEMS, taken.size());
        assertEquals(PRODUCERS * ITEMS, Set.copyOf(taken).size());
    }
}
