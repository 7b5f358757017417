package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.junit.jupiter.api.Test;

/** Who holds a lock holds it alone: counted by numbers in the tree that only a lock protects. */
class LocksScenario extends Scenario {
    private static final int CLIENTS = 5;
    private static final int ROUNDS = 12;

    private interface LockOf {
        InterProcessLock make(CuratorFramework client);
    }

    /** Every client adds one so often, under a lock of its own; `meanwhile` happens beside it. */
    private void count(LockOf lockOf, Runnable meanwhile) throws Exception {
        CuratorFramework reader = client();
        reader.create().forPath(root + "/number", "0".getBytes());
        AtomicInteger inside = new AtomicInteger();
        Jobs jobs = start(CLIENTS, number -> {
            CuratorFramework client = client();
            InterProcessLock lock = lockOf.make(client);
            for (int round = 0; round < ROUNDS; round++) {
                lock.acquire();
                assertEquals(1, inside.incrementAndGet());
                addOneUnguarded(client, root + "/number");
                inside.decrementAndGet();
                lock.release();
            }
        });
        eventually("they are at it", () -> number(reader, root + "/number") > 0);
        meanwhile.run();
        jobs.join();
        assertEquals(CLIENTS * ROUNDS, number(reader, root + "/number"));
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
    }

    @Test
    void mutex() throws Exception {
        count(client -> new InterProcessMutex(client, root + "/lock"), () -> {});
    }

    @Test
    void mutexWhileTheLeaderIsKilled() throws Exception {
        count(client -> new InterProcessMutex(client, root + "/lock"), Target::killLeader);
    }

    @Test
    void semaphoreMutex() throws Exception {
        count(client -> new InterProcessSemaphoreMutex(client, root + "/lock"), () -> {});
    }

    @Test
    void writeLock() throws Exception {
        count(client -> new InterProcessReadWriteLock(client, root + "/lock").writeLock(), Target::killLeader);
    }

    @Test
    void multiLock() throws Exception {
        List<String> paths = List.of(root + "/a", root + "/b", root + "/c");
        count(client -> new InterProcessMultiLock(client, paths), () -> {});
    }

    @Test
    void readersShareAndAWriterIsAlone() throws Exception {
        AtomicInteger readers = new AtomicInteger();
        AtomicInteger mostReaders = new AtomicInteger();
        AtomicInteger writers = new AtomicInteger();
        inParallel(CLIENTS, number -> {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client(), root + "/lock");
            for (int round = 0; round < ROUNDS; round++) {
                if ((number + round) % 4 == 0) {
                    lock.writeLock().acquire();
                    assertEquals(1, writers.incrementAndGet());
                    assertEquals(0, readers.get());
                    writers.decrementAndGet();
                    lock.writeLock().release();
                } else {
                    lock.readLock().acquire();
                    mostReaders.accumulateAndGet(readers.incrementAndGet(), Math::max);
                    assertEquals(0, writers.get());
                    TimeUnit.MILLISECONDS.sleep(5);
                    readers.decrementAndGet();
                    lock.readLock().release();
                }
            }
        });
        assertTrue(mostReaders.get() > 1, "readers were never at it together");
    }

    @Test
    void semaphoreGivesSoManyLeases() throws Exception {
        int leases = 3;
        AtomicInteger held = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Jobs jobs = start(CLIENTS, number -> {
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client(), root + "/semaphore", leases);
            for (int round = 0; round < ROUNDS; round++) {
                Lease lease = semaphore.acquire();
                most.accumulateAndGet(held.incrementAndGet(), Math::max);
                TimeUnit.MILLISECONDS.sleep(10);
                held.decrementAndGet();
                semaphore.returnLease(lease);
            }
        });
        eventually("all leases are out", () -> most.get() == leases);
        Target.killLeader();
        jobs.join();
        assertEquals(leases, most.get());
        CuratorFramework reader = client();
        eventually("no lease is left", () -> isEmpty(reader, root + "/semaphore/leases"));
    }

    @Test
    void aHeldLockTimesOutForOthers() throws Exception {
        InterProcessMutex holder = new InterProcessMutex(client(), root + "/lock");
        InterProcessMutex other = new InterProcessMutex(client(), root + "/lock");
        holder.acquire();
        assertFalse(other.acquire(300, TimeUnit.MILLISECONDS));
        eventuallyEqual(() -> 1, () -> holder.getParticipantNodes().size());
        holder.release();
        assertTrue(other.acquire(10, TimeUnit.SECONDS));
        other.release();
    }
}
