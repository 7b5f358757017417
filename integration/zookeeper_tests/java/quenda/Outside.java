package quenda;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/** One process `quenda serve`, outside of this JVM. */
public final class Outside {

    /** Properties that a server of ZooKeeper reads without its prefix. */
    private static final Set<String> UNPREFIXED = Set.of(
        "jute.maxbuffer",
        "readonlymode.enabled",
        "znode.container.checkIntervalMs",
        "znode.container.maxPerMinute",
        "znode.container.maxNeverUsedIntervalMs",
        "java.security.auth.login.config");

    /** Properties of clients and of the Java server's make. */
    private static final Set<String> NOT_FOR_SERVERS = Set.of(
        "zookeeper.serverCnxnFactory",
        "zookeeper.clientCnxnSocket",
        "zookeeper.client.secure",
        "zookeeper.sasl.client",
        "zookeeper.sasl.clientconfig",
        "zookeeper.request.timeout",
        "zookeeper.admin.enableServer");

    /** Left behind by the parser of a configuration; a member's own settings say what holds. */
    private static final Pattern MEMBERSHIP =
        Pattern.compile("zookeeper\\.((server|group|weight)\\.\\d+|dynamicConfigFile|peerType|version)");

    /** Those that run, with the address on which each serves clients without TLS, if it does. */
    private static final Map<Process, Optional<InetSocketAddress>> LIVE = new ConcurrentHashMap<>();
    private static final AtomicInteger STARTED = new AtomicInteger();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> LIVE.keySet().forEach(Process::destroyForcibly)));
    }

    private final Path folder;
    private final String name;
    private Process process;

    /** A process that keeps everything in `folder`; `name` is for its log. */
    public Outside(Path folder, String name) {
        this.folder = folder;
        this.name = name;
    }

    /** How many were started so far. */
    public static int started() {
        return STARTED.get();
    }

    /** How many run now. */
    public static int live() {
        LIVE.keySet().removeIf(process -> !process.isAlive());
        return LIVE.size();
    }

    /** What stands in the way of a server of ZooKeeper within this JVM. */
    public static UnsupportedOperationException refusal(Object which) {
        return new UnsupportedOperationException("a server within the JVM: " + which.getClass().getName());
    }

    /** A port that nobody listens on at this moment. */
    public static int freePort() {
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return probe.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The system properties of this JVM as keys of zoo.cfg, as a server within it would have seen them. */
    public static Map<String, String> settings() {
        Map<String, String> found = new TreeMap<>();
        for (String property : System.getProperties().stringPropertyNames()) {
            if (UNPREFIXED.contains(property)) {
                found.put(property, System.getProperty(property));
            } else if (property.startsWith("zookeeper.") && !NOT_FOR_SERVERS.contains(property)
                && !MEMBERSHIP.matcher(property).matches()) {
                found.put(property.substring("zookeeper.".length()), System.getProperty(property));
            }
        }
        return found;
    }

    /** Starts it and does not wait. */
    public synchronized void start(long id, Map<String, String> own) throws IOException {
        if (isAlive()) {
            throw new IllegalStateException(name + " runs already");
        }
        Path data = folder.resolve("quenda");
        wipeIfUnmarked(data);
        Files.createDirectories(data);
        Files.writeString(data.resolve("myid"), id + "\n");
        Map<String, String> cfg = new LinkedHashMap<>(settings());
        jaas(cfg);
        cfg.putAll(own);
        cfg.put("dataDir", data.toString());
        StringBuilder text = new StringBuilder();
        cfg.forEach((key, value) -> text.append(key).append('=').append(value.replace("\\", "\\\\")).append('\n'));
        Path file = folder.resolve("quenda.cfg");
        Files.writeString(file, text);
        File log = Paths.get(System.getProperty("quenda.logs"), name + "-" + STARTED.incrementAndGet() + ".log").toFile();
        Files.writeString(log.toPath(), text);
        process = new ProcessBuilder(System.getProperty("quenda.bin"), "serve", "--config", file.toString())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(log))
            .start();
        LIVE.put(process, clientAddress(id, cfg));
    }

    /** A test that empties a data directory deletes the files in it, of which there is this one; the folder means the same. */
    private void wipeIfUnmarked(Path data) throws IOException {
        Path mark = folder.resolve("quenda.data");
        if (!Files.exists(mark) && Files.exists(data)) {
            try (Stream<Path> all = Files.walk(data)) {
                for (Path path : all.sorted(Comparator.reverseOrder()).collect(Collectors.toList())) {
                    Files.delete(path);
                }
            }
        }
        Files.writeString(mark, "");
    }

    private static Optional<InetSocketAddress> clientAddress(long id, Map<String, String> cfg) {
        String port = cfg.get("clientPort");
        String line = cfg.getOrDefault("server." + id, "");
        if (line.contains(";")) {
            port = line.replaceAll(".*[:;]", "");
        }
        return Optional.ofNullable(port).map(number -> new InetSocketAddress("127.0.0.1", Integer.parseInt(number)));
    }

    /** The lines with which every running server answers. */
    public static List<String> fourLetterWord(String word) {
        List<String> lines = new ArrayList<>();
        LIVE.values().forEach(address -> address.ifPresent(there -> lines.addAll(fourLetterWord(there, word))));
        return lines;
    }

    private static List<String> fourLetterWord(InetSocketAddress address, String word) {
        try (Socket socket = new Socket()) {
            socket.connect(address, 1000);
            socket.setSoTimeout(2000);
            socket.getOutputStream().write(word.getBytes(StandardCharsets.US_ASCII));
            return List.of(new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8).split("\n"));
        } catch (IOException e) {
            return List.of();
        }
    }

    /** The users that a server within the JVM would have read from its JAAS configuration. */
    private void jaas(Map<String, String> cfg) throws IOException {
        AppConfigurationEntry[] entries;
        String section = System.getProperty("zookeeper.sasl.serverconfig", "Server");
        try {
            entries = Configuration.getConfiguration().getAppConfigurationEntry(section);
        } catch (SecurityException e) {
            return; // there is no configuration
        }
        if (entries == null) {
            return;
        }
        StringBuilder text = new StringBuilder(section).append(" {\n");
        for (AppConfigurationEntry entry : entries) {
            text.append("  ").append(entry.getLoginModuleName()).append(" required");
            entry.getOptions().forEach((key, value) ->
                text.append("\n    ").append(key).append("=\"").append(value).append('"'));
            text.append(";\n");
        }
        Path file = folder.resolve("quenda-jaas.conf");
        Files.writeString(file, text.append("};\n"));
        cfg.put("java.security.auth.login.config", file.toString());
    }

    /** Whether the process runs. */
    public synchronized boolean isAlive() {
        return process != null && process.isAlive();
    }

    /** Waits until it answers there; `tls` says that only TLS is spoken. */
    public void awaitServing(InetSocketAddress address, boolean tls) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!(tls ? listens(address) : mode(address) != null)) {
            if (!isAlive()) {
                throw new IllegalStateException(name + " did not start, see its log");
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(name + " does not serve after 30 s");
            }
            Thread.sleep(20);
        }
    }

    private static boolean listens(InetSocketAddress address) {
        try (Socket socket = new Socket()) {
            socket.connect(address, 1000);
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** What `srvr` says the member is (leader, follower, …); null while it does not serve. */
    public static String mode(InetSocketAddress address) {
        return srvr(address, "Mode");
    }

    /** A field of the answer to `srvr`; null while there is none. */
    public static String srvr(InetSocketAddress address, String field) {
        for (String line : fourLetterWord(address, "srvr")) {
            if (line.startsWith(field + ": ")) {
                return line.substring(field.length() + 2);
            }
        }
        return null;
    }

    /** Ends it as an operator does, and waits for the end. */
    public synchronized void stop() {
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        LIVE.remove(process);
        process = null;
    }

    /** Waits until the process has ended by itself or by `stop`. */
    public void join() throws InterruptedException {
        Process current;
        synchronized (this) {
            current = process;
        }
        if (current != null) {
            current.waitFor();
        }
    }
}
