package larder;

/**
 * The number of a resource of the native library, which a cleaner closes. The object is made and
 * registered with the cleaner before there is a number. So Java allocates nothing while a resource
 * is open that nobody would close.
 *
 * <p>It has no reference to its owner, which can be collected.
 */
final class Owned implements Runnable {
    /** Opens a resource, and returns its number. */
    interface Opening<X extends Exception> {
        /** Between the native call and its return nothing may be allocated. */
        long open() throws X;
    }

    /** 0 refers to no resource. */
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
