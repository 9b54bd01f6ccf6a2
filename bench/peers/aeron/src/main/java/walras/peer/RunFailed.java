package walras.peer;

/** The run was started and its result cannot be trusted; the message says what differs. */
final class RunFailed extends Exception {
    private static final long serialVersionUID = 1L;

    RunFailed(String message) {
        super(message);
    }
}
