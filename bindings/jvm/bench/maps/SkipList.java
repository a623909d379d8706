// name: ConcurrentSkipListMap

public final class SkipList extends OfMap {
    public SkipList() {
        super(new java.util.concurrent.ConcurrentSkipListMap<>());
    }
}
