package larder;

/** What went wrong within Larder, or with what is stored. The message says what. */
public class LarderException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public LarderException(String message) {
        super(message);
    }
}
