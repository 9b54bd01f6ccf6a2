import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.HashMap;
import java.util.Map;

/** What run.py says: name=value for each. */
final class Options {
    /** Of the truststore, which holds nothing secret. */
    static final String STORE_PASSWORD = "changeit";

    private final Map<String, String> values = new HashMap<>();

    Options(String[] args) {
        for (String arg : args) {
            String[] parts = arg.split("=", 2);
            values.put(parts[0], parts[1]);
        }
    }

    /** The same, but for what a line of run.py says. */
    Options with(String line) {
        Options other = new Options(line.split(" "));
        values.forEach(other.values::putIfAbsent);
        return other;
    }

    String get(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("give " + name + "=...");
        }
        return value;
    }

    /** The version of the messages, such as FIX.4.4 or FIX.5.0SP2. */
    String version() {
        return get("version");
    }

    boolean isFixt() {
        return version().startsWith("FIX.5");
    }

    boolean isAtLeast(String version) {
        return version().compareTo(version) >= 0;
    }

    /** The venue's certificate, or one of each replica, as a truststore; empty where there is no TLS. */
    String trustStore() throws IOException, GeneralSecurityException {
        if (get("certificate").isEmpty()) {
            return "";
        }
        Path path = Path.of(get("folder"), "trust.p12");
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (var pem = Files.newInputStream(Path.of(get("certificate")))) {
            for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                store.setCertificateEntry("venue-" + store.size(), certificate);
            }
        }
        try (OutputStream out = Files.newOutputStream(path)) {
            store.store(out, STORE_PASSWORD.toCharArray());
        }
        return path.toString();
    }
}
