package walras.peer;

import java.util.Locale;

/** One JSON object, written key by key. */
final class Json {
    private final StringBuilder text = new StringBuilder();

    Json put(String key, Object value) {
        if (text.length() > 0) {
            text.append(',');
        }
        quote(key, text);
        text.append(':');
        write(value);
        return this;
    }

    private void write(Object value) {
        if (value instanceof Json || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            text.append(value);
        } else if (value instanceof Double number) {
            text.append(String.format(Locale.ROOT, "%.1f", number));
        } else {
            quote(value.toString(), text);
        }
    }

    private static void quote(String string, StringBuilder into) {
        into.append('"');
        for (char character : string.toCharArray()) {
            if (character == '"' || character == '\\') {
                into.append('\\').append(character);
            } else if (character < ' ') {
                into.append(String.format("\\u%04x", (int) character));
            } else {
                into.append(character);
            }
        }
        into.append('"');
    }

    @Override
    public String toString() {
        return "{" + text + "}";
    }
}
