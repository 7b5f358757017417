import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.solr.client.solrj.impl.CloudSolrClient;
import org.apache.solr.client.solrj.request.UpdateRequest;
import org.apache.solr.common.SolrInputDocument;

/**
 * Indexes numbered documents through SolrJ's client that reads the cluster from ZooKeeper: ZKHOST COLLECTION FIRST LAST
 * PAUSE_MS. Prints a line for each document that was acknowledged; one that was refused is sent again.
 */
public class Indexer {
  public static void main(String[] args) throws Exception {
    String collection = args[1];
    int last = Integer.parseInt(args[3]);
    long pause = Long.parseLong(args[4]);
    try (CloudSolrClient client =
        new CloudSolrClient.Builder(List.of(args[0].split(",")), Optional.empty()).build()) {
      client.connect(120, TimeUnit.SECONDS);
      System.out.println("connected");
      for (int number = Integer.parseInt(args[2]); number <= last; number++) {
        index(client, collection, number);
        System.out.println("indexed " + number);
        Thread.sleep(pause);
      }
    }
    System.out.println("done");
  }

  private static void index(CloudSolrClient client, String collection, int number) throws Exception {
    SolrInputDocument document = new SolrInputDocument();
    document.setField("id", Integer.toString(number));
    document.setField("number", number);
    while (true) {
      try {
        new UpdateRequest().add(document).process(client, collection);
        return;
      } catch (Exception refused) {
        System.out.println("again " + number + " " + refused.getClass().getSimpleName());
        refused.printStackTrace();
        Thread.sleep(200);
      }
    }
  }
}
