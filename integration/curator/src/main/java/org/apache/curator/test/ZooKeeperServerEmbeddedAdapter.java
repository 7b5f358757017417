package org.apache.curator.test;

import java.util.Properties;
import quenda.servers.ServerGroup;

/**
 * Takes the place of the class of this name in curator-test, which runs a server inside the JVM. Everything that
 * Curator's tests do with a server ends here: start, stop, kill, restart. This one does it to a real server process.
 */
public final class ZooKeeperServerEmbeddedAdapter implements ZooKeeperMainFace {
    private volatile ServerGroup servers;

    @Override
    public void start(QuorumPeerConfigBuilder builder) {
        try {
            Properties cfg = builder.buildProperties();
            servers = ServerGroup.of(cfg);
            servers.start();
        } catch (Exception e) {
            throw new FailedServerStartException(e);
        }
    }

    @Override
    public int getClientPort() {
        return servers.clientPort();
    }

    @Override
    public void kill() {
        if (servers != null) {
            servers.kill();
        }
    }

    @Override
    public void close() {
        if (servers != null) {
            servers.stop();
        }
    }
}
