//! Operations on the objects of one key.

use crate::atoms;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::sys::*;
use crate::tables::{self, answer, natural, who};
use crate::{decode, encode, scratch};
use larder::{Error, Table};
use larder_term::object::ObjectView;
use larder_term::{Mode, TermRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// Runs `f` with the index key of a term.
#[inline]
pub fn with_key<R>(
    call: &Call<'_>,
    table: &Table,
    key: Word,
    f: impl FnOnce(&[u8]) -> Result<R, Raise>,
) -> Result<R, Raise> {
    scratch::with_bytes(|term, index_key| {
        encode::to_bytes(call.env, key, Mode::Inline, term).map_err(|_| BADARG)?;
        // SAFETY: the encoder wrote one whole term in inline mode, without handles.
        table.encode_key(unsafe { TermRef::trusted(term) }, index_key);
        f(index_key)
    })
}

/// The words of objects that a visitor is shown.
pub struct Shown {
    env: *mut Env,
    words: SmallVec<[Word; 8]>,
}

impl Shown {
    /// None yet.
    pub fn new(call: &Call<'_>) -> Self {
        Shown {
            env: call.env,
            words: SmallVec::new(),
        }
    }

    /// Notes an object.
    #[inline]
    pub fn object(&mut self, object: &ObjectView<'_>) {
        self.words.push(decode::object(self.env, object));
    }

    /// Notes a term.
    #[inline]
    pub fn term(&mut self, term: TermRef<'_>) {
        self.words.push(decode::term(self.env, term));
    }

    /// What was noted.
    pub fn words(&self) -> &[Word] {
        &self.words
    }
}

/// insert(Table, Tuple) -> true. Lists are for `insert_list`.
pub fn insert(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        with_object(call, table, call.args[1], |object| {
            table.insert(who(call), object)
        })?;
        Ok(atoms::TRUE.word())
    })
}

/// insert_new(Table, Tuple) -> boolean().
pub fn insert_new(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        with_object(call, table, call.args[1], |object| {
            table.insert_new(who(call), object)
        })
        .map(boolean)
    })
}

/// delete_object(Table, Tuple) -> true.
pub fn delete_object(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        with_object(call, table, call.args[1], |object| {
            table.delete_object(who(call), object)
        })?;
        Ok(atoms::TRUE.word())
    })
}

/// Runs `f` with a tuple as an object of the table, after the right to write was looked at.
#[inline]
fn with_object<R>(
    call: &Call<'_>,
    table: &Arc<Table>,
    tuple: Word,
    f: impl FnOnce(&larder_term::object::ObjectBuf) -> Result<R, Error>,
) -> Result<R, Raise> {
    scratch::with_object(|object| {
        if encode::object(call.env, tuple, table, object).is_err() {
            // The table's error comes before that of the object.
            answer(call, table, table.check_write(who(call)))?;
            return Err(BADARG);
        }
        answer(call, table, f(object))
    })
}

/// lookup(Table, Key) -> [Object].
pub fn lookup(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let mut shown = Shown::new(call);
        let found = with_key(call, table, call.args[1], |key| {
            answer(
                call,
                table,
                table.lookup(who(call), key, &mut |o| shown.object(o)),
            )
        })?;
        spend(call, found);
        Ok(call.list(shown.words()))
    })
}

/// Many objects of a bag cost more than the call itself.
#[inline]
pub fn spend(call: &Call<'_>, objects: usize) {
    if objects > 16 {
        call.spent(objects as u64);
    }
}

/// member(Table, Key) -> boolean().
pub fn member(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        with_key(call, table, call.args[1], |key| {
            answer(call, table, table.member(who(call), key)).map(boolean)
        })
    })
}

/// lookup_element(Table, Key, Pos) -> Element | [Element].
pub fn lookup_element(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        element(call, table)?.ok_or(Raise::Cause(atoms::BADKEY))
    })
}

/// lookup_element(Table, Key, Pos, Default) -> Element | [Element] | Default.
pub fn lookup_element_default(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        Ok(element(call, table)?.unwrap_or(call.args[3]))
    })
}

fn element(call: &Call<'_>, table: &Arc<Table>) -> Result<Option<Word>, Raise> {
    let Ok(position) = natural(call.args[2]) else {
        answer(call, table, table.check_read(who(call)))?;
        return Err(BADARG);
    };
    if position == 0 {
        answer(call, table, table.check_read(who(call)))?;
        return Err(BADARG);
    }
    let mut shown = Shown::new(call);
    let found = with_key(call, table, call.args[1], |key| {
        match table.lookup_element(who(call), key, position, &mut |e| shown.term(e)) {
            Err(Error::Position) => Err(BADARG),
            other => answer(call, table, other),
        }
    })?;
    spend(call, found);
    Ok(match (found, table.kind().is_unique()) {
        (0, _) => None,
        (_, true) => shown.words().first().copied(),
        (_, false) => Some(call.list(shown.words())),
    })
}

/// delete(Table, Key) -> true.
pub fn delete(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let gone = with_key(call, table, call.args[1], |key| {
            answer(call, table, table.delete(who(call), key))
        })?;
        spend(call, gone);
        Ok(atoms::TRUE.word())
    })
}

/// take(Table, Key) -> [Object].
pub fn take(call: &Call<'_>) -> Reply {
    tables::with(call, call.args[0], |table| {
        let mut shown = Shown::new(call);
        let taken = with_key(call, table, call.args[1], |key| {
            answer(
                call,
                table,
                table.take(who(call), key, &mut |o| shown.object(o)),
            )
        })?;
        spend(call, taken);
        Ok(call.list(shown.words()))
    })
}
