import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/** Carries out one command a line of standard input, and prints "done NUMBER result" for each. */
public class Client {
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] COLUMN = Bytes.toBytes("number");

  public static void main(String[] args) throws Exception {
    Configuration configuration = HBaseConfiguration.create();
    try (Connection connection = ConnectionFactory.createConnection(configuration)) {
      System.out.println("ready");
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        String[] words = line.split(" ");
        try {
          System.out.println("done " + words[0] + " " + carryOut(connection, words));
        } catch (Exception failure) {
          failure.printStackTrace();
          System.out.println("failed " + words[0] + " " + String.valueOf(failure.getMessage()).split("\n")[0]);
        }
      }
    }
  }

  /** The words: the command's number, its name, a table, further arguments. */
  private static String carryOut(Connection connection, String[] words) throws Exception {
    TableName table = TableName.valueOf(words[2]);
    try (Admin admin = connection.getAdmin()) {
      switch (words[1]) {
        case "create":
          admin.createTable(
              TableDescriptorBuilder.newBuilder(table).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build(),
              new byte[][] {Bytes.toBytes("2"), Bytes.toBytes("5"), Bytes.toBytes("7")});
          return "created";
        case "drop":
          admin.disableTable(table);
          admin.deleteTable(table);
          return "dropped";
        case "flush":
          admin.flush(table);
          return "flushed";
        case "move":
          return move(admin, table);
        case "status":
          return admin.getClusterMetrics().getMasterName().getPort()
              + " " + admin.getClusterMetrics().getLiveServerMetrics().size()
              + " " + admin.getClusterMetrics().getBackupMasterNames().size();
        case "put":
          return put(connection, table, Integer.parseInt(words[3]), Integer.parseInt(words[4]));
        case "scan":
          return scan(connection, table);
        default:
          throw new IllegalArgumentException(words[1]);
      }
    }
  }

  /** Each region goes to whatever server the master chooses. */
  private static String move(Admin admin, TableName table) throws Exception {
    List<RegionInfo> regions = admin.getRegions(table);
    for (RegionInfo region : regions) {
      admin.move(region.getEncodedNameAsBytes());
    }
    return Integer.toString(regions.size());
  }

  /** One row after another; a line for each that was acknowledged. */
  private static String put(Connection connection, TableName name, int first, int last) throws Exception {
    try (Table table = connection.getTable(name)) {
      for (int number = first; number <= last; number++) {
        String key = new StringBuilder(String.format("%06d", number)).reverse().toString();
        table.put(new Put(Bytes.toBytes(key)).addColumn(FAMILY, COLUMN, Bytes.toBytes(number)));
        System.out.println("put " + number);
      }
    }
    return Integer.toString(last);
  }

  private static String scan(Connection connection, TableName name) throws Exception {
    List<String> found = new ArrayList<>();
    try (Table table = connection.getTable(name);
        ResultScanner scanner = table.getScanner(new Scan().addFamily(FAMILY).setCaching(500))) {
      for (Result row : scanner) {
        found.add(Integer.toString(Bytes.toInt(row.getValue(FAMILY, COLUMN))));
      }
    }
    return String.join(",", found);
  }
}
