package greeter;

import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.cloud.client.discovery.DiscoveryClient;
import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.cloud.context.config.annotation.RefreshScope;
import org.springframework.context.ApplicationListener;
import org.springframework.context.annotation.Bean;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestTemplate;

/** A service that others find, that finds others, and whose word is configured. */
@SpringBootApplication
public class App {
  public static void main(String[] args) {
    SpringApplication.run(App.class, args);
  }

  @Bean
  @LoadBalanced
  RestTemplate balanced() {
    return new RestTemplate();
  }

  @Bean
  ApplicationListener<ApplicationReadyEvent> ready() {
    return event -> System.out.println("ready");
  }

  /** Made anew when the configuration has changed. */
  @Component
  @RefreshScope
  static class Word {
    @Value("${greeting.word:none}")
    String text;

    String get() {
      return text;
    }
  }

  @RestController
  static class Endpoints {
    private final DiscoveryClient discovery;
    private final RestTemplate balanced;
    private final Word word;
    private final String name;

    Endpoints(DiscoveryClient discovery, RestTemplate balanced, Word word, @Value("${greeter.name}") String name) {
      this.discovery = discovery;
      this.balanced = balanced;
      this.word = word;
      this.name = name;
    }

    @GetMapping("/name")
    String name() {
      return name;
    }

    @GetMapping("/word")
    String word() {
      return word.get();
    }

    /** Who answers a call that the load balancer leads to an instance of its choice. */
    @GetMapping("/ask")
    String ask() {
      return balanced.getForObject("http://greeter/name", String.class);
    }

    @GetMapping("/instances")
    List<String> instances() {
      return discovery.getInstances("greeter").stream()
          .map(instance -> instance.getMetadata().get("name") + ":" + instance.getPort())
          .sorted()
          .toList();
    }
  }
}
