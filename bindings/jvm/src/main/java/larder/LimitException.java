package larder;

/** A table has as much as it may, and evicts nothing. Nothing was changed. */
public class LimitException extends LarderException {
    private static final long serialVersionUID = 1L;

    public LimitException(String message) {
        super(message);
    }
}
