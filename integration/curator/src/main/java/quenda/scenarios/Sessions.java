package quenda.scenarios;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** Sessions as ZooKeeper's client has them, and what can be done to them from outside. */
final class Sessions {
    private static final Pattern LOCAL = Pattern.compile("local:\\S*:[0-9]+");

    private Sessions() {}

    /** The connection that has answered last, as its own address; is another one once the client has reconnected. */
    static String connection(CuratorFramework client) throws Exception {
        client.checkExists().forPath("/");
        Matcher local = LOCAL.matcher(client.getZookeeperClient().getZooKeeper().toString());
        if (!local.find()) {
            throw new IllegalStateException("not connected: " + client.getZookeeperClient().getZooKeeper());
        }
        return local.group();
    }

    /** A second connection takes the session over and closes it: for its client it has expired. */
    static void endAtServer(CuratorFramework client) throws Exception {
        ZooKeeper zooKeeper = client.getZookeeperClient().getZooKeeper();
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper second = new ZooKeeper(
                Target.CONNECT,
                Scenario.SESSION_MS,
                event -> {
                    if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                        connected.countDown();
                    }
                },
                zooKeeper.getSessionId(),
                zooKeeper.getSessionPasswd());
        if (!connected.await(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the session cannot be taken over");
        }
        second.close();
    }
}
