//! The operations on strings, compiled with the processor's bit count and without; see
//! [`cpu`](crate::raw::cpu).

use super::Text;
use crate::chunks::Chunks;
use crate::raw::cpu::twice;

twice! {
    /// The value of a string.
    get, get_counting, get_plain,
    ['a, C: Chunks] [C] (text: &'a Text<C>, key: &[u8]) -> Option<&'a u64>
    = |_| text.get_by(key)
}

twice! {
    /// The nearest string from `key` on.
    seek, seek_counting, seek_plain,
    ['a, const UP: bool, C: Chunks] [UP, C] (text: &'a Text<C>, key: &mut Vec<u8>, inclusive: bool) -> Option<&'a u64>
    = |_| text.seek_by::<UP>(key, inclusive)
}

twice! {
    /// Inserts a string.
    insert, insert_counting, insert_plain,
    ['a, C: Chunks] [C] (text: &'a mut Text<C>, key: &[u8]) -> (&'a mut u64, bool)
    = |cpu| text.insert_by(cpu, key)
}

twice! {
    /// Removes a string.
    remove, remove_counting, remove_plain,
    [C: Chunks] [C] (text: &mut Text<C>, key: &[u8]) -> Option<u64>
    = |cpu| text.remove_by(cpu, key)
}
