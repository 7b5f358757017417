package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Random;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.api.transaction.OperationType;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;
import org.junit.jupiter.api.Test;

/** All of a transaction happens, or nothing. */
class TransactionsScenario extends Scenario {
    private static final int CLIENTS = 4;
    private static final int TRANSFERS = 15;
    private static final int ACCOUNTS = 4;
    private static final int BALANCE = 100;

    @Test
    void resultsComeInOrder() throws Exception {
        CuratorFramework client = client();
        client.create().forPath(root + "/old", "old".getBytes());
        List<CuratorTransactionResult> results = client.transaction().forOperations(
                client.transactionOp().check().withVersion(0).forPath(root + "/old"),
                client.transactionOp().create().forPath(root + "/new", "one".getBytes()),
                client.transactionOp().setData().withVersion(0).forPath(root + "/new", "two".getBytes()),
                client.transactionOp().delete().forPath(root + "/old"));
        assertEquals(
                List.of(OperationType.CHECK, OperationType.CREATE, OperationType.SET_DATA, OperationType.DELETE),
                results.stream().map(CuratorTransactionResult::getType).toList());
        assertEquals(root + "/new", results.get(1).getResultPath());
        assertEquals(1, results.get(2).getResultStat().getVersion());
        Stat stat = new Stat();
        assertEquals("two", new String(client.getData().storingStatIn(stat).forPath(root + "/new")));
        assertEquals(stat.getCzxid(), stat.getMzxid(), "one transaction, one zxid");
        assertNull(client.checkExists().forPath(root + "/old"));
    }

    @Test
    void oneThatFailsLeavesNothing() throws Exception {
        CuratorFramework client = client();
        client.create().forPath(root + "/there");
        KeeperException.NodeExistsException refused = assertThrows(KeeperException.NodeExistsException.class, () ->
                client.transaction().forOperations(
                        client.transactionOp().create().forPath(root + "/first"),
                        client.transactionOp().create().forPath(root + "/there"),
                        client.transactionOp().delete().forPath(root + "/there")));
        assertEquals(KeeperException.Code.OK.intValue(), refused.getResults().get(0).getType() == -1
                ? ((org.apache.zookeeper.OpResult.ErrorResult) refused.getResults().get(0)).getErr() : -1);
        assertNull(client.checkExists().forPath(root + "/first"));
        assertNotNull(client.checkExists().forPath(root + "/there"));
    }

    @Test
    void moneyIsNeitherMadeNorLost() throws Exception {
        CuratorFramework reader = client();
        for (int account = 0; account < ACCOUNTS; account++) {
            reader.create().forPath(account(account), Integer.toString(BALANCE).getBytes());
        }
        Jobs jobs = start(CLIENTS, number -> {
            CuratorFramework client = client();
            Random random = new Random(number);
            for (int transfer = 0; transfer < TRANSFERS; ) {
                int from = random.nextInt(ACCOUNTS);
                int to = (from + 1 + random.nextInt(ACCOUNTS - 1)) % ACCOUNTS;
                if (transfer(client, from, to, random.nextInt(20))) {
                    transfer++;
                }
            }
        });
        eventually("they are at it", () -> reader.checkExists().forPath(account(0)).getVersion() > 0);
        Target.killLeader();
        jobs.join();
        reader.sync().forPath(root);
        int total = 0;
        for (int account = 0; account < ACCOUNTS; account++) {
            total += Integer.parseInt(new String(reader.getData().forPath(account(account))));
        }
        assertEquals(ACCOUNTS * BALANCE, total);
    }

    private String account(int number) {
        return root + "/account-" + number;
    }

    private boolean transfer(CuratorFramework client, int from, int to, int amount) throws Exception {
        CuratorOp less = change(client, from, -amount);
        CuratorOp more = change(client, to, amount);
        try {
            client.transaction().forOperations(less, more);
            return true;
        } catch (KeeperException.BadVersionException e) {
            return false;
        }
    }

    private CuratorOp change(CuratorFramework client, int account, int by) throws Exception {
        Stat stat = new Stat();
        int value = Integer.parseInt(new String(client.getData().storingStatIn(stat).forPath(account(account))));
        return client.transactionOp().setData().withVersion(stat.getVersion())
                .forPath(account(account), Integer.toString(value + by).getBytes());
    }
}
