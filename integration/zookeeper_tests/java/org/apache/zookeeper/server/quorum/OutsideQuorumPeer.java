package org.apache.zookeeper.server.quorum;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import javax.security.sasl.SaslException;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.quorum.flexible.QuorumVerifier;
import org.objenesis.ObjenesisStd;
import quenda.Outside;

/** A member of an ensemble: where ZooKeeper's would take part itself, this one starts Quenda with the same settings. */
public final class OutsideQuorumPeer extends QuorumPeer {

    private static final long POLL_MS = 250;
    /** Many tests number members from 0, which no member of Quenda can have. */
    private static final long ZERO = 100;

    private volatile Outside member;
    private volatile boolean stopped;

    public OutsideQuorumPeer() throws SaslException {
        super();
    }

    public OutsideQuorumPeer(Map<Long, QuorumServer> peers, File data, File log, int type, long id, int tick, int init,
        int sync, int connect, ServerCnxnFactory factory) throws IOException {
        super(peers, data, log, type, id, tick, init, sync, connect, factory);
    }

    public OutsideQuorumPeer(Map<Long, QuorumServer> peers, File data, File log, int type, long id, int tick, int init,
        int sync, int connect, boolean everywhere, ServerCnxnFactory factory, QuorumVerifier quorum) throws IOException {
        super(peers, data, log, type, id, tick, init, sync, connect, everywhere, factory, quorum);
    }

    public OutsideQuorumPeer(Map<Long, QuorumServer> peers, File data, File log, int port, int type, long id, int tick,
        int init, int sync, int connect) throws IOException {
        super(peers, data, log, port, type, id, tick, init, sync, connect);
    }

    public OutsideQuorumPeer(Map<Long, QuorumServer> peers, File data, File log, int port, int type, long id, int tick,
        int init, int sync, int connect, String oracle) throws IOException {
        super(peers, data, log, port, type, id, tick, init, sync, connect, oracle);
    }

    public OutsideQuorumPeer(Map<Long, QuorumServer> peers, File data, File log, int port, int type, long id, int tick,
        int init, int sync, int connect, QuorumVerifier quorum) throws IOException {
        super(peers, data, log, port, type, id, tick, init, sync, connect, quorum);
    }

    /** Refuses a peer of ZooKeeper's own. */
    public static void check(QuorumPeer peer) {
        if (!(peer instanceof OutsideQuorumPeer)) {
            throw Outside.refusal(peer);
        }
    }

    @Override
    public synchronized void start() {
        Path folder = getTxnFactory().getSnapDir().toPath();
        member = new Outside(folder, "member-" + getMyId());
        try {
            member.start(getMyId() == 0 ? ZERO : getMyId(), settings());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        super.start(); // the thread only, see Agent
    }

    private Map<String, String> settings() {
        Map<String, String> cfg = new HashMap<>();
        boolean ownAddress = false;
        for (String line : getQuorumVerifier().toString().split("\n")) {
            int equals = line.indexOf('=');
            if (equals > 0 && !line.startsWith("version=")) {
                cfg.put(line.substring(0, equals).replaceAll("\\.0$", "." + ZERO), line.substring(equals + 1));
                ownAddress |= line.startsWith("server." + getMyId() + "=") && line.contains(";");
            }
        }
        if (!ownAddress && cnxnFactory != null) {
            cfg.put("clientPort", Integer.toString(cnxnFactory.getLocalPort()));
        }
        if (secureCnxnFactory != null) {
            cfg.put("secureClientPort", Integer.toString(secureCnxnFactory.getLocalPort()));
        }
        if (cnxnFactory != null) {
            cfg.put("maxClientCnxns", Integer.toString(Math.max(cnxnFactory.getMaxClientCnxnsPerHost(), 0)));
        }
        cfg.put("tickTime", Integer.toString(getTickTime()));
        cfg.put("initLimit", Integer.toString(getInitLimit()));
        cfg.put("syncLimit", Integer.toString(getSyncLimit()));
        cfg.put("minSessionTimeout", Integer.toString(getMinSessionTimeout()));
        cfg.put("maxSessionTimeout", Integer.toString(getMaxSessionTimeout()));
        cfg.put("standaloneEnabled", Boolean.toString(QuorumPeerConfig.isStandaloneEnabled()));
        cfg.put("reconfigEnabled", Boolean.toString(QuorumPeerConfig.isReconfigEnabled()));
        cfg.put("localSessionsEnabled", Boolean.toString(areLocalSessionsEnabled()));
        cfg.put("localSessionsUpgradingEnabled", Boolean.toString(isLocalSessionsUpgradingEnabled()));
        cfg.put("quorumListenOnAllIPs", Boolean.toString(getQuorumListenOnAllIPs()));
        return cfg;
    }

    /** Follows what the process is, for those who look at this object; ends with the process. */
    @Override
    public void run() {
        while (!stopped && member.isAlive()) {
            observe();
            try {
                Thread.sleep(POLL_MS);
            } catch (InterruptedException e) {
                break;
            }
        }
        member.stop();
        observe();
    }

    private synchronized void observe() {
        boolean runs = !stopped && member != null && member.isAlive();
        String mode = runs ? Outside.mode(new InetSocketAddress("127.0.0.1", getClientPort())) : null;
        ServerState state = state(mode);
        if (state == super.getPeerState()) {
            return;
        }
        // Shells, only there to be seen: what they would contain is in the process.
        leader = state == ServerState.LEADING ? new ObjenesisStd().newInstance(Leader.class) : null;
        follower = state == ServerState.FOLLOWING ? new ObjenesisStd().newInstance(Follower.class) : null;
        observer = state == ServerState.OBSERVING ? new ObjenesisStd().newInstance(Observer.class) : null;
        super.setPeerState(state);
        setZabState(state == ServerState.LOOKING ? ZabState.ELECTION : ZabState.BROADCAST);
    }

    private static ServerState state(String mode) {
        if ("leader".equals(mode)) {
            return ServerState.LEADING;
        }
        if ("follower".equals(mode)) {
            return ServerState.FOLLOWING;
        }
        return "observer".equals(mode) ? ServerState.OBSERVING : ServerState.LOOKING;
    }

    /** In the place of the field. */
    public static Leader leader(QuorumPeer peer) {
        peer.getPeerState();
        return peer.leader;
    }

    /** In the place of the field. */
    public static Follower follower(QuorumPeer peer) {
        peer.getPeerState();
        return peer.follower;
    }

    /** In the place of the field. */
    public static Observer observer(QuorumPeer peer) {
        peer.getPeerState();
        return peer.observer;
    }

    @Override
    public synchronized ServerState getPeerState() {
        if (member != null) {
            observe();
        }
        return super.getPeerState();
    }

    @Override
    public void shutdown() {
        stopped = true;
        if (member != null) {
            member.stop();
        }
    }

    @Override
    public boolean isRunning() {
        return !stopped;
    }

    @Override
    public void setSuspended(boolean suspended) {
        throw Outside.refusal(this); // it would hold back the election and go on to serve
    }
}
