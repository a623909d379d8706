package larder;

/** The tables of one attempt of a transaction, each as a {@link LarderView}. */
public final class LarderViews {
    private final LarderTable<?, ?>[] tables;
    private final LarderView<?, ?>[] views;
    private volatile boolean isOver;

    LarderViews(LarderTable<?, ?>[] tables, long[] numbers) {
        this.tables = tables;
        this.views = new LarderView<?, ?>[tables.length];
        for (int i = 0; i < tables.length; i++) {
            views[i] = tables[i].view(numbers[i]);
        }
    }

    void end() {
        isOver = true;
    }

    /**
     * The view of a table.
     *
     * @throws IllegalArgumentException if the transaction is not on that table
     * @throws IllegalStateException if the transaction's body has returned
     */
    @SuppressWarnings("unchecked")
    public <K, V> LarderView<K, V> of(LarderTable<K, V> table) {
        return (LarderView<K, V>) find(table);
    }

    /**
     * The view of a table of longs.
     *
     * @throws IllegalArgumentException as {@link #of(LarderTable)}
     * @throws IllegalStateException as {@link #of(LarderTable)}
     */
    public LarderLongView of(LarderLongTable table) {
        return (LarderLongView) find(table);
    }

    /**
     * The view of a table of bytes.
     *
     * @throws IllegalArgumentException as {@link #of(LarderTable)}
     * @throws IllegalStateException as {@link #of(LarderTable)}
     */
    public LarderBytesView of(LarderBytesTable table) {
        return (LarderBytesView) find(table);
    }

    /**
     * The view of a table of longs to bytes.
     *
     * @throws IllegalArgumentException as {@link #of(LarderTable)}
     * @throws IllegalStateException as {@link #of(LarderTable)}
     */
    public LarderLongBytesView of(LarderLongBytesTable table) {
        return (LarderLongBytesView) find(table);
    }

    private LarderView<?, ?> find(LarderTable<?, ?> table) {
        if (isOver) {
            throw new IllegalStateException("the transaction is over");
        }
        for (int i = 0; i < tables.length; i++) {
            if (tables[i] == table) {
                return views[i];
            }
        }
        throw new IllegalArgumentException("the transaction is not on this table: name it in `on`");
    }
}
