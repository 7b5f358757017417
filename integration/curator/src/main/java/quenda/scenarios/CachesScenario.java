package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.zookeeper.KeeperException;
import org.junit.jupiter.api.Test;

/** What a cache holds in the end is what the server holds, whatever happened on the way. */
@SuppressWarnings("deprecation") // PathChildrenCache, NodeCache and TreeCache are what is widely used
class CachesScenario extends Scenario {
    private static final int WRITERS = 3;
    private static final int OPERATIONS = 150;
    private static final int NAMES = 4;

    private static void change(CuratorFramework client, Random random, String top) throws Exception {
        String path = top + "/" + random.nextInt(NAMES);
        if (random.nextInt(3) > 0) {
            path += "/" + random.nextInt(NAMES);
        }
        byte[] data = Integer.toString(random.nextInt()).getBytes();
        try {
            switch (random.nextInt(4)) {
                case 0 -> client.create().orSetData().creatingParentsIfNeeded().forPath(path, data);
                case 1 -> client.setData().forPath(path, data);
                case 2 -> client.delete().deletingChildrenIfNeeded().forPath(path);
                default -> client.create().forPath(path, data);
            }
        } catch (KeeperException.NoNodeException | KeeperException.NodeExistsException | KeeperException.NotEmptyException e) {
            // Somebody else was faster, or it was there already: that is what these writers are for.
        }
    }

    /** Writers change the tree while `meanwhile` happens. */
    private void changeTree(String top, Runnable meanwhile) throws Exception {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Jobs jobs = start(WRITERS, number -> {
            Random random = new Random(seed + number);
            CuratorFramework client = client();
            for (int operation = 0; operation < OPERATIONS; operation++) {
                change(client, random, top);
                if (operation % 10 == 0) {
                    TimeUnit.MILLISECONDS.sleep(20);
                }
            }
        });
        CuratorFramework reader = client();
        eventually("they are at it", () -> !reader.getChildren().forPath(top).isEmpty());
        meanwhile.run();
        jobs.join();
    }

    private static Map<String, String> contents(Stream<ChildData> cached) {
        Map<String, String> found = new TreeMap<>();
        cached.forEach(data -> found.put(data.getPath(), new String(data.getData())));
        return found;
    }

    private static void contents(TreeCache cache, String path, Map<String, String> into) {
        ChildData data = cache.getCurrentData(path);
        Map<String, ChildData> children = cache.getCurrentChildren(path);
        if (data != null && children != null) {
            into.put(path, new String(data.getData()));
            children.values().forEach(child -> contents(cache, child.getPath(), into));
        }
    }

    private void cachesEqualTheTree(Runnable meanwhile) throws Exception {
        CuratorFramework reader = client();
        String top = root + "/top";
        reader.create().forPath(top, "".getBytes());
        CuratorCache cache = closing(CuratorCache.builder(client(), top).withStorage(new ByNode()).build());
        Map<String, String> told = new ConcurrentHashMap<>();
        cache.listenable().addListener(CuratorCacheListener.builder()
                .forCreatesAndChanges((old, now) -> told.put(now.getPath(), new String(now.getData())))
                .forDeletes(old -> told.remove(old.getPath()))
                .build());
        cache.start();
        TreeCache treeCache = closing(new TreeCache(client(), top));
        treeCache.start();
        PathChildrenCache pathCache = closing(new PathChildrenCache(client(), top, true));
        pathCache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        NodeCache nodeCache = closing(new NodeCache(client(), top + "/1"));
        nodeCache.start(true);

        changeTree(top, meanwhile);
        reader.create().orSetData().creatingParentsIfNeeded().forPath(top + "/1/1", "last".getBytes());

        reader.sync().forPath(top);
        Map<String, String> wanted = tree(reader, top);
        eventuallyEqual(() -> wanted, () -> contents(cache.stream()));
        eventuallyEqual(() -> wanted, () -> new TreeMap<>(told));
        eventuallyEqual(() -> wanted, () -> {
            Map<String, String> found = new TreeMap<>();
            contents(treeCache, top, found);
            return found;
        });
        eventuallyEqual(() -> children(wanted, top), () -> contents(pathCache.getCurrentData().stream()));
        eventuallyEqual(() -> wanted.get(top + "/1"), () -> {
            ChildData data = nodeCache.getCurrentData();
            return data == null ? null : new String(data.getData());
        });
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
    }

    private static Map<String, String> children(Map<String, String> tree, String of) {
        Map<String, String> found = new TreeMap<>(tree);
        found.keySet().removeIf(path -> !path.startsWith(of + "/") || path.indexOf('/', of.length() + 1) >= 0);
        return found;
    }

    @Test
    void whileNothingElseHappens() throws Exception {
        cachesEqualTheTree(() -> {});
    }

    @Test
    void whileTheLeaderIsKilled() throws Exception {
        cachesEqualTheTree(Target::killLeader);
    }

    @Test
    void whileTheLeaderStandsStill() throws Exception {
        cachesEqualTheTree(() -> Target.pauseLeader(5));
    }

    @Test
    void overTheEndOfTheSession() throws Exception {
        CuratorFramework owner = client();
        CuratorFramework other = client();
        CuratorCache cache = closing(CuratorCache.build(owner, root));
        cache.start();
        other.create().forPath(root + "/a", "1".getBytes());
        eventuallyEqual(() -> tree(other, root), () -> contents(cache.stream()));
        Sessions.endAtServer(owner);
        other.setData().forPath(root + "/a", "2".getBytes());
        other.create().forPath(root + "/b", "3".getBytes());
        eventuallyEqual(() -> tree(other, root), () -> contents(cache.stream()));
        for (String path : List.of("/a", "/b")) {
            other.delete().forPath(root + path);
        }
        eventuallyEqual(() -> tree(other, root), () -> contents(cache.stream()));
    }
}
