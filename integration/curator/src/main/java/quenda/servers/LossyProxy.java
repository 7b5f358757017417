package quenda.servers;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Stands between clients and a server and does to connections what Curator's ChaosMonkeyCnxnFactory does inside a
 * server: the first create below {@value #PREFIX} is carried out, but the client loses its connection in place of the
 * answer; for some seconds after that every connection that asks for more than a ping or a sync is closed.
 */
final class LossyProxy {
    private static final String FACTORY_PROPERTY = "zookeeper.serverCnxnFactory";
    private static final String FACTORY = "ChaosMonkeyCnxnFactory";
    private static final String PREFIX = "/mylock/";
    private static final long LOCKOUT_NANOS = TimeUnit.SECONDS.toNanos(6);
    private static final int CREATE = 1;
    private static final int CREATE2 = 15;
    private static final int SYNC = 9;
    private static final int PING = 11;

    private final int serverPort;
    private final ServerSocket listener;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private Long lockedSince;

    LossyProxy(int clientPort, int serverPort) throws IOException {
        this.serverPort = serverPort;
        this.listener = new ServerSocket(clientPort, 0, InetAddress.getLoopbackAddress());
    }

    /** Whether the test has asked for such a server. */
    static boolean wanted() {
        return System.getProperty(FACTORY_PROPERTY, "").endsWith(FACTORY);
    }

    int serverPort() {
        return serverPort;
    }

    void start() {
        daemon(this::accept);
    }

    void close() {
        closeQuietly(listener);
        sockets.forEach(LossyProxy::closeQuietly);
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            Socket server = new Socket(InetAddress.getLoopbackAddress(), serverPort);
            sockets.add(client);
            sockets.add(server);
            daemon(() -> {
                try (client) {
                    server.getInputStream().transferTo(client.getOutputStream());
                }
            });
            daemon(() -> {
                try (client) {
                    forwardRequests(client, server);
                } finally {
                    // The server goes on with what it has been sent and sees the end behind it.
                    server.shutdownOutput();
                }
            });
        }
    }

    private void forwardRequests(Socket client, Socket server) throws IOException {
        DataInputStream in = new DataInputStream(client.getInputStream());
        DataOutputStream out = new DataOutputStream(server.getOutputStream());
        boolean handshake = true;
        while (true) {
            byte[] frame = new byte[in.readInt()];
            in.readFully(frame);
            Verdict verdict = handshake ? Verdict.FORWARD : judge(ByteBuffer.wrap(frame));
            handshake = false;
            if (verdict == Verdict.REFUSE) {
                return;
            }
            if (verdict == Verdict.FORWARD_AND_LOSE) {
                client.shutdownOutput();
            }
            out.writeInt(frame.length);
            out.write(frame);
            if (verdict == Verdict.FORWARD_AND_LOSE) {
                return;
            }
        }
    }

    private enum Verdict {
        FORWARD,
        FORWARD_AND_LOSE,
        REFUSE
    }

    private synchronized Verdict judge(ByteBuffer frame) {
        frame.getInt(); // xid
        int kind = frame.getInt();
        boolean locked = lockedSince != null && System.nanoTime() - lockedSince < LOCKOUT_NANOS;
        if (locked && kind != PING && kind != SYNC) {
            return Verdict.REFUSE;
        }
        if (lockedSince == null && (kind == CREATE || kind == CREATE2) && path(frame).startsWith(PREFIX)) {
            lockedSince = System.nanoTime();
            return Verdict.FORWARD_AND_LOSE;
        }
        return Verdict.FORWARD;
    }

    private static String path(ByteBuffer frame) {
        byte[] path = new byte[frame.getInt()];
        frame.get(path);
        return new String(path, StandardCharsets.UTF_8);
    }

    private interface Job {
        void run() throws IOException;
    }

    private static void daemon(Job job) {
        Thread thread = new Thread(() -> {
            try {
                job.run();
            } catch (IOException e) {
                // A connection that has ended: its pair ends with it, which is all there is to do.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void closeQuietly(java.io.Closeable closeable) {
        try {
            closeable.close();
        } catch (IOException e) {
            // Closed is all that is wanted of it.
        }
    }
}
