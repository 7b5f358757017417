package quenda.servers;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * What stands behind one server of curator-test: one process, or, where the test asks for a single server and
 * {@code quenda.members} says 3, an ensemble of three whose first member the test talks to. They start and end together.
 */
public final class ServerGroup {
    private static final int MEMBERS = Integer.getInteger("quenda.members", 1);
    private static final int START_ATTEMPTS = 3;

    private final Properties cfg;
    private final List<ServerProcess> processes = new ArrayList<>();
    private LossyProxy proxy;
    private int clientPort;

    private ServerGroup(Properties cfg) {
        this.cfg = cfg;
    }

    /** Of the zoo.cfg that curator-test has made, with what it would have read from the JVM that it runs in. */
    public static ServerGroup of(Properties cfg) {
        cfg.putAll(JvmSettings.current());
        return new ServerGroup(cfg);
    }

    /** Starts and waits: one that stands alone until it serves, one of several until clients can connect. */
    public void start() throws IOException, InterruptedException {
        boolean anyPort = cfg.getProperty("clientPort").equals("0");
        for (int attempt = 1; ; attempt++) {
            try {
                startOnce();
                return;
            } catch (IOException e) {
                kill();
                // A port found free may be taken before the server binds it; a chosen one is kept.
                if (!anyPort || attempt == START_ATTEMPTS) {
                    throw e;
                }
                cfg.setProperty("clientPort", "0");
            }
        }
    }

    public int clientPort() {
        return clientPort;
    }

    /** SIGTERM, and waits for the end. */
    public void stop() {
        closeProxy();
        processes.forEach(ServerProcess::signalStop);
        processes.forEach(ServerProcess::awaitEnd);
    }

    /** SIGKILL, all at once. */
    public void kill() {
        closeProxy();
        processes.forEach(ServerProcess::signalKill);
        processes.forEach(ServerProcess::awaitEnd);
    }

    private void startOnce() throws IOException, InterruptedException {
        processes.clear();
        if (cfg.getProperty("clientPort").equals("0")) {
            cfg.setProperty("clientPort", Integer.toString(freePort()));
        }
        clientPort = Integer.parseInt(cfg.getProperty("clientPort"));
        boolean alone = cfg.stringPropertyNames().stream().noneMatch(key -> key.startsWith("server."));
        if (LossyProxy.wanted()) {
            proxy = new LossyProxy(clientPort, freePort());
            cfg.setProperty("clientPort", Integer.toString(proxy.serverPort()));
        }
        if (alone && MEMBERS > 1) {
            for (Properties member : ensemble()) {
                processes.add(new ServerProcess(member));
            }
        } else {
            processes.add(new ServerProcess(cfg));
        }
        for (ServerProcess process : processes) {
            process.start();
        }
        if (alone) {
            processes.get(0).awaitServing();
        } else {
            processes.get(0).awaitListening();
        }
        if (proxy != null) {
            proxy.start();
            cfg.setProperty("clientPort", Integer.toString(clientPort));
        }
    }

    /** The zoo.cfg of each member. Their own ports stay with the data, so that a restart finds the same ensemble. */
    private List<Properties> ensemble() throws IOException {
        Path folder = Files.createDirectories(Path.of(cfg.getProperty("dataDir")));
        Path keptPorts = folder.resolve("ports.properties");
        Properties ports = new Properties();
        if (Files.exists(keptPorts)) {
            try (var in = Files.newInputStream(keptPorts)) {
                ports.load(in);
            }
        } else {
            for (int id = 1; id <= MEMBERS; id++) {
                ports.setProperty("quorum." + id, Integer.toString(freePort()));
                ports.setProperty("election." + id, Integer.toString(freePort()));
                ports.setProperty("client." + id, Integer.toString(freePort()));
            }
            ports.setProperty("client.1", cfg.getProperty("clientPort"));
            try (var out = Files.newOutputStream(keptPorts)) {
                ports.store(out, null);
            }
        }
        List<Properties> members = new ArrayList<>();
        for (int id = 1; id <= MEMBERS; id++) {
            Properties member = new Properties();
            member.putAll(cfg);
            Path data = Files.createDirectories(folder.resolve("member-" + id));
            Files.writeString(data.resolve("myid"), Integer.toString(id));
            member.setProperty("dataDir", data.toString());
            member.setProperty("clientPort", id == 1 ? cfg.getProperty("clientPort") : ports.getProperty("client." + id));
            for (int of = 1; of <= MEMBERS; of++) {
                // A client that finds more addresses in /zookeeper/config than the one it has been given moves by chance.
                String client = of == 1 ? ";127.0.0.1:" + cfg.getProperty("clientPort") : "";
                member.setProperty("server." + of, "127.0.0.1:" + ports.getProperty("quorum." + of) + ":"
                        + ports.getProperty("election." + of) + client);
            }
            members.add(member);
        }
        return members;
    }

    private void closeProxy() {
        if (proxy != null) {
            proxy.close();
            proxy = null;
        }
    }

    static int freePort() throws IOException {
        try (ServerSocket probe = new ServerSocket(0)) {
            return probe.getLocalPort();
        }
    }
}
