package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.junit.jupiter.api.Test;

/** Clients follow the configuration of the ensemble, which they read and watch in /zookeeper/config. */
class EnsembleScenario extends Scenario {
    private static final byte[] SUPER = "super:secret".getBytes();

    private CuratorFramework administrator() {
        CuratorFramework client = closing(CuratorFrameworkFactory.builder()
                .connectString(Target.CONNECT).authorization("digest", SUPER)
                .sessionTimeoutMs(SESSION_MS).retryPolicy(new RetryNTimes(300, 100)).build());
        client.start();
        return client;
    }

    private static String address(String line) {
        return line.substring(line.indexOf(';') + 1);
    }

    private static Set<String> addresses(String connect) {
        return new TreeSet<>(List.of(connect.split(",")));
    }

    private static void eventuallyConnectsTo(List<CuratorFramework> clients, Set<String> wanted) {
        for (CuratorFramework client : clients) {
            eventuallyEqual(() -> wanted, () -> addresses(
                    client.getZookeeperClient().getCurrentConnectionString()));
        }
    }

    @Test
    void clientsFollowAReconfig() throws Exception {
        CuratorFramework administrator = administrator();
        List<CuratorFramework> clients = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            clients.add(client());
        }
        Set<String> three = addresses(Target.CONNECT);
        eventuallyConnectsTo(clients, three);

        String further = Target.startFurtherMember();
        administrator.reconfig().joining(further).forEnsemble();
        Set<String> four = new TreeSet<>(three);
        four.add(address(further));
        eventuallyConnectsTo(clients, four);
        String config = new String(administrator.getConfig().forEnsemble());
        assertTrue(config.lines().anyMatch(further::equals), config);
        assertTrue(config.lines().anyMatch(line -> line.startsWith("version=")), config);

        // A member less before the new one has caught up would leave two that vote, of which neither can be missed.
        Target.awaitFollowers(Target.MEMBERS);
        String leaving = Target.followerLine();
        String id = leaving.substring("server.".length(), leaving.indexOf('='));
        administrator.reconfig().leaving(id).forEnsemble();
        Set<String> others = new TreeSet<>(four);
        others.remove(address(leaving));
        eventuallyConnectsTo(clients, others);

        Target.killLeader();
        for (CuratorFramework client : clients) {
            client.setData().forPath(root, "after".getBytes());
        }
        assertEquals("after", new String(client().getData().forPath(root)));
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);

        administrator.reconfig().joining(leaving).forEnsemble();
        eventuallyConnectsTo(clients, four);
    }
}
