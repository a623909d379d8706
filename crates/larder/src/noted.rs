//! The objects under a key of a bag, with a layer that learns of each change before it is made.
//!
//! 1. An operation begins (`Notes::begin`). All of it is under the lock of the key.
//! 2. The layer is told the old and the new value of each object that is about to change.
//! 3. The change is passed on to the layer below.
//! 4. The operation ends (`Notes::end`).

use larder_index::Objects;

/// What a layer does about the changes of objects.
pub(crate) trait Notes {
    /// Called before an operation that may change objects.
    fn begin(&mut self, objects: &mut dyn Objects);

    /// Called with the old and the new value of an object that is about to be changed.
    fn note(&mut self, old: Option<&[u8]>, new: Option<&[u8]>);

    /// Called after the operation.
    fn end(&mut self) {}
}

/// The objects under a key, and the layer.
pub(crate) struct NotedObjects<'a, N> {
    pub(crate) objects: &'a mut dyn Objects,
    pub(crate) notes: N,
}

impl<N: Notes> NotedObjects<'_, N> {
    /// Calls `f` to change objects. It must note each change first.
    fn changing<R>(&mut self, f: impl FnOnce(&mut dyn Objects, &mut N) -> R) -> R {
        self.notes.begin(self.objects);
        let result = f(self.objects, &mut self.notes);
        self.notes.end();
        result
    }
}

impl<N: Notes> Objects for NotedObjects<'_, N> {
    fn count(&self) -> usize {
        self.objects.count()
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        self.objects.each(f);
    }

    fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
        self.objects.each_numbered(f);
    }

    fn begin_change(&mut self) {
        self.objects.begin_change();
    }

    fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.objects.find(value, same)
    }

    fn push(&mut self, value: &[u8]) {
        self.changing(|objects, notes| {
            notes.note(None, Some(value));
            objects.push(value);
        });
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        self.changing(|objects, notes| objects.remove_if(&mut noting(notes, f)))
    }

    fn remove_all(&mut self, f: &mut dyn FnMut(&[u8])) -> usize {
        self.changing(|objects, notes| {
            objects.remove_all(&mut |value| {
                notes.note(Some(value), None);
                f(value);
            })
        })
    }

    fn remove_same(&mut self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        self.changing(|objects, notes| objects.remove_same(value, &mut noting(notes, same)))
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        // The old value is copied: it lies in the list that is about to change.
        let mut old = Vec::new();
        self.objects.each(&mut |i, value| {
            if i == ordinal {
                old.extend_from_slice(value);
            }
            i != ordinal
        });
        self.replace_each(&[(ordinal, &old, value)]);
    }

    fn replace_each(&mut self, changes: &[(usize, &[u8], &[u8])]) {
        self.changing(|objects, notes| {
            for &(_, old, new) in changes {
                notes.note(Some(old), Some(new));
            }
            objects.replace_each(changes);
        });
    }
}

/// Wraps a predicate: notes the removal of the objects that it picks.
fn noting<'a>(
    notes: &'a mut impl Notes,
    picks: &'a mut dyn FnMut(&[u8]) -> bool,
) -> impl FnMut(&[u8]) -> bool + 'a {
    move |value| {
        let goes = picks(value);
        if goes {
            notes.note(Some(value), None);
        }
        goes
    }
}
