//! Writing a row: an object's key and value in the form in which a table stores them.
//!
//! [`Row::write`] writes an object's key and value in one pass over its elements:
//!
//! ```text
//!  {user, 17, "Ann"}, keypos 2    key    17                        index key
//!                                 value  head | user | "Ann"       head: arity and flags
//!                                             ╰ or: exact key | …  if 17 can't be restored from
//!                                                                  the index key
//! ```
//!
//! 1. The value's head: the arity and the flags known so far.
//! 2. The index key: the canonical bytes in a hash table, the order key in an ordered_set.
//! 3. The exact key, in front of the other elements, if it can't be restored from the index key.
//! 4. The other elements, in order.
//! 5. The flags that depend on the elements (handles), compression, and elements out of line.

use super::{Unreadable, Writer, Written, DEPTH};
use crate::layout;
use crate::sys::*;
use crate::terms::buffer::StackBytes;
use larder::host::EngineTable;
use larder_term::object::{
    self, groups, KeyForm, ObjectRef, EXACT_KEY, FLAG_BITS, FROM_ORDER, HAS_HANDLES,
    LONGEST_IN_LINE,
};
use larder_term::Mode;

/// An object's key and value in the form in which a table stores them.
pub struct Row<'p> {
    key: Writer<'p>,
    value: Writer<'p>,
    /// How many bytes of the value were put out of line.
    out_of_line: usize,
}

impl<'p> Row<'p> {
    /// An empty row whose buffers begin on the stack.
    #[inline]
    pub fn at([key, value]: [&'p mut StackBytes; 2], env: *mut Env) -> Self {
        Row {
            key: Writer::at(key, env, Mode::Inline),
            value: Writer::at(value, env, Mode::Shared),
            out_of_line: 0,
        }
    }

    /// Discards the object, so that another one for the same table can be written.
    #[inline]
    pub fn clear(&mut self) {
        self.key.clear();
        self.value.clear();
        self.out_of_line = 0;
    }

    /// Writes the object with these elements. `Unreadable` also if it has no element at the
    /// position of the key.
    #[inline]
    pub fn write(&mut self, table: &EngineTable, elements: &[Word]) -> Written {
        self.write_key(table, elements)?;
        self.write_others(table, elements)
    }

    /// Writes the object with these elements, and another key. `Unreadable` also if no element is
    /// at the position of the key.
    #[inline]
    pub fn write_with_key(&mut self, table: &EngineTable, elements: &[Word], key: Word) -> Written {
        if elements.len() < table.keypos() {
            return Err(Unreadable);
        }
        self.write_head(table, elements.len(), key)?;
        self.write_others(table, elements)
    }

    /// (1) to (3) of `write`.
    #[inline(always)]
    pub fn write_key(&mut self, table: &EngineTable, elements: &[Word]) -> Written {
        let &word = elements.get(table.keypos() - 1).ok_or(Unreadable)?;
        self.write_head(table, elements.len(), word)
    }

    /// (1) to (3) of `write`, given the key.
    #[inline(always)]
    fn write_head(&mut self, table: &EngineTable, arity: usize, word: Word) -> Written {
        // (1) The head: arity and flags. In an ordered_set the key is assumed to be restorable from
        // its order key; `other_key` corrects the flag if it isn't.
        let form = table.key_form();
        let flags = match form {
            KeyForm::Hash { .. } => 0,
            KeyForm::Ordered => FROM_ORDER,
        };
        let value = &mut self.value;
        if table.compressed() {
            value.mode = Mode::Anchored;
        }
        value
            .out
            .varint((arity << FLAG_BITS) as u64 | u64::from(flags));
        value.first = value.out.len();
        // (2), (3) The key. A small integer can always be restored from its index key.
        match layout::small(word) {
            Some(_) => self.key.key(word, form),
            None => self.other_key(word, form),
        }
    }

    /// (4) and (5) of `write`.
    #[inline(always)]
    pub fn write_others(&mut self, table: &EngineTable, elements: &[Word]) -> Written {
        let (keypos, value) = (table.keypos(), &mut self.value);
        // (4) The other elements.
        match elements.len() < groups::WIDE {
            true => value.run(elements, keypos, &mut value.out.len())?,
            false => value.groups(elements, keypos)?,
        }
        // (5) The flags that depend on the elements, compression, and elements out of line.
        if value.handles.get() || table.compressed() || value.out.len() > LONGEST_IN_LINE {
            self.finish(table);
        }
        Ok(())
    }

    /// The index key, once it was written.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key.out
    }

    /// The length of the value that was written, with its elements out of line.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        self.value.out.len() + self.out_of_line
    }

    /// The object that was written.
    #[inline]
    pub fn object(&self) -> ObjectRef<'_> {
        // SAFETY: key and value are as an encoder would have written them; the counts of its
        // handles are held by the value's writer, or by those to whom they were given.
        unsafe { ObjectRef::trusted(&self.key.out, &self.value.out) }
    }

    /// Passes the counts of the handles on to whoever has stored the object, and returns whether
    /// there are any. The bytes stay as they are.
    #[inline]
    pub fn hand_over_counts(&self) -> bool {
        self.value.handles.take()
    }

    /// Takes back the counts that were given up, because the object was not stored.
    pub fn reclaim_counts(&self) {
        self.value.handles.set(true);
    }

    /// Writes a key that is not a small integer: the index key and, if the key can't be restored
    /// from that, the exact key in front of the value's elements.
    #[inline(never)]
    fn other_key(&mut self, word: Word, form: KeyForm) -> Written {
        let Row { key, value, .. } = self;
        match form {
            KeyForm::Hash { legacy_zero } => {
                key.term(word)?;
                // The index key differs from the key in two respects: it keeps no resource alive,
                // and −0.0 in it may have become 0.0. If either matters, the value needs the exact
                // key.
                if key.has_magic || (legacy_zero && key.negative_zero) {
                    self.keep_exact(word)?;
                }
            }
            KeyForm::Ordered => {
                // If the key can be restored from its order key, the value needs no copy.
                if !key.order_key(word, DEPTH)? {
                    let mode = std::mem::replace(&mut value.mode, Mode::Anchored);
                    value.term(word)?;
                    value.mode = mode;
                    value.out.change(0, |head| head ^ (FROM_ORDER | EXACT_KEY));
                }
            }
        }
        Ok(())
    }

    /// Writes the exact key into the value, because the index key keeps no resource alive or lacks
    /// the sign of a zero.
    #[cold]
    fn keep_exact(&mut self, word: Word) -> Written {
        let Row { key, value, .. } = self;
        // Binaries of the key are in the index key in any case. Here they are written inline, too.
        let mode = std::mem::replace(&mut value.mode, Mode::Anchored);
        value.term(word)?;
        value.mode = mode;
        value.out.change(0, |head| head | EXACT_KEY);
        if key.negative_zero {
            key.without_negative_zero(0);
        }
        Ok(())
    }

    /// Sets the flag for handles in the value's head, or compresses a value that has none. Puts
    /// very long elements out of line, if the table does that.
    #[inline(never)]
    fn finish(&mut self, table: &EngineTable) {
        let value = &mut self.value;
        let is_long = value.out.len() > LONGEST_IN_LINE;
        if let Some(total) = table.out_of_line().filter(|_| is_long) {
            let handles = value.handles.get();
            // SAFETY: the value is whole, as an encoder of objects would have written it, but for
            // the flag. The writer owns the counts, and its old bytes go without being looked at.
            if let Some(new) = unsafe { object::put_out_of_line(&value.out, handles, total) } {
                self.out_of_line = value.out.len() - new.len();
                value.out.replace(new);
                value.handles.set(true);
            }
        }
        if value.handles.get() {
            // Whoever drops the value later looks for handles only if this flag is set.
            value.out.change(0, |head| head | HAS_HANDLES);
        } else if table.compressed() {
            if let Some(packed) = object::compressed(&value.out) {
                value.out.replace(packed);
            }
        }
    }
}

impl Writer<'_> {
    /// Writes elements, but not the one at position `keypos`, counted from the first of them. What
    /// stands in front of each is known when it ends, and written when the next one begins; `last`
    /// is where the last one begins. The last one of an object has nothing there.
    #[inline(always)]
    fn run(&mut self, elements: &[Word], keypos: usize, last: &mut usize) -> Written {
        for (i, &element) in elements.iter().enumerate() {
            if i + 1 != keypos {
                self.out.insert_prefix(*last);
                *last = self.out.len();
                self.term(element)?;
            }
        }
        Ok(())
    }

    /// Writes the elements of a wide object, after the lengths of their groups.
    #[inline(never)]
    fn groups(&mut self, elements: &[Word], keypos: usize) -> Written {
        groups::begin(elements.len(), |bytes| self.out.slice(bytes));
        let mut start = self.out.len();
        let (first, mut last) = (start, start);
        let (count, mut written) = (groups::count(elements.len()), 0);
        for group in 0..count {
            // The key is none of the elements of a group, but may lie between two of them.
            let others = (group + 1) * groups::GROUP;
            let end = others + usize::from(others >= keypos);
            self.run(
                &elements[written..end],
                keypos.wrapping_sub(written),
                &mut last,
            )?;
            self.out.insert_prefix(last);
            // The next group begins here.
            last = self.out.len();
            self.out
                .change(first - count + group, |_| groups::stored(last - start));
            (start, written) = (last, end);
        }
        self.run(
            &elements[written..],
            keypos.wrapping_sub(written),
            &mut last,
        )
    }
}
