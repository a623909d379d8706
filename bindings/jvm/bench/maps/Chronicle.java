// name: Chronicle Map

import net.openhft.chronicle.map.ChronicleMapBuilder;

/** It has to be told how many rows there will be. */
public final class Chronicle extends OfMap {
    public Chronicle() {
        super(ChronicleMapBuilder.of(Long.class, Long.class)
                .name("map")
                .entries(Long.getLong("rows"))
                .create());
    }
}
