import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.security.auth.Subject;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import org.apache.zookeeper.server.auth.SaslServerCallbackHandler;
import org.apache.zookeeper.util.SecurityUtils;
import org.slf4j.LoggerFactory;

/**
 * Asks the DIGEST-MD5 server of a ZooKeeper release, in this process, what it makes of valid, odd and broken answers of
 * clients, and prints one line for each. The nonce is the same in all, so that the lines can be compared byte by byte.
 */
public class Exchanges {
    static final String NONCE = "QUFBQkJCQ0NDREREREVFRUZGRkdHR0hISElJSUpK";
    static final Map<String, String> USERS = new LinkedHashMap<>();

    static {
        USERS.put("bob", "bobsecret");
        USERS.put("super", "in the jaas file");
        USERS.put("a b", "with space");
        USERS.put("q\"uo\\te", "pa\"ss\\word:=,");
        USERS.put("jos\u00e9", "contrase\u00f1a");
        USERS.put("\u0391\u03b8", "\u03c0\u03ac\u03c3");
        USERS.put("pile", "\ud83d\udca9");
        USERS.put("empty", "");
        USERS.put("svc/host", "slash");
    }

    /** The answer of a client: directives in their order, each as it stands. */
    static class Answer {
        final Map<String, String> parts = new LinkedHashMap<>();
        String separator = ",";

        Answer set(String key, String value) {
            parts.put(key, value);
            return this;
        }

        Answer drop(String key) {
            parts.remove(key);
            return this;
        }

        Answer separator(String text) {
            separator = text;
            return this;
        }

        byte[] bytes() {
            return String.join(separator, parts.values()).getBytes(StandardCharsets.UTF_8);
        }
    }

    static byte[] narrow(String text) {
        boolean latin = text.chars().allMatch(unit -> unit < 256);
        return text.getBytes(latin ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8);
    }

    static byte[] join(byte[]... pieces) throws Exception {
        var out = new java.io.ByteArrayOutputStream();
        for (byte[] piece : pieces) {
            out.write(piece);
        }
        return out.toByteArray();
    }

    static byte[] md5(byte[]... pieces) throws Exception {
        return MessageDigest.getInstance("MD5").digest(join(pieces));
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            text.append(String.format("%02x", one & 0xff));
        }
        return text.toString();
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String response(String user, String realm, String password, String nonce, String cnonce, String nc, String qop,
            String uri, String authzid) throws Exception {
        byte[] colon = utf8(":");
        byte[] inner = md5(narrow(user), colon, narrow(realm), colon, narrow(password));
        byte[] tail = authzid == null ? new byte[0] : utf8(":" + authzid);
        String a1 = hex(md5(inner, utf8(":" + nonce + ":" + cnonce), tail));
        String a2 = hex(md5(utf8("AUTHENTICATE:" + uri)));
        return hex(md5(utf8(a1 + ":" + nonce + ":" + nc + ":" + cnonce + ":" + qop + ":" + a2)));
    }

    static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static final String URI = "zookeeper/zk-sasl-md5";
    static final String REALM = "zk-sasl-md5";
    static final String CNONCE = "Y25vbmNlIG9mIHRoZSBjbGllbnQ=";

    static Answer answer(String user, String password, String realm, String uri, String authzid) throws Exception {
        Answer answer = new Answer();
        answer.set("charset", "charset=utf-8");
        answer.set("username", "username=" + quoted(user));
        answer.set("realm", "realm=" + quoted(realm));
        answer.set("nonce", "nonce=" + quoted(NONCE));
        answer.set("nc", "nc=00000001");
        answer.set("cnonce", "cnonce=" + quoted(CNONCE));
        answer.set("digest-uri", "digest-uri=" + quoted(uri));
        answer.set("maxbuf", "maxbuf=65536");
        answer.set("response", "response="
            + response(user, realm, password, NONCE, CNONCE, "00000001", "auth", uri, authzid));
        answer.set("qop", "qop=auth");
        if (authzid != null) {
            answer.set("authzid", "authzid=" + quoted(authzid));
        }
        return answer;
    }

    static Answer bob() throws Exception {
        return answer("bob", "bobsecret", REALM, URI, null);
    }

    static List<byte[]> cases(Random random) throws Exception {
        List<byte[]> cases = new ArrayList<>();
        for (var user : USERS.entrySet()) {
            cases.add(answer(user.getKey(), user.getValue(), REALM, URI, null).bytes());
            cases.add(answer(user.getKey(), user.getValue(), REALM, URI, user.getKey()).bytes());
            cases.add(answer(user.getKey(), user.getValue() + "x", REALM, URI, null).bytes());
            cases.add(answer(user.getKey(), user.getValue(), REALM, URI, null).drop("charset").bytes());
        }
        cases.add(answer("nobody", "bobsecret", REALM, URI, null).bytes());
        cases.add(answer("", "", REALM, URI, null).bytes());
        cases.add(answer("Bob", "bobsecret", REALM, URI, null).bytes());
        for (String authzid : new String[] {"", "bob", "super", "\u0391", "a\"b"}) {
            cases.add(answer("bob", "bobsecret", REALM, URI, authzid).bytes());
        }
        for (String realm : new String[] {"", "zookeeper", "ZK-SASL-MD5", "zk-sasl-md5 ", "*"}) {
            cases.add(answer("bob", "bobsecret", realm, URI, null).bytes());
        }
        String[] uris = {"", "zookeeper/zk-sasl-md5/", "zookeeper/zk-sasl-md5/zk", "ZooKeeper/ZK-SASL-MD5", "zookeeper/localhost",
            "zookeeper/*", "zookeeper", "/zk-sasl-md5", "ldap/zk-sasl-md5", "zoo\u212aeeper/zk-sasl-md5", "zookeeper/zk-sa\u017fl-md5",
            "zookeeper/zk-sasl-md5 ", "zookeeper/zk\u0131"};
        for (String uri : uris) {
            cases.add(answer("bob", "bobsecret", REALM, uri, null).bytes());
        }
        for (String key : bob().parts.keySet()) {
            String part = bob().parts.get(key);
            int at = part.indexOf('=');
            String name = part.substring(0, at);
            String value = part.substring(at + 1);
            String bare = value.startsWith("\"") ? value.substring(1, value.length() - 1) : value;
            cases.add(bob().drop(key).bytes());
            cases.add(bob().set(key, part + "," + part).bytes());
            cases.add(bob().set(key, name + "=").bytes());
            cases.add(bob().set(key, name + "=\"\"").bytes());
            cases.add(bob().set(key, name).bytes());
            cases.add(bob().set(key, "=" + value).bytes());
            cases.add(bob().set(key, name + "=\"" + bare + "\"").bytes());
            cases.add(bob().set(key, name + "=" + bare).bytes());
            cases.add(bob().set(key, name.toUpperCase() + "=" + value).bytes());
            cases.add(bob().set(key, name + " = " + value).bytes());
            cases.add(bob().set(key, name + " x=" + value).bytes());
            cases.add(bob().set(key, name + "=" + value + "x").bytes());
            cases.add(bob().set(key, name + "=" + value + " x").bytes());
            cases.add(bob().set(key, name + "=\"" + bare).bytes());
            cases.add(bob().set(key, name + "=\"" + bare + "\\").bytes());
            cases.add(bob().set(key, name + "=\"\\" + bare + "\"").bytes());
            cases.add(bob().set(key, "\"" + name + "\"=" + value).bytes());
        }
        for (String nc : new String[] {"00000002", "1", "0", "+1", "-1", "0x1", "g", "", "000000000001", "ffffffff", "80000000", "7fffffff"}) {
            cases.add(bob().set("nc", "nc=" + nc).bytes());
            cases.add(bob().set("nc", "nonce-count=" + nc).bytes());
        }
        for (String size : new String[] {"0", "1", "-1", "+5", "16777216", "2147483647", "2147483648", "x", "1 ", ""}) {
            cases.add(bob().set("maxbuf", "maxbuf=" + quoted(size)).bytes());
        }
        for (String qop : new String[] {"auth-int", "auth-conf", "AUTH", "auth,auth-int", "none"}) {
            cases.add(bob().set("qop", "qop=" + quoted(qop)).bytes());
        }
        for (String charset : new String[] {"UTF-8", "utf8", "iso-8859-1", "Utf-8"}) {
            cases.add(bob().set("charset", "charset=" + charset).bytes());
        }
        String upper = bob().parts.get("response").toUpperCase().replace("RESPONSE", "response");
        cases.add(bob().set("response", upper).bytes());
        cases.add(bob().set("cipher", "cipher=rc4").bytes());
        cases.add(bob().set("other", "x-other=\"any, thing\"").bytes());
        cases.add(bob().set("other", "x-other=1,x-other=2").bytes());
        cases.add(bob().set("other", "algorithm=md5-sess").bytes());
        for (String separator : new String[] {",,", " ", ", ", " ,", "\t,\r\n", "\n", ";", ",\u00a0", "", ", , ", "  "}) {
            cases.add(bob().separator(separator).bytes());
        }
        for (String edge : new String[] {",", " ", ",,", "\u0000", "x", "x=", "=", "\"", "\\", "rspauth=1"}) {
            cases.add(join(utf8(edge), bob().bytes()));
            cases.add(join(bob().bytes(), utf8(edge)));
            cases.add(join(bob().bytes(), utf8("," + edge)));
        }
        for (String text : new String[] {"", "x", "\u0000", "username", "username=", "username=\"", ",", "  ", "\u0000bob\u0000bobsecret"}) {
            cases.add(utf8(text));
        }
        int room = 4096 - bob().bytes().length - ",pad=".length();
        cases.add(join(bob().bytes(), utf8(",pad=" + "x".repeat(room))));
        cases.add(join(bob().bytes(), utf8(",pad=" + "x".repeat(room + 1))));
        byte[] whole = bob().bytes();
        for (int number = 0; number < 400; number++) {
            byte[] bent = whole.clone();
            int at = random.nextInt(bent.length);
            switch (random.nextInt(4)) {
                case 0 -> bent[at] = (byte) random.nextInt(256);
                case 1 -> bent = join(java.util.Arrays.copyOf(bent, at), java.util.Arrays.copyOfRange(bent, at + 1, bent.length));
                case 2 -> bent = join(java.util.Arrays.copyOf(bent, at), utf8(",=\" \\".substring(number % 5, number % 5 + 1)),
                    java.util.Arrays.copyOfRange(bent, at, bent.length));
                default -> bent = java.util.Arrays.copyOf(bent, at);
            }
            cases.add(bent);
        }
        return cases;
    }

    static SaslServer begin() throws Exception {
        var handler = new SaslServerCallbackHandler(new HashMap<>(USERS));
        return SecurityUtils.createSaslServer(new Subject(), "zookeeper", REALM, handler, LoggerFactory.getLogger(Exchanges.class));
    }

    static String outcome(byte[] answer) throws Exception {
        SaslServer server = begin();
        server.evaluateResponse(new byte[0]);
        Field nonce = server.getClass().getSuperclass().getDeclaredField("nonce");
        nonce.setAccessible(true);
        nonce.set(server, utf8(NONCE));
        try {
            byte[] token = server.evaluateResponse(answer);
            return "accepted\t" + text(token) + "\t" + text(utf8(server.getAuthorizationID()));
        } catch (SaslException refused) {
            return "refused\t\t";
        } catch (RuntimeException broken) {
            return "broken\t\t";
        }
    }

    /** Printable ASCII as it is, but the backslash and all else as \xHH. */
    static String text(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            boolean plain = one >= ' ' && one < 127 && one != '\\';
            text.append(plain ? String.valueOf((char) one) : String.format("\\x%02x", one & 0xff));
        }
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("# What ZooKeeper " + arguments[0] + " on Java " + Runtime.version().feature()
            + " makes of answers to its DIGEST-MD5 challenge: verdict, its last token,");
        System.out.println("# the identity, the client's answer; \\xHH is a byte. Made by integration/sasl/goldens/make.");
        byte[] challenge = begin().evaluateResponse(new byte[0]);
        String shown = new String(challenge, StandardCharsets.US_ASCII).replaceFirst("nonce=\"[^\"]{40}\"", "nonce=\"" + NONCE + "\"");
        System.out.println("challenge\t" + text(utf8(shown)));
        for (var user : USERS.entrySet()) {
            System.out.println("user\t" + text(utf8(user.getKey())) + "\t" + text(utf8(user.getValue())));
        }
        List<String> seen = new ArrayList<>();
        for (byte[] answer : cases(new Random(5))) {
            String line = outcome(answer) + "\t" + text(answer);
            if (!seen.contains(line)) {
                seen.add(line);
                System.out.println(line);
            }
        }
    }
}
