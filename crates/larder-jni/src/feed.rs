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
use larder::{Error, FeedEvent, Subscription, Told, Wishes};
use larder_matchspec::Context;
use larder_term::{atoms, Term};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// About so many events are read by one call,
const BATCH: usize = 128;
/// and no more of them once the reply has so many bytes.
const ENOUGH: usize = 1 << 20;

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

/// A subscription.
pub(crate) struct Follower(Subscription);

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
        match handles::open_other(Mutex::new(Follower(subscription))) {
            Ok(feed) => Ok((feed, snapshot)),
            Err(failure) => {
                snapshot.map(handles::close);
                Err(failure)
            }
        }
    }
}

fn open_snapshot(taken: Arc<larder::Table>, larder: &Larder) -> Result<i64, Failure> {
    handles::open(Handle::of_snapshot(Snapshot::of_engine(taken, larder)?))
}

/// Writes the next changes of a feed: how many, the state of the feed (`SOME` to `OVER`), and the
/// changes.
pub(crate) fn next(id: i64, reply: &mut Reply) -> Result<(), Failure> {
    with_other(id, |follower: &Mutex<Follower>| {
        // A subscription is whole after a panic: what it has read is read.
        let mut follower = follower.lock().unwrap_or_else(PoisonError::into_inner);
        follower.next(reply)
    })
}

const SOME: u8 = 0;
const NOTHING: u8 = 1;
const WAITS: u8 = 2;
const OVER: u8 = 3;

impl Follower {
    fn next(&mut self, reply: &mut Reply) -> Result<(), Failure> {
        let nobody = Term::from(atoms::UNDEFINED);
        let context = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        let (mut count, mut failed) = (0, None);
        reply.int(0);
        reply.byte(SOME);
        // What is read is no longer in the subscription, and a reply has to fit into an array. So
        // the first reads are short: each takes about as many events as all before it.
        let mut most = 1;
        let told = loop {
            let told = self.0.next((most, true), &context, &mut |seq, event| {
                count += 1;
                failed = failed.take().or(write(reply, seq, &event).err());
            });
            most *= 2;
            let goes_on = matches!(told, Told::Some) && failed.is_none();
            if !goes_on || most >= BATCH || reply.bytes().len() >= ENOUGH {
                break told;
            }
        };
        // Whoever has got something asks again anyway.
        let told = if count > 0 { Told::Some } else { told };
        reply.set_first_int(count);
        reply.set_second_byte(match told {
            Told::Some => SOME,
            Told::Nothing => NOTHING,
            Told::Waits => WAITS,
            Told::Over => OVER,
        });
        failed.map_or(Ok(()), Err)
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
