package quenda.scenarios;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** The ensemble under test, which somebody outside has started, and who can be asked to do things to it. */
final class Target {
    static final String CONNECT = System.getProperty("quenda.connect");
    static final int MEMBERS = Integer.getInteger("quenda.members", 1);
    private static final int CONTROL_PORT = Integer.getInteger("quenda.control", 0);
    private static final int CONTROL_MS = 120_000;

    private Target() {}

    /** Kills the leader (the only member, if it is alone) with SIGKILL, and starts it again once another one leads. */
    static void killLeader() {
        control("kill");
    }

    /** Stops the leader for some seconds without ending it: connections are silent, not reset. */
    static void pauseLeader(int seconds) {
        control("pause " + seconds);
    }

    /** Starts a further member, not in the configuration yet; returns its `server.N=…` line. */
    static String startFurtherMember() {
        return control("add");
    }

    /** Waits until so many members follow the leader and have caught up with it. */
    static void awaitFollowers(int count) {
        control("joined " + count);
    }

    /** Host and port at which the leader serves clients at this moment. */
    static String leaderAddress() {
        return control("leader");
    }

    /** The `server.N=…` line of a member that follows at this moment. */
    static String followerLine() {
        return control("follower");
    }

    private static String control(String command) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), CONTROL_PORT)) {
            socket.setSoTimeout(CONTROL_MS);
            socket.getOutputStream().write((command + "\n").getBytes(StandardCharsets.UTF_8));
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            String answer = in.readLine();
            if (answer == null || !answer.startsWith("ok")) {
                throw new IllegalStateException(command + ": " + answer);
            }
            return answer.substring(2).strip();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
