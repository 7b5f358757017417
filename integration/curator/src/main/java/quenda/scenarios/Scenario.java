package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.ConnectionStateListener;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Several clients with sessions of their own, below a node that is this test's alone. */
abstract class Scenario {
    static final int SESSION_MS = 20_000;
    private static final int CONNECT_MS = 15_000;
    private static final int RETRIES = 300;
    private static final int RETRY_MS = 100;
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long JOB_SECONDS = 180;
    private static final AtomicInteger ROOTS = new AtomicInteger();

    /** What a node below which this test works is called. */
    String root;

    /** Every session that was lost, by any client of {@link #client()}. */
    final ConcurrentLinkedQueue<String> lost = new ConcurrentLinkedQueue<>();

    private final List<CuratorFramework> clients = new CopyOnWriteArrayList<>();
    private final List<AutoCloseable> closedFirst = new CopyOnWriteArrayList<>();

    @BeforeEach
    void makeRoot() throws Exception {
        root = "/" + getClass().getSimpleName() + "-" + ROOTS.incrementAndGet();
        client().create().forPath(root);
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable closeable : closedFirst) {
            closeable.close();
        }
        clients.forEach(CuratorFramework::close);
    }

    /** A started client, which these listen to from the start; it is closed behind the test. */
    CuratorFramework client(ConnectionStateListener... listeners) {
        CuratorFramework client = newClient(Target.CONNECT);
        client.getConnectionStateListenable().addListener((of, state) -> {
            if (state == ConnectionState.LOST) {
                lost.add(of.toString());
            }
        });
        Stream.of(listeners).forEach(client.getConnectionStateListenable()::addListener);
        clients.add(client);
        client.start();
        return client;
    }

    static CuratorFramework newClient(String connect) {
        return CuratorFrameworkFactory.builder()
                .connectString(connect)
                .sessionTimeoutMs(SESSION_MS)
                .connectionTimeoutMs(CONNECT_MS)
                .retryPolicy(new RetryNTimes(RETRIES, RETRY_MS))
                .build();
    }

    /** Is closed behind the test, before the clients are. */
    <T extends AutoCloseable> T closing(T closeable) {
        closedFirst.add(0, closeable);
        return closeable;
    }

    static void eventually(String what, Callable<Boolean> condition) {
        Awaitility.await(what).atMost(PATIENCE).pollInterval(Duration.ofMillis(20)).ignoreExceptions().until(condition);
    }

    /** Until both are equal; says what they are if they do not become so. */
    static <T> void eventuallyEqual(Callable<T> wanted, Callable<T> found) {
        Awaitility.await().atMost(PATIENCE).pollInterval(Duration.ofMillis(50))
                .untilAsserted(() -> assertEquals(wanted.call(), found.call()));
    }

    interface Job {
        void run(int number) throws Exception;
    }

    /** Runs the job on so many threads at once; the first failure of one is the caller's. */
    static void inParallel(int count, Job job) throws Exception {
        start(count, job).join();
    }

    /** The same, without waiting for the end. */
    static Jobs start(int count, Job job) {
        ExecutorService pool = Executors.newFixedThreadPool(count);
        List<Future<?>> futures = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            int own = number;
            futures.add(pool.submit(() -> {
                job.run(own);
                return null;
            }));
        }
        pool.shutdown();
        return new Jobs(pool, futures);
    }

    record Jobs(ExecutorService pool, List<Future<?>> futures) {
        void join() throws Exception {
            try {
                for (Future<?> future : futures) {
                    future.get(JOB_SECONDS, TimeUnit.SECONDS);
                }
            } finally {
                pool.shutdownNow();
            }
        }
    }

    /** Path → data of everything below a node, and of itself, as the server has it now. */
    static Map<String, String> tree(CuratorFramework client, String path) throws Exception {
        Map<String, String> found = new TreeMap<>();
        collect(client, path, found);
        return found;
    }

    private static void collect(CuratorFramework client, String path, Map<String, String> into) throws Exception {
        try {
            into.put(path, new String(client.getData().forPath(path)));
            for (String child : client.getChildren().forPath(path)) {
                collect(client, path + "/" + child, into);
            }
        } catch (KeeperException.NoNodeException e) {
            into.remove(path);
        }
    }

    /** Whether nothing is below a node; a container that is empty is gone soon. */
    static boolean isEmpty(CuratorFramework client, String path) throws Exception {
        Stat stat = client.checkExists().forPath(path);
        return stat == null || stat.getNumChildren() == 0;
    }

    /** Adds one to the number in a node, without any guard: two that do it at once lose one. */
    static void addOneUnguarded(CuratorFramework client, String path) throws Exception {
        int value = Integer.parseInt(new String(client.getData().forPath(path)));
        client.setData().forPath(path, Integer.toString(value + 1).getBytes());
    }

    static int number(CuratorFramework client, String path) throws Exception {
        client.sync().forPath(path);
        return Integer.parseInt(new String(client.getData().forPath(path)));
    }
}
