// name: Caffeine

/** A cache without a limit. */
public final class Caffeine extends OfMap {
    public Caffeine() {
        super(com.github.benmanes.caffeine.cache.Caffeine.newBuilder().<Long, Long>build().asMap());
    }
}
