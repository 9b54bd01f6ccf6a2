/** What was expected did not happen. */
final class Failure extends RuntimeException {
    Failure(String text) {
        super(text);
    }
}
