package org.apache.zookeeper.metrics;

import java.util.HashMap;
import java.util.Map;
import quenda.Outside;

/** In the place of the class that reads the metrics of a server in this JVM: those of the servers outside. */
public final class MetricsUtils {

    private MetricsUtils() {
    }

    public static Map<String, Object> collect(MetricsProvider provider) {
        Map<String, Object> found = new HashMap<>();
        provider.dump(found::put);
        return found;
    }

    /** What `mntr` of every running server says; numbers are summed up. */
    public static Map<String, Object> currentServerMetrics() {
        Map<String, Object> found = new HashMap<>();
        for (String line : Outside.fourLetterWord("mntr")) {
            String[] pair = line.split("\t");
            if (pair.length == 2 && pair[0].startsWith("zk_") && pair[1].matches("-?\\d+(\\.\\d+)?")) {
                found.merge(pair[0].substring("zk_".length()), number(pair[1]), MetricsUtils::sum);
            }
        }
        return found;
    }

    private static Object number(String text) {
        if (text.contains(".")) {
            return Double.valueOf(text);
        }
        return Long.valueOf(text);
    }

    private static Object sum(Object one, Object other) {
        if (one instanceof Long && other instanceof Long) {
            return (Long) one + (Long) other;
        }
        return ((Number) one).doubleValue() + ((Number) other).doubleValue();
    }
}
