package larder;

/**
 * The number of what its owner has open in the native library, to be closed by a cleaner. It is
 * made, and the cleaner knows it, before there is a number. So Java needs no memory while something
 * is open that nobody would close.
 *
 * <p>Knows nothing of its owner, which can be left and collected.
 */
final class Owned implements Runnable {
    /** Opens something, and gives its number. */
    interface Opening<X extends Exception> {
        /** Between the native call and its result there is nothing that needs memory. */
        long open() throws X;
    }

    /** 0 is the number of nothing. */
    private volatile long number;

    <X extends Exception> long open(Opening<X> opening) throws X {
        number = opening.open();
        return number;
    }

    /** Closes it, if it is open. */
    @Override
    public void run() {
        Native.close(number);
    }
}
