package larder;

/**
 * A transaction has lost every attempt that it was allowed: others have changed what it has read.
 * It has had no effect. The message says how many attempts there were.
 */
public class ConflictException extends LarderException {
    private static final long serialVersionUID = 1L;

    /** With a text that says what was wrong. */
    public ConflictException(String message) {
        super(message);
    }
}
