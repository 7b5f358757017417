package quenda.servers;

import java.util.List;
import java.util.Properties;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/** What a server inside the test's JVM would read from that JVM, as lines of a zoo.cfg. */
final class JvmSettings {
    private static final String PREFIX = "zookeeper.";
    private static final List<String> NAMES = List.of(
            "readonlymode.enabled",
            "znode.container.checkIntervalMs",
            "zookeeper.DigestAuthenticationProvider.superDigest",
            "zookeeper.extendedTypesEnabled");

    private JvmSettings() {}

    static Properties current() {
        Properties found = new Properties();
        found.setProperty("admin.enableServer", "false");
        found.setProperty("4lw.commands.whitelist", "*");
        for (String name : NAMES) {
            String value = System.getProperty(name);
            if (value != null) {
                found.setProperty(name.startsWith(PREFIX) ? name.substring(PREFIX.length()) : name, value);
            }
        }
        if (QuorumPeerConfig.isReconfigEnabled()) {
            found.setProperty("reconfigEnabled", "true");
        }
        return found;
    }
}
