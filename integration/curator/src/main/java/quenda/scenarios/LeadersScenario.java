package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.junit.jupiter.api.Test;

/** One leads at a time, all of them agree who, and when it goes another one does. */
class LeadersScenario extends Scenario {
    private static final int CLIENTS = 5;

    private List<LeaderLatch> latches() throws Exception {
        List<LeaderLatch> latches = new ArrayList<>();
        for (int number = 0; number < CLIENTS; number++) {
            LeaderLatch latch = new LeaderLatch(client(), root + "/latch", "candidate-" + number);
            latch.start();
            latches.add(latch);
        }
        return latches;
    }

    private static LeaderLatch onlyLeader(List<LeaderLatch> latches) {
        eventually("one leads and all know it", () -> {
            List<LeaderLatch> leaders = latches.stream().filter(LeaderLatch::hasLeadership).toList();
            if (leaders.size() != 1) {
                return false;
            }
            for (LeaderLatch latch : latches) {
                if (!latch.getLeader().getId().equals(leaders.get(0).getId())) {
                    return false;
                }
            }
            return true;
        });
        return latches.stream().filter(LeaderLatch::hasLeadership).findFirst().orElseThrow();
    }

    @Test
    void latchesFollowEachOther() throws Exception {
        List<LeaderLatch> latches = latches();
        while (!latches.isEmpty()) {
            LeaderLatch leader = onlyLeader(latches);
            eventuallyEqual(latches::size, () -> leader.getParticipants().size());
            leader.close();
            latches.remove(leader);
        }
    }

    @Test
    void latchesWhileTheLeaderIsKilled() throws Exception {
        List<LeaderLatch> latches = latches();
        onlyLeader(latches);
        Target.killLeader();
        LeaderLatch leader = onlyLeader(latches);
        eventuallyEqual(() -> CLIENTS, () -> leader.getParticipants().size());
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
        for (LeaderLatch latch : latches) {
            latch.close();
        }
    }

    @Test
    void selectorsTakeTurns() throws Exception {
        Map<Integer, Integer> terms = lead(() -> {}, 3);
        assertEquals(CLIENTS, terms.size());
    }

    @Test
    void selectorsWhileTheLeaderIsKilled() throws Exception {
        lead(Target::killLeader, 3);
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
    }

    /** Who led how often, once everybody has led at least `least` times, `meanwhile` included. */
    private Map<Integer, Integer> lead(Runnable meanwhile, int least) throws Exception {
        AtomicInteger leading = new AtomicInteger();
        ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        Map<Integer, Integer> terms = new ConcurrentHashMap<>();
        for (int number = 0; number < CLIENTS; number++) {
            int own = number;
            LeaderSelector selector = closing(new LeaderSelector(client(), root + "/selector", new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws InterruptedException {
                    if (leading.incrementAndGet() != 1) {
                        wrong.add(own + " leads beside another one");
                    }
                    try {
                        TimeUnit.MILLISECONDS.sleep(10);
                        terms.merge(own, 1, Integer::sum);
                    } finally {
                        leading.decrementAndGet();
                    }
                }
            }));
            selector.autoRequeue();
            selector.start();
        }
        eventually("they are at it", () -> !terms.isEmpty());
        meanwhile.run();
        Map<Integer, Integer> before = Map.copyOf(terms);
        eventually("everybody leads in turn", () -> terms.size() == CLIENTS
                && terms.entrySet().stream().allMatch(e -> e.getValue() >= before.getOrDefault(e.getKey(), 0) + least));
        assertTrue(wrong.isEmpty(), wrong.toString());
        return terms;
    }
}
