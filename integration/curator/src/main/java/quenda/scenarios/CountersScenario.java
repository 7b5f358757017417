package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.junit.jupiter.api.Test;

/** No increment is lost or counted twice. */
class CountersScenario extends Scenario {
    private static final int CLIENTS = 4;
    private static final int ROUNDS = 15;

    @Test
    void atomicLong() throws Exception {
        inParallel(CLIENTS, number -> {
            DistributedAtomicLong counter = new DistributedAtomicLong(client(), root + "/long", new RetryNTimes(1000, 5));
            for (int round = 0; round < ROUNDS; round++) {
                AtomicValue<Long> value = counter.increment();
                assertTrue(value.succeeded());
                assertEquals(value.preValue() + 1, value.postValue());
            }
        });
        DistributedAtomicLong counter = new DistributedAtomicLong(client(), root + "/long", new RetryNTimes(1000, 5));
        assertEquals(CLIENTS * ROUNDS, counter.add(0L).postValue());
    }

    @Test
    void atomicLongWhileTheLeaderIsKilled() throws Exception {
        AtomicInteger done = new AtomicInteger();
        Jobs jobs = start(CLIENTS, number -> {
            DistributedAtomicLong counter = new DistributedAtomicLong(client(), root + "/long", new RetryNTimes(1000, 5));
            for (int round = 0; round < ROUNDS; round++) {
                done.addAndGet(counter.increment().succeeded() ? 1 : 0);
            }
        });
        eventually("they are at it", () -> done.get() > 0);
        Target.killLeader();
        jobs.join();
        assertEquals(CLIENTS * ROUNDS, done.get());
        long value = new DistributedAtomicLong(client(), root + "/long", new RetryNTimes(1000, 5)).add(0L).postValue();
        // Curator repeats a write whose answer was lost: each client has at most one in flight then.
        assertTrue(value >= done.get() && value <= done.get() + CLIENTS, value + " of " + done);
    }

    @Test
    void atomicIntegerComparesAndSets() throws Exception {
        DistributedAtomicInteger counter = new DistributedAtomicInteger(client(), root + "/int", new RetryNTimes(1000, 5));
        assertTrue(counter.initialize(7));
        AtomicInteger won = new AtomicInteger();
        inParallel(CLIENTS, number -> {
            DistributedAtomicInteger own = new DistributedAtomicInteger(client(), root + "/int", new RetryNTimes(1000, 5));
            won.addAndGet(own.compareAndSet(7, 100 + number).succeeded() ? 1 : 0);
        });
        assertEquals(1, won.get());
        assertTrue(counter.get().postValue() >= 100);
    }

    @Test
    void sharedCountIsSeenByAll() throws Exception {
        CopyOnWriteArrayList<Integer> seen = new CopyOnWriteArrayList<>();
        SharedCount watching = closing(new SharedCount(client(), root + "/count", 0));
        watching.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader count, int value) {
                seen.add(value);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
                // The value is read anew then.
            }
        });
        watching.start();
        Jobs jobs = start(CLIENTS, number -> {
            SharedCount count = closing(new SharedCount(client(), root + "/count", 0));
            count.start();
            for (int round = 0; round < ROUNDS; round++) {
                while (!count.trySetCount(count.getVersionedValue(), count.getCount() + 1)) {
                    Thread.onSpinWait();
                }
            }
        });
        jobs.join();
        eventually("the last value is seen", () -> watching.getCount() == CLIENTS * ROUNDS
                && seen.get(seen.size() - 1) == CLIENTS * ROUNDS);
        List<Integer> sorted = seen.stream().sorted().toList();
        assertEquals(sorted, List.copyOf(seen), "values were seen out of order");
        Target.killLeader();
        watching.setCount(1);
        assertEquals(1, watching.getCount());
    }
}
