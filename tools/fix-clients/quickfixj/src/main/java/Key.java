import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.Signature;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** An API key of the venue: its id and its secret. */
record Key(String id, String secret) {
    /** What stands before the seed of an Ed25519 key in PKCS #8. */
    private static final String ED25519_PKCS8 = "302e020100300506032b657004220420";

    static Key of(String text) {
        String[] parts = text.split("\\.", 2);
        return new Key(parts[0], parts[1]);
    }

    String sign(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        byte[] decoded = Base64.getUrlDecoder().decode(secret);
        try {
            byte[] signature = id.startsWith("ed_") ? ed25519(decoded, bytes) : hmac(decoded, bytes);
            return Base64.getUrlEncoder().withoutPadding().encodeToString(signature);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    private static byte[] hmac(byte[] key, byte[] bytes) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(bytes);
    }

    private static byte[] ed25519(byte[] seed, byte[] bytes) throws GeneralSecurityException {
        byte[] encoded = HexFormat.of().parseHex(ED25519_PKCS8 + HexFormat.of().formatHex(seed));
        Signature signature = Signature.getInstance("Ed25519");
        signature.initSign(KeyFactory.getInstance("Ed25519").generatePrivate(new PKCS8EncodedKeySpec(encoded)));
        signature.update(bytes);
        return signature.sign();
    }
}
