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
use larder::host::{Error, FeedEvent, FeedRead, Subscription, SubscriptionOptions};
use larder_matchspec::Context;
use larder_term::{atoms, Term};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// About so many events are read at first,
const FIRST: usize = 8;
/// and at most about so many at once.
const BATCH: usize = 128;
/// A reply that has so many bytes gets no further commit. If the events of one reading have more,
/// the next reading is of fewer events.
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
///  feed  --(1)-->  undelivered  --(2)-->  Java's array  --(3)-->  the reply is dropped
/// ```
///
/// Events that are read (1) are no longer in the feed. Java may have no memory for them. So each
/// reply stays here until it was copied (2), and the next call offers it again.
pub(crate) struct Follower {
    subscription: Subscription,
    undelivered: VecDeque<Reply>,
    /// About so many events are read next: few if the last ones were long.
    most: usize,
    /// A buffer for a reply.
    spare: Reply,
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
            Ok::<_, Error>(SubscriptionOptions {
                limit,
                filter: filter.map(MatchSpec::program).transpose()?,
                waker: Arc::new(move || ring(token)),
            })
        };
        let larder = self.table.larder();
        // With a snapshot both are taken at one instant. So no change is in both of them, and none
        // is in neither.
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
            undelivered: VecDeque::new(),
            most: FIRST,
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
    // (1) Read only when all that was read is delivered: replies stay in order, and at most one
    // reading is kept.
    if follower.undelivered.is_empty() {
        follower.read(longest)?;
    }
    // (2) The reply leaves the queue only after Java has a copy of it.
    let Some(reply) = follower.undelivered.front() else {
        return Ok(0);
    };
    let length = reply.bytes().len();
    if deliver(reply.bytes())? {
        let delivered = follower.undelivered.pop_front().unwrap_or_default();
        // (3) The next reading writes to the same memory, unless the reply was unusually long.
        if delivered.capacity() <= KEEP {
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
        // A filter may name `self()` and `node()`. A thread of Java is no process, and there is no
        // node.
        let nobody = Term::from(atoms::UNDEFINED);
        let context = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let mut replies = Replies::new(longest, std::mem::take(&mut self.spare));
        let told = self
            .subscription
            .next((self.most, true), &context, &mut |seq, event| {
                replies.event(seq, &event)
            });
        let (done, bytes) = replies.finish(told)?;
        // Short events are read in larger numbers, so that a reader that fell behind is told once
        // of what it lost. Of long ones so many are read as one reply has room for.
        self.most = match bytes {
            0..ENOUGH => (2 * self.most).min(BATCH),
            _ => (self.most * ENOUGH / bytes).max(1),
        };
        self.undelivered = done;
        Ok(())
    }
}

/// The replies with the events of one reading, commit by commit.
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
    /// How many changes it has, or says to be lost.
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

    /// Begins the reply with what `seal` replaces.
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
            if self.reply.bytes().len() >= ENOUGH {
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
            let told = [FeedEvent::Overflow(changes)].into_iter().chain(gone);
            let mut told = told.map(|event| write(&mut self.reply, seq, &event));
            self.failure = told.find_map(Result::err);
            self.commit.count = 1 + u32::from(is_gone);
        }
        self.count += std::mem::take(&mut self.commit.count);
    }

    /// Ends the last reply. Returns all of them, and how many bytes they have.
    fn finish(mut self, told: FeedRead) -> Result<(VecDeque<Reply>, usize), Failure> {
        self.end_commit();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let state = match told {
            // Whoever has got something asks again anyway.
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
