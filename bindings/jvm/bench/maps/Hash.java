// name: HashMap

public final class Hash extends OfMap {
    public Hash() {
        super(new java.util.HashMap<>());
    }
}
