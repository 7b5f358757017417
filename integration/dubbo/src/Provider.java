import java.util.Map;
import org.apache.dubbo.common.config.configcenter.DynamicConfiguration;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ConfigCenterConfig;
import org.apache.dubbo.config.MetadataReportConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.rpc.model.ApplicationModel;

/** Offers a Greeter: NAME PORT ADDRESS-OF-THE-REGISTRY. Ends by SIGTERM through Dubbo's own shutdown hook. */
public class Provider {
  private static volatile String word = "none";

  public static void main(String[] args) throws Exception {
    String name = args[0];
    ServiceConfig<Greeter> service = new ServiceConfig<>();
    service.setInterface(Greeter.class);
    service.setRef(asked -> name + " " + word + " " + asked);
    service.setParameters(Map.of("greeter", name));
    ProtocolConfig protocol = new ProtocolConfig("dubbo", Integer.parseInt(args[1]));
    protocol.setThreads(10);
    start(application("greeter-provider"), args[2]).protocol(protocol).service(service).start();
    watchWord();
    System.out.println("ready " + name);
    Thread.currentThread().join();
  }

  static ApplicationConfig application(String name) {
    ApplicationConfig application = new ApplicationConfig(name);
    application.setQosEnable(false);
    application.setMetadataType("remote");
    return application;
  }

  static DubboBootstrap start(ApplicationConfig application, String address) {
    RegistryConfig registry = new RegistryConfig(address);
    registry.setUseAsConfigCenter(false);
    registry.setUseAsMetadataCenter(false);
    ConfigCenterConfig center = new ConfigCenterConfig();
    center.setAddress(address);
    MetadataReportConfig metadata = new MetadataReportConfig();
    metadata.setAddress(address);
    return DubboBootstrap.getInstance()
        .application(application)
        .registry(registry)
        .configCenter(center)
        .metadataReport(metadata);
  }

  private static void watchWord() {
    DynamicConfiguration center =
        ApplicationModel.defaultModel().modelEnvironment().getDynamicConfiguration().orElseThrow();
    center.addListener("greeting.word", event -> word = event.getContent() == null ? "none" : event.getContent());
    String now = center.getConfig("greeting.word", DynamicConfiguration.DEFAULT_GROUP);
    word = now == null ? "none" : now;
  }
}
