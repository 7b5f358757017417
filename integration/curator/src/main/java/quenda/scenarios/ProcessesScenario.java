package quenda.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.junit.jupiter.api.Test;

/** Clients in processes of their own. */
class ProcessesScenario extends Scenario {
    private static final int PROCESSES = 3;
    private static final int ROUNDS = 40;

    private Process worker(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dquenda.connect=" + Target.CONNECT,
                "-cp", System.getProperty("java.class.path"), Worker.class.getName()));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        closing(process::destroyForcibly);
        return process;
    }

    @Test
    void countUnderALock() throws Exception {
        CuratorFramework client = client();
        client.create().forPath(root + "/number", "0".getBytes());
        List<Process> workers = new ArrayList<>();
        for (int number = 0; number < PROCESSES; number++) {
            workers.add(worker("count", root, Integer.toString(ROUNDS)));
        }
        eventually("they are at it", () -> number(client, root + "/number") > ROUNDS / 4);
        Target.killLeader();
        for (Process process : workers) {
            assertTrue(process.waitFor(120, TimeUnit.SECONDS));
            assertEquals(0, process.exitValue());
        }
        assertEquals(PROCESSES * ROUNDS, number(client, root + "/number"));
    }

    @Test
    void oneThatIsKilledGivesUpItsLockWithItsSession() throws Exception {
        Process holder = worker("hold", root);
        assertEquals("held", new BufferedReader(new InputStreamReader(holder.getInputStream())).readLine());
        InterProcessMutex lock = new InterProcessMutex(client(), root + "/lock");
        holder.destroyForcibly().waitFor();
        long began = System.nanoTime();
        assertFalse(lock.acquire(SESSION_MS / 3, TimeUnit.MILLISECONDS), "the lock was free before its owner's time");
        assertTrue(lock.acquire(2 * SESSION_MS, TimeUnit.MILLISECONDS), "the lock never became free");
        long waited = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
        assertTrue(waited > SESSION_MS / 2, "free after " + waited + " ms");
        lock.release();
    }
}
