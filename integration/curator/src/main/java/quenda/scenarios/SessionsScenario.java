package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.junit.jupiter.api.Test;

/** Sessions go on over the loss of a server, and end when they have ended. */
class SessionsScenario extends Scenario {
    private static final int CLIENTS = 6;
    private static final int MOST_CLIENTS = 60;

    private static long sessionOf(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    private String ephemeral(int number) {
        return root + "/ephemeral-" + number;
    }

    private String watched(int number) {
        return root + "/watched-" + number;
    }

    /** Those that are connected to it at this moment. */
    private static Set<CuratorFramework> clientsAt(String address, List<CuratorFramework> clients) throws Exception {
        Set<CuratorFramework> found = new HashSet<>();
        for (CuratorFramework client : clients) {
            if (client.getZookeeperClient().getZooKeeper().toString().contains("/" + address + " ")) {
                found.add(client);
            }
        }
        return found;
    }

    private void sessionsGoOn(Runnable fault) throws Exception {
        List<CuratorFramework> clients = new ArrayList<>();
        List<Long> sessions = new ArrayList<>();
        ConcurrentLinkedQueue<String> events = new ConcurrentLinkedQueue<>();
        Set<CuratorFramework> suspended = ConcurrentHashMap.newKeySet();
        CuratorFramework other = client();
        String leader = Target.leaderAddress();
        while (clients.size() < CLIENTS || clientsAt(leader, clients).isEmpty()) {
            int number = clients.size();
            assertTrue(number < MOST_CLIENTS, "no client chooses the leader");
            CuratorFramework client = client();
            client.getConnectionStateListenable().addListener((of, state) -> {
                if (state == ConnectionState.SUSPENDED) {
                    suspended.add(of);
                }
            });
            client.create().withMode(CreateMode.EPHEMERAL).forPath(ephemeral(number));
            client.create().forPath(watched(number), "before".getBytes());
            client.getData().usingWatcher((org.apache.curator.framework.api.CuratorWatcher) event -> {
                if (event.getType() != EventType.None) {
                    events.add(event.getType() + " " + event.getPath());
                }
            }).forPath(watched(number));
            clients.add(client);
            sessions.add(sessionOf(client));
        }

        Set<CuratorFramework> hit = clientsAt(leader, clients);

        fault.run();

        for (int number = 0; number < clients.size(); number++) {
            clients.get(number).sync().forPath(root);
            assertEquals(sessions.get(number), sessionOf(clients.get(number)));
            assertEquals(sessions.get(number), other.checkExists().forPath(ephemeral(number)).getEphemeralOwner());
            other.setData().forPath(watched(number), "after".getBytes());
        }
        Set<String> wanted = IntStream.range(0, clients.size()).mapToObj(number -> "NodeDataChanged " + watched(number))
                .collect(Collectors.toSet());
        eventuallyEqual(() -> wanted, () -> Set.copyOf(events));
        assertEquals(wanted.size(), events.size(), "a watch fires once: " + events);
        assertTrue(suspended.containsAll(hit), "who was connected to the leader has not noticed");
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
    }

    @Test
    void goOnWhenTheLeaderIsKilled() throws Exception {
        sessionsGoOn(Target::killLeader);
    }

    @Test
    void goOnWhenTheLeaderStandsStill() throws Exception {
        // Clients notice the silence behind two thirds of their time.
        sessionsGoOn(() -> Target.pauseLeader(SESSION_MS / 1000 * 3 / 4));
    }

    @Test
    void endForTheirClientsWhenTheyEndAtTheServer() throws Exception {
        CuratorFramework other = client();
        CuratorFramework owner = client();
        owner.create().withMode(CreateMode.EPHEMERAL).forPath(ephemeral(0));
        long before = sessionOf(owner);
        Sessions.endAtServer(owner);
        eventuallyEqual(() -> List.of(owner.toString()), () -> List.copyOf(lost));
        eventually("gone with its session", () -> other.checkExists().forPath(ephemeral(0)) == null);
        owner.create().withMode(CreateMode.EPHEMERAL).forPath(ephemeral(1));
        assertNotEquals(before, sessionOf(owner));
        other.sync().forPath(root);
        assertEquals(sessionOf(owner), other.checkExists().forPath(ephemeral(1)).getEphemeralOwner());
    }
}
