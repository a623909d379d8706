//! Words: what a structure stores under a position. A word is a pointer that owns its target.
//!
//! ```text
//!   Object   --> | count | length | bytes ...          one object, immutable
//!   ValueList--> | next | bytes | (number, Object)* |  the objects of one key, in order of arrival
//! ```

use crate::position::Bytes;
use larder_index::Objects;
use triomphe::ThinArc;

/// A machine word that owns what it points to.
pub trait Word: Clone + Send + Sync + 'static {
    /// The bytes of memory that the word owns. O(1).
    fn heap_bytes(&self) -> usize;
}

#[cfg(all(test, not(larder_model)))]
impl Word for u64 {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The bytes of one object. Clones share them.
#[derive(Clone, Debug)]
pub struct Object(ThinArc<(), u8>);

impl Object {
    /// An object with a copy of these bytes.
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
        // The reference count and the length precede the bytes.
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
    /// The number of the next arrival.
    next: u64,
    /// The bytes that the objects own.
    bytes: usize,
    list: Vec<Member>,
}

/// The objects of one key, by ascending number of arrival. Adding one takes O(1). Finding or
/// removing one takes a walk over all of them, as in `ets`. Where others may be reading the list,
/// each change copies it first, in O(n).
#[derive(Clone, Debug, Default)]
pub struct ValueList(Box<Members>);

impl ValueList {
    /// The number of objects.
    pub fn len(&self) -> usize {
        self.0.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects, with the numbers of their arrivals.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &Object)> {
        self.0.list.iter().map(|m| (m.number, &m.object))
    }

    /// The objects whose numbers, as bytes, a walk visits. `admits` decides it for a number.
    pub(crate) fn part<'c>(
        &'c self,
        admits: &dyn Fn(&Bytes) -> bool,
        forward: bool,
    ) -> impl DoubleEndedIterator<Item = (u64, &'c Object)> {
        // Numbers ascend, so those that are visited are at one end of the list.
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
        // Count the bytes that go in the same pass.
        members.list.retain(|m| {
            let goes = f(m.object.bytes());
            *bytes -= if goes { m.object.heap_bytes() } else { 0 };
            !goes
        });
        let removed = before - members.list.len();
        // Release memory, but keep room for as many objects again.
        if members.list.len() < members.list.capacity() / 4 {
            members.list.shrink_to(members.list.len() * 2);
        }
        removed
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
