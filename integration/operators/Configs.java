import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/** What a genuine server makes of configuration files: one line for each, its values or why it is refused. */
public class Configs {
    public static void main(String[] files) {
        for (String file : files) {
            System.out.println(Path.of(file).getFileName() + "\t" + read(file));
        }
    }

    private static String read(String file) {
        QuorumPeerConfig config = new QuorumPeerConfig();
        try {
            config.parse(file);
        } catch (Throwable error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            String text = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
            return "refused\t" + text.replace("\n", " ");
        }
        int tick = config.getTickTime();
        int least = config.getMinSessionTimeout() == -1 ? 2 * tick : config.getMinSessionTimeout();
        int greatest = config.getMaxSessionTimeout() == -1 ? 20 * tick : config.getMaxSessionTimeout();
        int members = config.isDistributed() ? config.getServers().size() : 0;
        int port = config.getClientPortAddress() == null ? -1 : config.getClientPortAddress().getPort();
        return "accepted\t" + least + " to " + greatest + "\t" + config.getMaxClientCnxns() + "\t" + members + "\t" + port
            + "\t" + config.getDataDir().getName();
    }
}
