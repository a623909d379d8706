package larder;

/** What went wrong within Larder, or with what is stored. The message says what. */
public class LarderException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** With a text that says what was wrong. */
    public LarderException(String message) {
        super(message);
    }
}
