//! Feeds: the changes of a table as they happen.
//!
//! No native method waits for a change while it uses a feed. A feed that has nothing asks to be
//! woken. The thread that makes the next change puts the feed's token on a list (`ring`). One
//! thread of Java's waits for that list (`rung`), and wakes those who wait for these feeds. So a
//! wait for a change is one in Java, which an interrupt or a close ends.

use crate::failure::Failure;
use crate::handles::{self, with_other, Handle};
use crate::item::Item;
use crate::wire::Reply;
use larder::api::{Larder, MatchSpec, Snapshot};
use larder::host::{Error, FeedEvent, Subscription, Told, Wishes};
use larder_matchspec::Context;
use larder_term::{atoms, Term};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// About so many events are read by one call,
const BATCH: u32 = 128;
/// and no more of them once the reply has so many bytes.
const ENOUGH: usize = 1 << 20;
/// A buffer that has grown beyond this is not kept.
const KEEP: usize = 64 << 10;

/// The tokens of feeds that may have something.
static RUNG: Mutex<VecDeque<i64>> = Mutex::new(VecDeque::new());
static BELL: Condvar = Condvar::new();

fn ring(token: i64) {
    let mut rung = RUNG.lock().unwrap_or_else(PoisonError::into_inner);
    rung.push_back(token);
    BELL.notify_one();
}

/// Waits until a feed that had nothing may have something. Returns its token.
pub(crate) fn rung() -> i64 {
    let mut rung = RUNG.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(token) = rung.pop_front() {
            return token;
        }
        rung = BELL.wait(rung).unwrap_or_else(PoisonError::into_inner);
    }
}

/// A subscription, and what was read of it and not delivered yet.
///
/// ```text
///  feed  --(1)-->  undelivered  --(2)-->  Java's array  --(3)-->  undelivered is empty
/// ```
///
/// Events that are read (1) are no longer in the feed. Java may have no memory for them. So they
/// stay here until they were copied (2), and the next call offers them again.
pub(crate) struct Follower {
    subscription: Subscription,
    undelivered: Reply,
}

impl Handle {
    /// Subscribes to the table. Returns the number of the feed, and that of a snapshot of the
    /// moment at which it begins, if that is wished.
    pub(crate) fn follow(
        &self,
        (token, limit): (i64, usize),
        filter: Option<&str>,
        with_snapshot: bool,
    ) -> Result<(i64, Option<i64>), Failure> {
        let wishes = || {
            Ok::<_, Error>(Wishes {
                limit,
                filter: filter.map(MatchSpec::program).transpose()?,
                waker: Arc::new(move || ring(token)),
            })
        };
        let larder = self.table.larder();
        let (snapshot, subscription) = self.patiently(|| match with_snapshot {
            true => {
                let engine = larder.engine();
                let taken = engine.snapshot_and_subscribe(&self.engine, self.owner, wishes()?)?;
                Ok((Some(taken.0), taken.1))
            }
            false => Ok((None, self.engine.subscribe(self.owner, wishes()?)?)),
        })?;
        let snapshot = snapshot
            .map(|taken| open_snapshot(taken, &larder))
            .transpose()?;
        let follower = Follower {
            subscription,
            undelivered: Reply::default(),
        };
        match handles::open_other(Arc::new(Mutex::new(follower))) {
            Ok(feed) => Ok((feed, snapshot)),
            Err(failure) => {
                snapshot.map(handles::close);
                Err(failure)
            }
        }
    }
}

fn open_snapshot(taken: Arc<larder::host::Table>, larder: &Larder) -> Result<i64, Failure> {
    handles::open(Handle::of_snapshot(Snapshot::of_engine(taken, larder)?))
}

/// Delivers the next changes of a feed: how many, the state of the feed (`SOME` to `OVER`), and the
/// changes. If `deliver` says that it has no room for them, the next call delivers them. Returns
/// how many bytes they are: not many more than `longest` and `ENOUGH` together.
pub(crate) fn next(
    id: i64,
    longest: usize,
    deliver: impl FnOnce(&[u8]) -> Result<bool, Failure>,
) -> Result<usize, Failure> {
    // The feed may be closed meanwhile. No close waits for this lock, so `deliver` may use Java.
    let follower = with_other(id, |follower: &Arc<Mutex<Follower>>| {
        Ok(Arc::clone(follower))
    })?;
    // A subscription is whole after a panic, and what was read in part is dropped.
    let mut follower = follower.lock().unwrap_or_else(PoisonError::into_inner);
    if follower.undelivered.bytes().is_empty() {
        follower.read(longest)?;
    }
    let length = follower.undelivered.bytes().len();
    if deliver(follower.undelivered.bytes())? {
        follower.undelivered.clear();
        if follower.undelivered.capacity() > KEEP {
            follower.undelivered = Reply::default();
        }
    }
    Ok(length)
}

const SOME: u8 = 0;
const NOTHING: u8 = 1;
const WAITS: u8 = 2;
const OVER: u8 = 3;

impl Follower {
    /// Reads the next events.
    fn read(&mut self, longest: usize) -> Result<(), Failure> {
        let mut reply = std::mem::take(&mut self.undelivered);
        reply.int(0);
        reply.byte(SOME);
        let (mut count, mut told) = (0, Told::Some);
        while matches!(told, Told::Some) && count < BATCH && reply.bytes().len() < ENOUGH {
            let (of_commit, now) = self.read_commit(longest, &mut reply)?;
            count += of_commit;
            told = now;
        }
        reply.set_first_int(count);
        reply.set_second_byte(match told {
            // Whoever has got something asks again anyway.
            _ if count > 0 => SOME,
            Told::Some => SOME,
            Told::Nothing => NOTHING,
            Told::Waits => WAITS,
            Told::Over => OVER,
        });
        self.undelivered = reply;
        Ok(())
    }

    /// Writes the events of the next commit. If they are longer than `longest`, an overflow in
    /// their place says how many they were. Returns how many were written, and how the feed is.
    fn read_commit(&mut self, longest: usize, reply: &mut Reply) -> Result<(u32, Told), Failure> {
        let nobody = Term::from(atoms::UNDEFINED);
        let context = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let begin = reply.bytes().len();
        let (mut count, mut lost, mut commit, mut is_gone) = (0, 0, 0, false);
        let mut written = Ok(());
        let told = (self.subscription).next((1, true), &context, &mut |seq, event| {
            commit = seq;
            match event {
                FeedEvent::Overflow(more) => lost += more,
                FeedEvent::Gone => is_gone = true,
                _ => lost += 1,
            }
            if written.is_ok() && reply.bytes().len() - begin <= longest {
                written = write(reply, seq, &event);
                count += 1;
            }
        });
        written?;
        if reply.bytes().len() - begin > longest {
            reply.truncate(begin);
            write(reply, commit, &FeedEvent::Overflow(lost))?;
            if is_gone {
                write(reply, commit, &FeedEvent::Gone)?;
            }
            count = 1 + u32::from(is_gone);
        }
        Ok((count, told))
    }
}

/// Writes a change: the number of its commit, what it is (as `Change.Type` in Java counts), and
/// its rows or the number of changes that were lost.
fn write(reply: &mut Reply, seq: u64, event: &FeedEvent<'_>) -> Result<(), Failure> {
    reply.long(seq as i64);
    let (kind, row, new) = match event {
        FeedEvent::Insert(new) => (0, Some(new), None),
        FeedEvent::Replace(old, new) => (1, Some(old), Some(new)),
        FeedEvent::Delete(old) => (2, Some(old), None),
        FeedEvent::Expire(old) => (3, Some(old), None),
        FeedEvent::Evict(old) => (4, Some(old), None),
        FeedEvent::Clear => (5, None, None),
        FeedEvent::Overflow(_) => (6, None, None),
        FeedEvent::Gone => (7, None, None),
    };
    reply.byte(kind);
    if let FeedEvent::Overflow(lost) = event {
        reply.long(*lost as i64);
    }
    if let Some(row) = row {
        let (key, value) = Item::row(row)?;
        reply.item(key);
        reply.item(value);
    }
    if let Some(new) = new {
        reply.item(Item::row(new)?.1);
    }
    Ok(())
}
