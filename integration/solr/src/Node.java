import java.nio.file.Path;
import java.util.Properties;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/** One SolrCloud node: HOME PORT ZKHOST. Ends by SIGTERM as Solr does, by its shutdown hook. */
public class Node {
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("zkHost", args[2]);
    JettyConfig config =
        JettyConfig.builder().setPort(Integer.parseInt(args[1])).useOnlyHttp1(true).stopAtShutdown(true).build();
    JettySolrRunner node = new JettySolrRunner(Path.of(args[0]).toString(), properties, config);
    node.start(false);
    System.out.println("ready " + node.getLocalPort());
    Thread.currentThread().join();
  }
}
