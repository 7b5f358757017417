/** The service that is offered. */
public interface Greeter {
  /** Who answers, and the word that the configuration center gives. */
  String greet(String name);
}
