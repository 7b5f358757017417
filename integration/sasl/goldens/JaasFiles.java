import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;

/**
 * Lets Java read JAAS files, whole and broken ones, and prints a line for each: the text, then "broken", or "none" if it
 * has no section named Server, or module and options of each of its entries. Strings stand in quotes, with \\uXXXX for
 * what is not plain.
 */
public class JaasFiles {
    static final String MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule";
    static final String[] PIECES = {
        "Server", "{", "}", ";", "=", " ", "\n", "\t", "\"", "user_bob", "\"secret\"", "required", "REQUISITE", "optional",
        "sufficient", MODULE, "// note\n", "/* note */", "/* two\nlines */", "#", "12", "-", "1.5", ".", "*", "$", "_", "\\",
        "'", "a-b", "x1", "1x", "Client", ",", ":", "/", "\u00e9", "\"a\\\"b\"", "\"a\\nb\"", "\"a\\101b\"", "\"\"", "\"\\x\"",
    };

    static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char unit : text.toCharArray()) {
            boolean plain = unit >= ' ' && unit < 127 && unit != '"' && unit != '\\';
            quoted.append(plain ? String.valueOf(unit) : String.format("\\u%04x", (int) unit));
        }
        return quoted.append('"').toString();
    }

    static String reading(Path file, String text) throws Exception {
        Files.writeString(file, text);
        AppConfigurationEntry[] entries;
        try {
            entries = Configuration.getInstance("JavaLoginConfig",
                new java.security.URIParameter(file.toUri())).getAppConfigurationEntry("Server");
        } catch (Exception broken) {
            return "broken";
        }
        if (entries == null) {
            return "none";
        }
        List<String> columns = new ArrayList<>();
        for (AppConfigurationEntry entry : entries) {
            var options = new TreeMap<String, String>();
            entry.getOptions().forEach((key, value) -> options.put(key, (String) value));
            columns.add("module");
            columns.add(quoted(entry.getLoginModuleName()));
            options.forEach((key, value) -> {
                columns.add(quoted(key));
                columns.add(quoted(value));
            });
        }
        return String.join("\t", columns);
    }

    static List<String> texts(Random random) {
        List<String> texts = new ArrayList<>();
        String options = " user_super=\"adminsecret\" user_bob=\"bobsecret\"";
        String section = "Server {\n    " + MODULE + " required\n    user_super=\"adminsecret\"\n    user_bob=\"bobsecret\";\n};\n";
        texts.add("");
        texts.add("\n// nothing\n");
        texts.add(section);
        texts.add(section + section);
        texts.add(section + "Client { x required; };");
        texts.add("Client { x required; };" + section);
        texts.add("Server {};");
        texts.add("Server { x required; y optional a=\"b\"; };");
        texts.add("Server { x required a=b c=d; };");
        texts.add("Server { x required a=\"b\", c=\"d\"; };");
        texts.add("Server { x wanted; };");
        texts.add("Server { x; };");
        texts.add("Server { x required a; };");
        texts.add("Server { x required a=; };");
        texts.add("Server { x required a=1; };");
        texts.add("Server { x required a=\"1\"; };");
        texts.add("Server { x required user_1=\"1\" user_a.b=\"2\" user_a-b=\"3\" user_a$b=\"4\"; };");
        texts.add("Server { x required \"user_a b@R\"=\"1\" \"user_\"=\"2\"; };");
        texts.add("Server { x required user_a/b=\"1\"; };");
        texts.add("Server { x required user_a=\"1\" user_a=\"2\"; };");
        texts.add("Server { x required a=\"tab\\there\" b=\"\\\\\" c=\"\\\"\" d=\"\\7\\101\\400\\18\" e=\"\\u0041\"; };");
        texts.add("Server { x required a=\"not\nended\"; };");
        texts.add("Server { x required a=\"not ended");
        texts.add("Server { x required a='b'; };");
        texts.add("Server { x required a=\"#/*//\"; };");
        texts.add("Server { x required a=\"\"; };");
        texts.add("Server { x required a=\"\u00e9\u03b1\ud83d\udca9\"; };");
        texts.add("S\u00e9rver { x required; };" + section);
        texts.add("\"Server\" { \"x\" \"required\" \"a\"=\"b\"; };");
        texts.add("Server { x required; }");
        texts.add("Server { x required };");
        texts.add("Server x required; };");
        texts.add("{ x required; };");
        texts.add("; Server { x required; };");
        texts.add("server { x required; };");
        texts.add("Server { x required" + options + ";\r\n};\r\n");
        texts.add("Server/*c*/{/*c*/x/*c*/required/*c*/a/*c*/=/*c*/b/*c*/;/*c*/}/*c*/;/*c*/");
        texts.add("Server { x required a=\"b\"; }; /* not ended");
        texts.add("Server { x required a=\"b\"; }; / not a comment");
        texts.add("Server { /x required; };");
        texts.add("Server { x requ#ired; };");
        texts.add("\ufeff" + section);
        texts.add("Server { x required a=b-1 c=-d e=d-; };");
        texts.add("Server { x required a=.b; };");
        texts.add("Server { x required a=1b; };");
        texts.add("Server { x required a=-1; };");
        texts.add("12 { x required; };" + section);
        texts.add("Server { 12 required; };");
        texts.add("# properties\nServer { x required; };");
        List<String> tokens = List.of("Server", " ", "{", "\n", MODULE, " ", "required", "\n", "user_bob", "=", "\"secret\"", " ",
            "user_eve", "=", "\"x\"", ";", "\n", "}", ";");
        for (int number = 0; number < 450; number++) {
            List<String> bent = new ArrayList<>(tokens);
            for (int change = random.nextInt(2); change >= 0; change--) {
                int at = random.nextInt(bent.size());
                String piece = PIECES[random.nextInt(PIECES.length)];
                switch (random.nextInt(3)) {
                    case 0 -> bent.set(at, piece);
                    case 1 -> bent.add(at, piece);
                    default -> bent.remove(at);
                }
            }
            texts.add(String.join("", bent));
        }
        return texts;
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("# Text, then how Java reads it as a JAAS file. Made by integration/sasl/goldens/make.");
        Path file = Files.createTempFile("jaas", ".conf");
        List<String> seen = new ArrayList<>();
        for (String text : texts(new Random(7))) {
            if (!seen.contains(text)) {
                seen.add(text);
                System.out.println(quoted(text) + "\t" + reading(file, text));
            }
        }
        Files.delete(file);
    }
}
