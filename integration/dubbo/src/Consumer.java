import org.apache.dubbo.config.ReferenceConfig;

/** Calls the Greeter for ever: NAME ADDRESS-OF-THE-REGISTRY PAUSE_MS. Prints who answered each call, or what failed. */
public class Consumer {
  public static void main(String[] args) throws Exception {
    ReferenceConfig<Greeter> reference = new ReferenceConfig<>();
    reference.setInterface(Greeter.class);
    reference.setCheck(false);
    reference.setTimeout(5000);
    reference.setLoadbalance("roundrobin");
    Provider.start(Provider.application(args[0]), args[1]).reference(reference).start();
    Greeter greeter = reference.get();
    System.out.println("ready");
    long pause = Long.parseLong(args[2]);
    for (int number = 1; ; number++) {
      try {
        System.out.println("answer " + greeter.greet(Integer.toString(number)));
      } catch (Exception failure) {
        System.out.println("failure " + number + " " + String.valueOf(failure.getMessage()).split("\n")[0]);
      }
      Thread.sleep(pause);
    }
  }
}
