//! Feeds: the changes of a table as they happen.
//!
//! No native method waits for a change while it uses a feed. A feed without changes asks to be
//! woken. The thread that makes the next change appends the feed's token to a queue (`signal`). One
//! Java thread waits for the queue (`next_signal`) and wakes the threads that wait for these feeds.
//! So threads wait for changes in Java, where an interrupt or a close ends the wait.

use crate::failure::Failure;
use crate::handles::{self, with_other, Handle};
use crate::item::Item;
use crate::wire::Reply;
use larder::api::{Larder, MatchSpec, Snapshot};
use larder::host::{Error, FeedEvent, FeedRead, Subscription, SubscriptionOptions};
use larder_matchspec::Context;
use larder_term::{atoms, Term};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// About how many events the first read takes.
const FIRST: usize = 8;
/// About how many events a read takes at most.
const BATCH: usize = 128;
/// A reply of this many bytes gets no further commit. If the events of one read have more bytes,
/// the next read takes fewer events.
const REPLY_BYTES: usize = 1 << 20;
/// A buffer with a larger capacity isn't kept.
const MAX_KEPT: usize = 64 << 10;

/// The tokens of feeds that may have changes.
static SIGNALLED: Mutex<VecDeque<i64>> = Mutex::new(VecDeque::new());
static SIGNAL: Condvar = Condvar::new();

fn signal(token: i64) {
    let mut tokens = SIGNALLED.lock().unwrap_or_else(PoisonError::into_inner);
    tokens.push_back(token);
    SIGNAL.notify_one();
}

/// Waits until a feed that had no changes may have some. Returns its token.
pub(crate) fn next_signal() -> i64 {
    let mut tokens = SIGNALLED.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(token) = tokens.pop_front() {
            return token;
        }
        tokens = SIGNAL.wait(tokens).unwrap_or_else(PoisonError::into_inner);
    }
}

/// A subscription, and its events that were read and not delivered yet.
///
/// ```text
///  feed  --(1)-->  undelivered  --(2)-->  Java's array  --(3)-->  the reply is dropped
/// ```
///
/// Events that are read (1) are no longer in the feed. Java may have no memory for them. So each
/// reply stays here until it was copied (2), and the next call offers it again.
pub(crate) struct Follower {
    subscription: Subscription,
    undelivered: VecDeque<Reply>,
    /// About how many events the next read takes: few if the last ones were long.
    batch: usize,
    /// A buffer for a reply.
    spare: Reply,
}

impl Handle {
    /// Subscribes to the table. Returns the number of the feed and, if requested, that of a
    /// snapshot of the moment at which the feed begins.
    pub(crate) fn follow(
        &self,
        token: i64,
        limit: usize,
        filter: Option<&str>,
        with_snapshot: bool,
    ) -> Result<(i64, Option<i64>), Failure> {
        let options = || {
            Ok::<_, Error>(SubscriptionOptions {
                limit,
                filter: filter.map(MatchSpec::program).transpose()?,
                waker: Arc::new(move || signal(token)),
            })
        };
        let larder = self.table.larder();
        // With a snapshot both are taken at one instant. So no change is in both of them, and none
        // is in neither.
        let (snapshot, subscription) = self.patiently(|| match with_snapshot {
            true => {
                let engine = larder.engine();
                let taken = engine.snapshot_and_subscribe(&self.engine, self.owner, options()?)?;
                Ok((Some(taken.0), taken.1))
            }
            false => Ok((None, self.engine.subscribe(self.owner, options()?)?)),
        })?;
        let snapshot = snapshot
            .map(|taken| open_snapshot(taken, &larder))
            .transpose()?;
        let follower = Follower {
            subscription,
            undelivered: VecDeque::new(),
            batch: FIRST,
            spare: Reply::default(),
        };
        // If the feed gets no number, the snapshot must not stay open: nobody would know its
        // number.
        match handles::open_other(Arc::new(Mutex::new(follower))) {
            Ok(feed) => Ok((feed, snapshot)),
            Err(failure) => {
                snapshot.map(handles::close);
                Err(failure)
            }
        }
    }
}

fn open_snapshot(taken: Arc<larder::host::EngineTable>, larder: &Larder) -> Result<i64, Failure> {
    handles::open(Handle::of_snapshot(Snapshot::of_engine(taken, larder)?))
}

/// Delivers the next changes of a feed: how many, the state of the feed (`SOME` to `OVER`), and the
/// changes. If `deliver` returns false because it has no room for them, the next call delivers
/// them. Returns their length in bytes: little more than `longest` and `REPLY_BYTES` together.
pub(crate) fn next(
    id: i64,
    longest: usize,
    deliver: impl FnOnce(&[u8]) -> Result<bool, Failure>,
) -> Result<usize, Failure> {
    // The feed may be closed meanwhile. No close waits for this lock, so `deliver` may use Java.
    let follower = with_other(id, |follower: &Arc<Mutex<Follower>>| {
        Ok(Arc::clone(follower))
    })?;
    // After a panic the subscription is consistent, and a reply that was read in part is dropped.
    let mut follower = follower.lock().unwrap_or_else(PoisonError::into_inner);
    // Read only when all replies are delivered: they stay in order, and those of at most one
    // read are kept.
    if follower.undelivered.is_empty() {
        follower.read(longest)?;
    }
    // The reply leaves the queue only after Java has a copy of it.
    let Some(reply) = follower.undelivered.front() else {
        return Ok(0);
    };
    let length = reply.bytes().len();
    if deliver(reply.bytes())? {
        let delivered = follower.undelivered.pop_front().unwrap_or_default();
        // The next read writes to the same memory, unless the reply was unusually long.
        if delivered.capacity() <= MAX_KEPT {
            follower.spare = delivered;
        }
    }
    Ok(length)
}

const SOME: u8 = 0;
const NOTHING: u8 = 1;
const WAITS: u8 = 2;
const OVER: u8 = 3;

impl Follower {
    /// Reads the next events once: one reply, or several if they are long.
    fn read(&mut self, longest: usize) -> Result<(), Failure> {
        // A filter may name `self()` and `node()`. A Java thread is no process, and there is no
        // node.
        let nobody = Term::from(atoms::UNDEFINED);
        let context = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let mut replies = Replies::new(longest, std::mem::take(&mut self.spare));
        let outcome = self
            .subscription
            .next(self.batch, true, &context, &mut |seq, event| {
                replies.event(seq, &event)
            });
        let (done, bytes) = replies.finish(outcome)?;
        // Short events are read in larger batches, so that a reader that fell behind gets one
        // overflow. Of long events the batch is what one reply has room for.
        self.batch = match bytes {
            0..REPLY_BYTES => (2 * self.batch).min(BATCH),
            _ => (self.batch * REPLY_BYTES / bytes).max(1),
        };
        self.undelivered = done;
        Ok(())
    }
}

/// The replies with the events of one read, commit by commit.
struct Replies {
    longest: usize,
    /// Those that are full.
    full: VecDeque<Reply>,
    bytes_of_full: usize,
    /// The one that is being written, and how many events it has.
    reply: Reply,
    count: u32,
    commit: Commit,
    /// Why events could not be written.
    failure: Option<Failure>,
}

/// The commit whose events are being written.
#[derive(Default)]
struct Commit {
    seq: u64,
    /// Where its events begin, and how many of them are written.
    begin: usize,
    count: u32,
    /// The number of its changes, including lost ones.
    changes: u64,
    is_gone: bool,
}

impl Replies {
    fn new(longest: usize, spare: Reply) -> Self {
        let mut replies = Replies {
            longest,
            full: VecDeque::new(),
            bytes_of_full: 0,
            reply: spare,
            count: 0,
            commit: Commit::default(),
            failure: None,
        };
        replies.begin();
        replies.commit.begin = replies.reply.bytes().len();
        replies
    }

    /// Begins the reply with a header that `seal` overwrites.
    fn begin(&mut self) {
        self.reply.clear();
        self.reply.int(0);
        self.reply.byte(SOME);
        self.count = 0;
    }

    /// Ends the reply that is being written.
    fn seal(&mut self, state: u8) {
        self.reply.set_first_int(self.count);
        self.reply.set_second_byte(state);
        self.bytes_of_full += self.reply.bytes().len();
        self.full.push_back(std::mem::take(&mut self.reply));
    }

    /// Writes an event.
    fn event(&mut self, seq: u64, event: &FeedEvent<'_>) {
        // The first event of another commit. Commits are never divided between two replies, so this
        // is the only place at which a reply may end.
        if seq != self.commit.seq {
            self.end_commit();
            if self.reply.bytes().len() >= REPLY_BYTES {
                self.seal(SOME);
                self.begin();
            }
            self.commit = Commit {
                seq,
                begin: self.reply.bytes().len(),
                ..Commit::default()
            };
        }
        // Count all changes, also those that are not written: an overflow says how many were lost.
        match event {
            FeedEvent::Overflow(more) => self.commit.changes += more,
            FeedEvent::Gone => self.commit.is_gone = true,
            _ => self.commit.changes += 1,
        }
        // The rest of a commit that is too long isn't needed.
        if self.failure.is_none() && self.length_of_commit() <= self.longest {
            self.failure = write(&mut self.reply, seq, event).err();
            self.commit.count += 1;
        }
    }

    fn length_of_commit(&self) -> usize {
        self.reply.bytes().len() - self.commit.begin
    }

    /// Ends a commit. If its events are longer than `longest`, an overflow in their place says how
    /// many they were.
    fn end_commit(&mut self) {
        if self.failure.is_none() && self.length_of_commit() > self.longest {
            let Commit {
                seq,
                begin,
                changes,
                is_gone,
                ..
            } = self.commit;
            // Take back the events that were written, and write one overflow instead. If the commit
            // also dropped the table, the reader must still learn of that.
            self.reply.truncate(begin);
            let gone = is_gone.then_some(FeedEvent::Gone);
            let events = [FeedEvent::Overflow(changes)].into_iter().chain(gone);
            let mut written = events.map(|event| write(&mut self.reply, seq, &event));
            self.failure = written.find_map(Result::err);
            self.commit.count = 1 + u32::from(is_gone);
        }
        self.count += std::mem::take(&mut self.commit.count);
    }

    /// Ends the last reply. Returns all of them, and how many bytes they have.
    fn finish(mut self, outcome: FeedRead) -> Result<(VecDeque<Reply>, usize), Failure> {
        self.end_commit();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let state = match outcome {
            // A reader that got events reads again anyway.
            _ if self.count > 0 => SOME,
            FeedRead::Some => SOME,
            FeedRead::Nothing => NOTHING,
            FeedRead::Waits => WAITS,
            FeedRead::Over => OVER,
        };
        self.seal(state);
        Ok((self.full, self.bytes_of_full))
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
    // A change with one row has its key and value. A replacement has the old row and the new value,
    // since the key is the same.
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
