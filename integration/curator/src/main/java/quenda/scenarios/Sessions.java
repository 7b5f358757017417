package quenda.scenarios;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** What can be done to a session from outside. */
final class Sessions {
    private Sessions() {}

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
