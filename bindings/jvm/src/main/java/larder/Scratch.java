package larder;

/**
 * What a thread writes requests to and reads replies from. It is taken for the time of a call, so
 * that a codec or a function that uses a table meanwhile gets another one.
 */
final class Scratch implements AutoCloseable {
    /** An array that has grown beyond this is not kept. */
    private static final int KEEP = 64 << 10;

    private static final ThreadLocal<Scratch[]> KEPT =
            ThreadLocal.withInitial(() -> new Scratch[1]);

    final Output request = new Output();
    private final Input input = new Input();
    byte[] reply = new byte[1024];
    private final Scratch[] home;

    private Scratch(Scratch[] home) {
        this.home = home;
    }

    static Scratch take() {
        Scratch[] home = KEPT.get();
        Scratch mine = home[0];
        if (mine == null) {
            return new Scratch(home);
        }
        home[0] = null;
        mine.request.clear();
        return mine;
    }

    /** Gives it back to the thread that took it. */
    @Override
    public void close() {
        if (request.bytes().length <= KEEP && reply.length <= KEEP) {
            home[0] = this;
        }
    }

    /** The reply, which is kept as the array to offer next time. */
    Input read(byte[] answer) {
        reply = answer;
        return input.of(answer);
    }
}
