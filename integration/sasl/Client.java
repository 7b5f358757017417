import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/**
 * A program on ZooKeeper's own Java client. It prints the first state that decides about its authentication, then what it
 * may do: `Client HOST:PORT create PATH DATA`, `… read PATH`, `… delete PATH`. Who it is stands in its JAAS file.
 */
public class Client {
    public static void main(String[] arguments) throws Exception {
        var decided = new CompletableFuture<KeeperState>();
        try (var client = new ZooKeeper(arguments[0], 15_000, event -> {
            if (event.getState() != KeeperState.SyncConnected && event.getState() != KeeperState.Disconnected) {
                decided.complete(event.getState());
            }
        })) {
            System.out.println(decided.get(100, TimeUnit.SECONDS));
            String path = arguments[2];
            switch (arguments[1]) {
                case "create" -> {
                    byte[] data = arguments[3].getBytes(StandardCharsets.UTF_8);
                    client.create(path, data, ZooDefs.Ids.CREATOR_ALL_ACL, org.apache.zookeeper.CreateMode.PERSISTENT);
                    List<ACL> list = client.getACL(path, null);
                    list.forEach(entry -> System.out.println(entry.getPerms() + " " + show(entry.getId())));
                    client.whoAmI().forEach(who -> System.out.println("am " + who.getAuthScheme() + ":" + who.getUser()));
                }
                case "read" -> System.out.println(new String(client.getData(path, false, null), StandardCharsets.UTF_8));
                case "delete" -> client.delete(path, -1);
                default -> throw new IllegalArgumentException(arguments[1]);
            }
            System.out.println("done");
        } catch (KeeperException refused) {
            System.out.println(refused.code());
        }
    }

    static String show(Id id) {
        return id.getScheme() + ":" + id.getId();
    }
}
