package larder;

/** What becomes of a table that has as much as it may. */
public enum Evict {
    /** Writes that need room are refused with a {@link LimitException}. */
    NONE,
    /** Of some rows that are looked at, those go that were read or written the longest ago. */
    LRU,
    /**
     * Of some rows that are looked at, those go that were read or written the least often lately;
     * or a new one, if it was not more often.
     */
    TINY_LFU,
    /**
     * SIEVE: of some rows that are looked at, in the order in which they were inserted, the next
     * ones go that were not read or written since it was last their turn.
     */
    SIEVE
}
