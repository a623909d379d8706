// name: LarderTable<Long, Long>

public final class LarderBoxed extends OfMap {
    public LarderBoxed() {
        super(larder.LarderTable.builder(larder.Codec.LONG, larder.Codec.LONG).open());
    }
}
