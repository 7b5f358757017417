package quenda.scenarios;

import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/** A process of its own that takes a lock: `count PATH ROUNDS` adds so often to a number, `hold PATH` keeps the lock. */
public final class Worker {
    private Worker() {}

    /** Prints `held` once it has the lock for good. */
    public static void main(String[] arguments) throws Exception {
        String path = arguments[1];
        try (CuratorFramework client = Scenario.newClient(Target.CONNECT)) {
            client.start();
            InterProcessMutex lock = new InterProcessMutex(client, path + "/lock");
            if (arguments[0].equals("hold")) {
                lock.acquire();
                System.out.println("held");
                TimeUnit.HOURS.sleep(1);
            }
            for (int round = Integer.parseInt(arguments[2]); round > 0; round--) {
                lock.acquire();
                Scenario.addOneUnguarded(client, path + "/number");
                lock.release();
            }
        }
    }
}
