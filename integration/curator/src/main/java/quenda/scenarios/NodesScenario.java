package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.Test;

/** Nodes that are kept in being for their clients, whatever happens. */
class NodesScenario extends Scenario {
    private static final int TTL_MS = 6000;

    private PersistentNode persistentNode(CuratorFramework client, CreateMode mode, String path) throws Exception {
        PersistentNode node = closing(new PersistentNode(client, mode, false, path, "data".getBytes()));
        node.start();
        assertTrue(node.waitForInitialCreate(30, TimeUnit.SECONDS));
        return node;
    }

    @Test
    void persistentNodeComesBack() throws Exception {
        CuratorFramework other = client();
        PersistentNode node = persistentNode(client(), CreateMode.EPHEMERAL, root + "/node");
        other.sync().forPath(root);
        for (int round = 0; round < 5; round++) {
            long before = other.checkExists().forPath(root + "/node").getCzxid();
            other.delete().forPath(root + "/node");
            eventually("made again", () -> other.checkExists().forPath(root + "/node").getCzxid() > before);
        }
        node.setData("new".getBytes());
        eventuallyEqual(() -> "new", () -> new String(other.getData().forPath(root + "/node")));
    }

    @Test
    void persistentNodeOutlivesItsSession() throws Exception {
        CuratorFramework other = client();
        CuratorFramework owner = client();
        PersistentNode node = persistentNode(owner, CreateMode.EPHEMERAL, root + "/node");
        other.sync().forPath(root);
        long before = other.checkExists().forPath(node.getActualPath()).getEphemeralOwner();
        Sessions.endAtServer(owner);
        eventually("made by the new session", () -> {
            long after = other.checkExists().forPath(root + "/node").getEphemeralOwner();
            return after != before && after == owner.getZookeeperClient().getZooKeeper().getSessionId();
        });
    }

    @Test
    void sequentialPersistentNodeKeepsItsName() throws Exception {
        CuratorFramework other = client();
        PersistentNode node = persistentNode(client(), CreateMode.EPHEMERAL_SEQUENTIAL, root + "/node-");
        String name = node.getActualPath();
        Target.killLeader();
        other.sync().forPath(root);
        assertNotNull(other.checkExists().forPath(name));
        assertEquals(List.of(name.substring(root.length() + 1)), other.getChildren().forPath(root));
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
    }

    @Test
    void ttlNodeLivesAsLongAsItsOwner() throws Exception {
        CuratorFramework other = client();
        // Its owner touches it every half of the TTL, and must have reconnected by the end of the other half.
        PersistentTtlNode node = new PersistentTtlNode(client(), root + "/ttl", TTL_MS, "data".getBytes());
        node.start();
        assertTrue(node.waitForInitialCreate(30, TimeUnit.SECONDS));
        Target.killLeader();
        other.sync().forPath(root);
        for (int look = 0; look < TTL_MS / 100 + 10; look++) {
            assertNotNull(other.checkExists().forPath(root + "/ttl"), "gone while its owner is there");
            TimeUnit.MILLISECONDS.sleep(100);
        }
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
        node.close();
        eventually("goes with its owner", () -> other.checkExists().forPath(root + "/ttl") == null);
    }

    @Test
    void groupMembersKnowEachOther() throws Exception {
        List<GroupMember> members = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            GroupMember member = closing(new GroupMember(client(), root + "/group", "m" + number, ("d" + number).getBytes()));
            member.start();
            members.add(member);
        }
        for (GroupMember member : members) {
            eventuallyEqual(() -> Set.of("m0", "m1", "m2", "m3"), () -> member.getCurrentMembers().keySet());
        }
        Target.killLeader();
        members.get(0).setThisData("new".getBytes());
        for (GroupMember member : members) {
            eventuallyEqual(() -> "new", () -> new String(member.getCurrentMembers().get("m0")));
        }
        assertTrue(lost.isEmpty(), "sessions lost: " + lost);
        members.get(3).close();
        for (GroupMember member : members.subList(0, 3)) {
            eventuallyEqual(() -> Set.of("m0", "m1", "m2"), () -> member.getCurrentMembers().keySet());
        }
    }
}
