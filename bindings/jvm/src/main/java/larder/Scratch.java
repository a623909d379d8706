package larder;

/**
 * The buffers of a thread for requests and replies. They are taken for the duration of a call, so
 * that a codec or a function that uses a table meanwhile gets others.
 */
final class Scratch implements AutoCloseable {
    /** A larger array isn't kept. */
    private static final int MAX_KEPT = 64 << 10;

    private static final ThreadLocal<Scratch[]> KEPT =
            ThreadLocal.withInitial(() -> new Scratch[1]);

    final Output request = new Output();
    private final Input input = new Input();
    byte[] reply = new byte[1024];
    private final Scratch[] slot;

    private Scratch(Scratch[] slot) {
        this.slot = slot;
    }

    static Scratch take() {
        Scratch[] slot = KEPT.get();
        Scratch mine = slot[0];
        if (mine == null) {
            return new Scratch(slot);
        }
        slot[0] = null;
        mine.request.clear();
        return mine;
    }

    /** Returns it to the thread that took it. */
    @Override
    public void close() {
        if (request.bytes().length <= MAX_KEPT && reply.length <= MAX_KEPT) {
            slot[0] = this;
        }
    }

    /** Reads a reply, whose array is kept and offered to the next call. */
    Input read(byte[] answer) {
        reply = answer;
        return input.of(answer);
    }
}
