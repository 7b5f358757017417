package org.apache.zookeeper.server;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import quenda.Outside;

/**
 * Where ZooKeeper's factory would listen and serve a ZooKeeperServer, this one starts Quenda on the same port with the
 * same settings, as one member or as the first of three (-Dquenda.members=3).
 */
public final class OutsideCnxnFactory extends ServerCnxnFactory {

    private static final int MEMBERS = Integer.getInteger("quenda.members", 1);
    /** The factories of each server, the one with the plain port and the one with the secure port. */
    private static final Map<ZooKeeperServer, List<OutsideCnxnFactory>> PORTS = new WeakHashMap<>();

    private final List<Outside> members = new ArrayList<>();
    private InetSocketAddress address;
    private int backlog = -1;
    private int maxPerHost = 60;

    @Override
    public void configure(InetSocketAddress wanted, int maxPerHost, int backlog, boolean secure) throws IOException {
        configureSaslLogin();
        int port = wanted.getPort() == 0 ? Outside.freePort() : wanted.getPort();
        // As the address of a socket that is bound: without the name that it was asked for by.
        address = new InetSocketAddress(InetAddress.getByAddress(wanted.getAddress().getAddress()), port);
        this.maxPerHost = maxPerHost;
        this.backlog = backlog;
        this.secure = secure;
        initMaxCnxns();
    }

    @Override
    public void startup(ZooKeeperServer server, boolean startServer) throws IOException, InterruptedException {
        setZooKeeperServer(server);
        if (secure) {
            server.setSecureServerCnxnFactory(this);
        } else {
            server.setServerCnxnFactory(this);
        }
        List<OutsideCnxnFactory> all;
        synchronized (PORTS) {
            all = PORTS.computeIfAbsent(server, key -> new ArrayList<>());
            all.add(this);
        }
        // A second port of the same server: the process is one, so it starts anew with both.
        all.forEach(OutsideCnxnFactory::stopMembers);
        launch(server, all);
        if (all.size() == 1) {
            server.registerJMX(); // some tests wait until the bean is there; it says nothing of the process
        }
        server.setState(ZooKeeperServer.State.RUNNING);
    }

    private void launch(ZooKeeperServer server, List<OutsideCnxnFactory> all) throws IOException, InterruptedException {
        Path folder = server.getTxnLogFactory().getSnapDir().toPath();
        Map<String, String> cfg = settings(server);
        for (OutsideCnxnFactory factory : all) {
            factory.addPort(cfg);
        }
        Map<String, String> lines = MEMBERS > 1 ? lines() : Collections.emptyMap();
        for (int number = 1; number <= MEMBERS; number++) {
            Map<String, String> own = new HashMap<>(cfg);
            own.putAll(lines);
            if (number > 1) {
                own.put("clientPort", Integer.toString(Outside.freePort()));
                own.keySet().removeAll(List.of("secureClientPort", "secureClientPortAddress", "clientPortAddress"));
            }
            Path home = number == 1 ? folder : folder.resolve("member-" + number);
            Files.createDirectories(home);
            Outside member = new Outside(home, "server-" + address.getPort() + "-" + number);
            members.add(member);
            member.start(id(server, number), own);
        }
        for (OutsideCnxnFactory factory : all) {
            members.get(0).awaitServing(factory.reachable(), factory.secure);
        }
    }

    /** Of a member that runs alone: what a test has set for its sessions. */
    private static long id(ZooKeeperServer server, int number) {
        try {
            Field field = ZooKeeperServer.class.getDeclaredField("createSessionTrackerServerId");
            field.setAccessible(true);
            return MEMBERS == 1 ? Math.max(field.getInt(server), 1) : number;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Map<String, String> lines() {
        Map<String, String> lines = new HashMap<>();
        for (int number = 1; number <= MEMBERS; number++) {
            lines.put("server." + number, "127.0.0.1:" + Outside.freePort() + ":" + Outside.freePort());
        }
        lines.put("initLimit", "20");
        lines.put("syncLimit", "10");
        return lines;
    }

    private Map<String, String> settings(ZooKeeperServer server) {
        Map<String, String> cfg = new HashMap<>();
        cfg.put("tickTime", Integer.toString(server.getTickTime()));
        cfg.put("minSessionTimeout", Integer.toString(server.getMinSessionTimeout()));
        cfg.put("maxSessionTimeout", Integer.toString(server.getMaxSessionTimeout()));
        cfg.put("reconfigEnabled", Boolean.toString(server.isReconfigEnabled()));
        return cfg;
    }

    private void addPort(Map<String, String> cfg) {
        String prefix = secure ? "secureClientPort" : "clientPort";
        cfg.put(prefix, Integer.toString(address.getPort()));
        if (!address.getAddress().isAnyLocalAddress()) {
            cfg.put(prefix + "Address", address.getAddress().getHostAddress().replaceAll("%.*", ""));
        }
        cfg.put("maxClientCnxns", Integer.toString(Math.max(maxPerHost, 0)));
        if (backlog > 0) {
            cfg.put("clientPortListenBacklog", Integer.toString(backlog));
        }
    }

    private InetSocketAddress reachable() {
        return address.getAddress().isAnyLocalAddress()
            ? new InetSocketAddress("127.0.0.1", address.getPort()) : address;
    }

    private synchronized void stopMembers() {
        members.forEach(Outside::stop);
        members.clear();
    }

    @Override
    public void shutdown() {
        ZooKeeperServer server = zkServer;
        if (server == null) {
            return;
        }
        synchronized (PORTS) {
            List<OutsideCnxnFactory> all = PORTS.remove(server);
            if (all != null) {
                all.forEach(OutsideCnxnFactory::stopMembers);
                server.unregisterJMX();
            }
        }
        if (server.isRunning()) {
            server.setState(ZooKeeperServer.State.SHUTDOWN);
        }
        synchronized (this) {
            notifyAll();
        }
    }

    @Override
    public void start() {
        // The process was started with its server.
    }

    @Override
    public synchronized void join() throws InterruptedException {
        while (!members.isEmpty()) {
            wait();
        }
    }

    @Override
    public int getLocalPort() {
        return address.getPort();
    }

    @Override
    public InetSocketAddress getLocalAddress() {
        return address;
    }

    @Override
    public void reconfigure(InetSocketAddress wanted) {
        throw Outside.refusal(this);
    }

    @Override
    public int getMaxClientCnxnsPerHost() {
        return maxPerHost;
    }

    @Override
    public void setMaxClientCnxnsPerHost(int max) {
        if (!members.isEmpty()) {
            throw Outside.refusal(this);
        }
        maxPerHost = max;
    }

    @Override
    public int getSocketListenBacklog() {
        return backlog;
    }

    @Override
    public Iterable<ServerCnxn> getConnections() {
        return refuseConnections();
    }

    @Override
    public int getNumAliveConnections() {
        String count = Outside.srvr(reachable(), "Connections");
        return count == null ? 0 : Integer.parseInt(count) - 1; // less the one that asked
    }

    @Override
    public void closeAll(ServerCnxn.DisconnectReason reason) {
        refuseConnections();
    }

    @Override
    public boolean closeSession(long session, ServerCnxn.DisconnectReason reason) {
        refuseConnections();
        return false;
    }

    @Override
    public void resetAllConnectionStats() {
        refuseConnections();
    }

    @Override
    public Iterable<Map<String, Object>> getAllConnectionInfo(boolean brief) {
        refuseConnections();
        return Collections.emptyList();
    }

    /** Connections are the process's own while it runs. */
    private Iterable<ServerCnxn> refuseConnections() {
        if (!members.isEmpty()) {
            throw Outside.refusal(this);
        }
        return Collections.emptyList();
    }
}
