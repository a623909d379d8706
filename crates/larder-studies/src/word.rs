//! What a structure keeps under a position: one machine word, which owns what it points to.
//!
//! ```text
//!   Object   ----> | count | length | bytes ...          one object, never changed once made
//!   ValueList----> | next | bytes | (number, Object)* |  the objects of one key, in order of arrival
//! ```

use crate::position::Bytes;
use larder_index::Objects;
use triomphe::ThinArc;

/// A machine word that owns what it points to.
pub trait Word: Clone + Send + Sync + 'static {
    /// Bytes of memory behind the word. O(1).
    fn heap_bytes(&self) -> usize;
}

#[cfg(all(test, not(larder_model)))]
impl Word for u64 {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// One object's bytes. A clone shares them.
#[derive(Clone, Debug)]
pub struct Object(ThinArc<(), u8>);

impl Object {
    /// A copy of the bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Object(ThinArc::from_header_and_slice((), bytes))
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.0.slice
    }
}

impl Word for Object {
    fn heap_bytes(&self) -> usize {
        // The count and the length stand before the bytes.
        16 + self.bytes().len().next_multiple_of(8)
    }
}

/// An object of a value list, with the number of its arrival.
#[derive(Clone, Debug)]
struct Member {
    number: u64,
    object: Object,
}

#[derive(Clone, Debug, Default)]
struct Members {
    /// The number of the next to arrive.
    next: u64,
    /// Bytes that the objects hold.
    bytes: usize,
    list: Vec<Member>,
}

/// The objects of one key, by ascending number of arrival. To add one takes O(1), to find or remove
/// one a walk over all, as in `ets`.
#[derive(Clone, Debug, Default)]
pub struct ValueList(Box<Members>);

impl ValueList {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects and the numbers of their arrivals.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Object)> {
        self.0.list.iter().map(|m| (m.number, &m.object))
    }

    /// The objects whose numbers, as bytes, a walk from the cut meets.
    pub(crate) fn part<'c>(
        &'c self,
        admits: &dyn Fn(&Bytes) -> bool,
        forward: bool,
    ) -> impl DoubleEndedIterator<Item = (u64, &'c Object)> {
        // Numbers ascend, so that the admitted ones are a run at one end.
        let at = self
            .0
            .list
            .partition_point(|m| admits(&m.number.to_be_bytes()) != forward);
        let (left, right) = self.0.list.split_at(at);
        let list = if forward { right } else { left };
        list.iter().map(|m| (m.number, &m.object))
    }
}

impl Word for ValueList {
    fn heap_bytes(&self) -> usize {
        size_of::<Members>() + self.0.list.capacity() * size_of::<Member>() + self.0.bytes
    }
}

impl Objects for ValueList {
    fn count(&self) -> usize {
        self.len()
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        for (i, member) in self.0.list.iter().enumerate() {
            if !f(i, member.object.bytes()) {
                return;
            }
        }
    }

    fn push(&mut self, value: &[u8]) {
        let members = &mut *self.0;
        let object = Object::new(value);
        members.bytes += object.heap_bytes();
        let number = members.next;
        members.next += 1;
        members.list.push(Member { number, object });
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let members = &mut *self.0;
        let before = members.list.len();
        let bytes = &mut members.bytes;
        members.list.retain(|m| {
            let goes = f(m.object.bytes());
            *bytes -= if goes { m.object.heap_bytes() } else { 0 };
            !goes
        });
        let gone = before - members.list.len();
        if members.list.len() < members.list.capacity() / 4 {
            members.list.shrink_to(members.list.len() * 2);
        }
        gone
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        let members = &mut *self.0;
        if let Some(member) = members.list.get_mut(ordinal) {
            let object = Object::new(value);
            members.bytes = members.bytes + object.heap_bytes() - member.object.heap_bytes();
            member.object = object;
        }
    }
}
