package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;
import org.junit.jupiter.api.Test;

/** Services are found where they are, and nowhere else. */
class DiscoveryScenario extends Scenario {
    private static final String NAME = "service";
    private static final int INSTANCES = 3;

    private ServiceDiscovery<String> discovery(CuratorFramework client, Integer port) throws Exception {
        ServiceDiscoveryBuilder<String> builder =
                ServiceDiscoveryBuilder.builder(String.class).client(client).basePath(root + "/discovery");
        if (port != null) {
            builder.thisInstance(ServiceInstance.<String>builder().name(NAME).id("id-" + port).address("127.0.0.1")
                    .port(port).payload("p" + port).build());
        }
        ServiceDiscovery<String> discovery = closing(builder.build());
        discovery.start();
        return discovery;
    }

    private static Set<String> payloads(Iterable<ServiceInstance<String>> instances) {
        Set<String> found = new TreeSet<>();
        instances.forEach(instance -> found.add(instance.getPayload() + "@" + instance.getPort()));
        return found;
    }

    private static Set<String> wanted(int... ports) {
        return java.util.Arrays.stream(ports).mapToObj(port -> "p" + port + "@" + port)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private long madeAt(CuratorFramework client, int port) throws Exception {
        return client.checkExists().forPath(root + "/discovery/" + NAME + "/id-" + port).getCzxid();
    }

    /** A client whose listeners have heard that it is connected: Curator registers an instance anew then, too. */
    private CuratorFramework connected() throws Exception {
        CountDownLatch heard = new CountDownLatch(1);
        CuratorFramework client = client((of, state) -> heard.countDown());
        assertTrue(heard.await(30, TimeUnit.SECONDS), "not connected");
        return client;
    }

    @Test
    void instancesComeAndGo() throws Exception {
        List<CuratorFramework> owners = new ArrayList<>();
        List<ServiceDiscovery<String>> registered = new ArrayList<>();
        for (int number = 1; number <= INSTANCES; number++) {
            owners.add(connected());
            registered.add(discovery(owners.get(number - 1), number));
        }
        CuratorFramework reader = client();
        ServiceDiscovery<String> looking = discovery(reader, null);
        ServiceCache<String> cache = closing(looking.serviceCacheBuilder().name(NAME).build());
        cache.start();
        ServiceProvider<String> provider = closing(looking.serviceProviderBuilder().serviceName(NAME)
                .providerStrategy(new RoundRobinStrategy<>()).build());
        provider.start();

        reader.sync().forPath(root);
        assertEquals(wanted(1, 2, 3), payloads(looking.queryForInstances(NAME)));
        assertEquals(List.of(NAME), List.copyOf(looking.queryForNames()));
        eventuallyEqual(() -> wanted(1, 2, 3), () -> payloads(cache.getInstances()));
        eventuallyEqual(() -> wanted(1, 2, 3), () -> payloads(provider.getAllInstances()));
        Set<String> given = new TreeSet<>();
        for (int turn = 0; turn < INSTANCES; turn++) {
            given.addAll(payloads(List.of(provider.getInstance())));
        }
        assertEquals(wanted(1, 2, 3), given);

        List<Long> made = new ArrayList<>();
        List<String> before = new ArrayList<>();
        for (int port = 1; port <= INSTANCES; port++) {
            made.add(madeAt(reader, port));
            before.add(Sessions.connection(owners.get(port - 1)));
        }
        Target.killLeader();
        // Curator registers an instance anew when its client has reconnected, and one that is closed meanwhile stays.
        for (int number = 0; number < INSTANCES; number++) {
            int port = number + 1;
            long old = made.get(number);
            if (!Sessions.connection(owners.get(number)).equals(before.get(number))) {
                eventually("registered anew", () -> madeAt(reader, port) != old);
            }
        }
        eventuallyEqual(() -> wanted(1, 2, 3), () -> payloads(looking.queryForInstances(NAME)));
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);

        registered.get(1).close();
        eventuallyEqual(() -> wanted(1, 3), () -> payloads(cache.getInstances()));
        eventuallyEqual(() -> wanted(1, 3), () -> payloads(provider.getAllInstances()));

        Sessions.endAtServer(owners.get(0));
        long old = owners.get(2).getZookeeperClient().getZooKeeper().getSessionId();
        eventually("registered by its new session", () -> looking.queryForInstances(NAME).size() == 2
                && owners.get(0).getZookeeperClient().getZooKeeper().getSessionId() != old);
        eventuallyEqual(() -> wanted(1, 3), () -> payloads(cache.getInstances()));
    }
}
