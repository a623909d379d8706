// name: MapDB, tree off heap

import org.mapdb.DBMaker;
import org.mapdb.Serializer;

public final class MapDb extends OfMap {
    public MapDb() {
        super(DBMaker.memoryDirectDB()
                .make()
                .treeMap("map", Serializer.LONG, Serializer.LONG)
                .create());
    }
}
