package quenda.servers;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** One `quenda serve` with a zoo.cfg of its own. None outlives the JVM. */
final class ServerProcess {
    private static final String HOST = "127.0.0.1";
    private static final long START_SECONDS = 60;
    private static final long END_SECONDS = 30;
    private static final int POLL_MS = 10;
    private static final int CONNECT_MS = 2000;
    private static final Set<Process> RUNNING = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> RUNNING.forEach(Process::destroyForcibly)));
    }

    private final int port;
    private final Properties cfg;
    private final Path folder;
    private Process process;

    ServerProcess(Properties cfg) throws IOException {
        this.cfg = cfg;
        this.port = Integer.parseInt(cfg.getProperty("clientPort"));
        this.folder = Files.createTempDirectory("server-" + port + "-");
    }

    void start() throws IOException {
        Path file = folder.resolve("zoo.cfg");
        StringBuilder lines = new StringBuilder();
        for (String key : new TreeSet<>(cfg.stringPropertyNames())) {
            lines.append(key).append('=').append(cfg.getProperty(key)).append('\n');
        }
        Files.writeString(file, lines);
        process = new ProcessBuilder(System.getenv("QUENDA_BIN"), "serve", "--config", file.toString())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log().toFile()))
                .start();
        RUNNING.add(process);
    }

    void awaitListening() throws IOException, InterruptedException {
        await("");
    }

    void awaitServing() throws IOException, InterruptedException {
        await("Mode:");
    }

    void signalStop() {
        process.destroy();
    }

    void signalKill() {
        process.destroyForcibly();
    }

    void awaitEnd() {
        try {
            if (!process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new IllegalStateException("the server does not end: " + folder);
            }
            RUNNING.remove(process);
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    private void await(String inAnswer) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
        while (!answers(inAnswer)) {
            if (!process.isAlive() || System.nanoTime() > deadline) {
                throw new IOException("no server on port " + port + ": " + Files.readString(log()));
            }
            Thread.sleep(POLL_MS);
        }
    }

    private boolean answers(String wanted) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(HOST, port), CONNECT_MS);
            socket.setSoTimeout(CONNECT_MS);
            socket.getOutputStream().write("srvr".getBytes(StandardCharsets.US_ASCII));
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            return answer.contains(wanted);
        } catch (IOException e) {
            return false;
        }
    }

    private Path log() {
        return folder.resolve("log");
    }
}
