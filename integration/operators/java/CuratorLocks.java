import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.retry.RetryOneTime;

/** Two clients with one lock of each of Curator's kinds between them, until standard input ends: arguments HOSTS ROOT. */
public class CuratorLocks {
    private interface Step {
        void run() throws Exception;
    }

    private static void inBackground(Step step) {
        Thread thread = new Thread(() -> {
            try {
                step.run();
            } catch (Exception ended) {
                // The end of the program ends those who wait.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static CuratorFramework client(String hosts) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, new RetryOneTime(1000));
        client.start();
        client.blockUntilConnected();
        return client;
    }

    /** The second client's step comes once so many znodes are there. */
    private static void behind(CuratorFramework client, String path, int count) throws Exception {
        while (client.checkExists().forPath(path) == null || client.getChildren().forPath(path).size() < count) {
            Thread.sleep(20);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String root = arguments[1];
        CuratorFramework one = client(arguments[0]);
        CuratorFramework other = client(arguments[0]);

        new InterProcessMutex(one, root + "/mutex").acquire();
        inBackground(new InterProcessMutex(other, root + "/mutex")::acquire);

        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(one, root + "/shared");
        lock.writeLock().acquire();
        lock.readLock().acquire();
        inBackground(new InterProcessReadWriteLock(other, root + "/shared").readLock()::acquire);

        new InterProcessSemaphoreV2(one, root + "/semaphore", 2).acquire();
        new InterProcessSemaphoreV2(other, root + "/semaphore", 2).acquire();
        inBackground(new InterProcessSemaphoreV2(other, root + "/semaphore", 2)::acquire);

        new InterProcessSemaphoreMutex(one, root + "/semaphore-mutex").acquire();

        LeaderLatch leader = new LeaderLatch(one, root + "/latch", "first");
        leader.start();
        leader.await();
        new LeaderLatch(other, root + "/latch", "second").start();

        behind(one, root + "/mutex", 2);
        behind(one, root + "/shared", 3);
        behind(one, root + "/semaphore/locks", 1);
        behind(one, root + "/latch", 2);
        System.out.println(one.getZookeeperClient().getZooKeeper().getSessionId());
        System.out.println(other.getZookeeperClient().getZooKeeper().getSessionId());
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }
}
