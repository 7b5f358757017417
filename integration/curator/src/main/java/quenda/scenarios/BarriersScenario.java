package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.junit.jupiter.api.Test;

/** Nobody passes a barrier before it is open. */
class BarriersScenario extends Scenario {
    private static final int CLIENTS = 5;

    @Test
    void barrierHoldsUntilItIsTakenAway() throws Exception {
        DistributedBarrier gate = new DistributedBarrier(client(), root + "/barrier");
        gate.setBarrier();
        AtomicInteger waiting = new AtomicInteger();
        AtomicInteger passed = new AtomicInteger();
        Jobs jobs = start(CLIENTS, number -> {
            DistributedBarrier barrier = new DistributedBarrier(client(), root + "/barrier");
            assertFalse(barrier.waitOnBarrier(100, TimeUnit.MILLISECONDS));
            waiting.incrementAndGet();
            barrier.waitOnBarrier();
            passed.incrementAndGet();
        });
        eventually("all wait", () -> waiting.get() == CLIENTS);
        Target.killLeader();
        assertEquals(0, passed.get());
        gate.removeBarrier();
        jobs.join();
        assertEquals(CLIENTS, passed.get());
    }

    @Test
    void doubleBarrierLetsAllInAndAllOut() throws Exception {
        int rounds = 4;
        AtomicInteger came = new AtomicInteger();
        AtomicInteger left = new AtomicInteger();
        inParallel(CLIENTS, number -> {
            for (int round = 0; round < rounds; round++) {
                DistributedDoubleBarrier barrier =
                        new DistributedDoubleBarrier(client(), root + "/double-" + round, CLIENTS);
                came.incrementAndGet();
                assertTrue(barrier.enter(60, TimeUnit.SECONDS));
                assertTrue(came.get() >= CLIENTS * (round + 1), "in before all came");
                left.incrementAndGet();
                assertTrue(barrier.leave(60, TimeUnit.SECONDS));
                assertTrue(left.get() >= CLIENTS * (round + 1), "out before all left");
            }
        });
        assertEquals(CLIENTS * rounds, left.get());
    }
}
