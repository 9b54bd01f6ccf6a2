package walras.peer;

/** What the caller gave cannot be run; the message says what to do instead. */
final class BadInput extends Exception {
    private static final long serialVersionUID = 1L;

    BadInput(String message) {
        super(message);
    }
}
