package quenda;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;
import java.util.Set;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Puts Quenda behind the three doors by which ZooKeeper's tests start a server: the connection factory, which is told a port
 * and handed a ZooKeeperServer; the QuorumPeer; and the two main classes, which go through these. What is left would be a
 * server within the JVM, which is refused, so that no test passes against another server than Quenda.
 */
public final class Agent {

    private static final String PEER = "org/apache/zookeeper/server/quorum/QuorumPeer";
    private static final String OUTSIDE_PEER = "org/apache/zookeeper/server/quorum/OutsideQuorumPeer";
    private static final String FACTORY = "org/apache/zookeeper/server/ServerCnxnFactory";
    private static final String OUTSIDE_FACTORY = "org/apache/zookeeper/server/OutsideCnxnFactory";
    private static final String SERVER = "org/apache/zookeeper/server/ZooKeeperServer";
    private static final Set<String> STARTS = Set.of("startdata", "startup", "startupWithoutServing", "startServing");

    private static final Set<String> ROLES = Set.of("leader", "follower", "observer");

    private Agent() {
    }

    /** Called by the JVM before the tests. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> known, ProtectionDomain domain, byte[] code) {
                if (name == null || !name.startsWith("org/apache/zookeeper/") || name.equals(OUTSIDE_PEER)) {
                    return null;
                }
                boolean test = domain.getCodeSource().getLocation().getPath().endsWith("-tests.jar");
                return rewrite(name, code, test);
            }
        });
    }

    private static byte[] rewrite(String name, byte[] code, boolean test) {
        ClassReader reader = new ClassReader(code);
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        reader.accept(new ClassVisitor(Opcodes.ASM9, writer) {
            @Override
            public MethodVisitor visitMethod(int access, String method, String type, String signature, String[] thrown) {
                MethodVisitor next = super.visitMethod(access, method, type, signature, thrown);
                if (name.equals(FACTORY) && method.equals("createFactory") && type.startsWith("()")) {
                    return replace(next, Agent::outsideFactory);
                }
                if (name.equals(PEER) && method.equals("start")) {
                    return replace(next, Agent::startThread);
                }
                if (name.equals(SERVER) && STARTS.contains(method)) {
                    return replace(next, Agent::refuse);
                }
                return new PeersOutside(next, test);
            }
        }, 0);
        return writer.toByteArray();
    }

    /** `new QuorumPeer(…)` becomes `new OutsideQuorumPeer(…)`; a test that looks at what a peer is sees what it is now. */
    private static final class PeersOutside extends MethodVisitor {
        private final boolean test;
        private int open;

        PeersOutside(MethodVisitor next, boolean test) {
            super(Opcodes.ASM9, next);
            this.test = test;
        }

        @Override
        public void visitFieldInsn(int code, String owner, String field, String type) {
            if (test && code == Opcodes.GETFIELD && owner.equals(PEER) && ROLES.contains(field)) {
                super.visitMethodInsn(Opcodes.INVOKESTATIC, OUTSIDE_PEER, field, "(L" + PEER + ";)" + type, false);
            } else {
                super.visitFieldInsn(code, owner, field, type);
            }
        }

        @Override
        public void visitTypeInsn(int code, String type) {
            boolean peer = code == Opcodes.NEW && type.equals(PEER);
            open += peer ? 1 : 0;
            super.visitTypeInsn(code, peer ? OUTSIDE_PEER : type);
        }

        @Override
        public void visitMethodInsn(int code, String owner, String method, String type, boolean isInterface) {
            boolean made = owner.equals(PEER) && method.equals("<init>") && open > 0;
            open -= made ? 1 : 0;
            super.visitMethodInsn(code, made ? OUTSIDE_PEER : owner, method, type, isInterface);
        }
    }

    private interface Body {
        void write(MethodVisitor code);
    }

    /** A method with another body than the one that is read. */
    private static MethodVisitor replace(MethodVisitor next, Body body) {
        return new MethodVisitor(Opcodes.ASM9) {
            @Override
            public void visitCode() {
                next.visitCode();
                body.write(next);
                next.visitMaxs(0, 0);
                next.visitEnd();
            }
        };
    }

    private static void outsideFactory(MethodVisitor code) {
        code.visitTypeInsn(Opcodes.NEW, OUTSIDE_FACTORY);
        code.visitInsn(Opcodes.DUP);
        code.visitMethodInsn(Opcodes.INVOKESPECIAL, OUTSIDE_FACTORY, "<init>", "()V", false);
        code.visitInsn(Opcodes.ARETURN);
    }

    /** Only an OutsideQuorumPeer may start; what it starts by this is its thread. */
    private static void startThread(MethodVisitor code) {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, OUTSIDE_PEER, "check", "(L" + PEER + ";)V", false);
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitMethodInsn(Opcodes.INVOKESPECIAL, "org/apache/zookeeper/server/ZooKeeperThread", "start", "()V", false);
        code.visitInsn(Opcodes.RETURN);
    }

    private static void refuse(MethodVisitor code) {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, "quenda/Outside", "refusal",
            "(Ljava/lang/Object;)Ljava/lang/UnsupportedOperationException;", false);
        code.visitInsn(Opcodes.ATHROW);
    }
}
