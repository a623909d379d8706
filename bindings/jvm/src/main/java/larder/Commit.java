package larder;

import java.util.List;

/**
 * Changes that took effect at one instant: that of one operation, or all that a transaction, a list
 * of {@link Operations} or a {@code putAll} did to the table.
 *
 * @param seq the number of the commit. Numbers never decrease. A commit that changed several tables
 *     has the same number in the feed of each. One of more than 500 changes comes in parts, and the
 *     parts of a transaction have one number.
 * @param changes one change or more, in the order in which they were made
 */
public record Commit<K, V>(long seq, List<Change<K, V>> changes) {}
