package larder;

/** A table has as much as it may, and evicts nothing. Nothing was changed. */
public class LimitException extends LarderException {
    private static final long serialVersionUID = 1L;

    /** With a text that says what was wrong. */
    public LimitException(String message) {
        super(message);
    }
}
