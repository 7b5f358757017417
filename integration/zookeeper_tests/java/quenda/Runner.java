package quenda;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs tests and writes a line for each: outcome, whether a server outside took part, milliseconds, name, first line of the
 * failure, with tabs between.
 *
 * <p>Arguments: file to write; "list" or a number of seconds a test may take; classes, or Class#method; a method behind a
 * minus is not run.
 */
public final class Runner implements TestExecutionListener {

    private final PrintStream out;
    private final Map<String, Long> begins = new HashMap<>();
    private final Map<String, Integer> servers = new HashMap<>();
    private TestPlan plan;

    private Runner(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] arguments) throws Exception {
        try (PrintStream out = new PrintStream(arguments[0], "UTF-8")) {
            List<DiscoverySelector> chosen = new ArrayList<>();
            Set<String> without = new HashSet<>();
            for (int i = 2; i < arguments.length; i++) {
                if (arguments[i].startsWith("-")) {
                    without.add(arguments[i].substring(1));
                } else if (arguments[i].contains("#")) {
                    chosen.addAll(methods(arguments[i]));
                } else {
                    chosen.add(selectClass(Class.forName(arguments[i], false, Runner.class.getClassLoader())));
                }
            }
            boolean list = arguments[1].equals("list");
            LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(chosen)
                .filters((PostDiscoveryFilter) test ->
                    FilterResult.includedIf(!without.contains(name(test.getSource().orElse(null)))))
                .configurationParameter("junit.jupiter.execution.timeout.testable.method.default",
                    list ? "60 s" : arguments[1] + " s")
                .build();
            Launcher launcher = LauncherFactory.create();
            Runner runner = new Runner(out);
            if (list) {
                runner.list(launcher.discover(request));
            } else {
                launcher.execute(request, runner);
            }
        }
        System.exit(0); // threads that tests leave behind
    }

    /** All methods of the class with this name, whatever their parameters. */
    private static List<DiscoverySelector> methods(String text) throws ClassNotFoundException {
        String[] parts = text.split("#");
        Class<?> type = Class.forName(parts[0], false, Runner.class.getClassLoader());
        List<DiscoverySelector> found = new ArrayList<>();
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (java.lang.reflect.Method method : at.getDeclaredMethods()) {
                if (method.getName().equals(parts[1]) && !method.isSynthetic()) {
                    found.add(selectMethod(type, method));
                }
            }
        }
        return found;
    }

    private void list(TestPlan all) {
        all.getRoots().forEach(root -> all.getDescendants(root).stream()
            .filter(test -> test.isTest() || test.getSource().orElse(null) instanceof MethodSource)
            .forEach(test -> out.println("listed\tfalse\t0\t" + name(test.getSource().orElse(null)) + "\t")));
    }

    /** Class#method, or Class. */
    private static String name(Object source) {
        if (source instanceof MethodSource) {
            MethodSource method = (MethodSource) source;
            return method.getClassName() + "#" + method.getMethodName();
        }
        return source instanceof ClassSource ? ((ClassSource) source).getClassName() : "";
    }

    private String name(TestIdentifier test) {
        String found = name(test.getSource().orElse(null));
        return test.getUniqueId().contains("-invocation:")
            ? found + test.getUniqueId().replaceAll(".*-invocation:#(\\d+).*", "[$1]") : found;
    }

    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        this.plan = plan;
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        begins.put(test.getUniqueId(), System.nanoTime());
        servers.put(test.getUniqueId(), Outside.started() - Outside.live());
        if (test.isTest()) {
            System.err.println("=== " + name(test));
        }
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        line("skipped", test, false, reason);
        plan.getDescendants(test).stream().filter(TestIdentifier::isTest)
            .forEach(inner -> line("skipped", inner, false, reason));
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        boolean served = Outside.started() > servers.get(test.getUniqueId());
        String why = result.getThrowable().map(Runner::text).orElse("");
        boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
        if (test.isTest() || !passed) {
            String outcome = passed ? "passed"
                : result.getStatus() == TestExecutionResult.Status.ABORTED ? "skipped" : "failed";
            line(outcome, test, served, why);
        }
        result.getThrowable().ifPresent(thrown -> thrown.printStackTrace());
    }

    private static String text(Throwable thrown) {
        StringBuilder text = new StringBuilder(thrown.toString());
        for (StackTraceElement element : thrown.getStackTrace()) {
            if (element.getClassName().startsWith("org.apache.zookeeper.")) {
                text.append(" at ").append(element);
                break;
            }
        }
        return text.toString().replaceAll("\\s+", " ");
    }

    private void line(String outcome, TestIdentifier test, boolean served, String why) {
        long begin = begins.getOrDefault(test.getUniqueId(), System.nanoTime());
        long ms = (System.nanoTime() - begin) / 1_000_000;
        out.println(outcome + "\t" + served + "\t" + ms + "\t" + name(test) + "\t" + why);
        out.flush();
    }
}
