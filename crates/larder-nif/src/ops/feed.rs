//! Feeds: the changes of a table, for the process that passes them on.
//!
//! ```text
//!  a writer ─▶ the engine's queue ─▶ feed_next, called by the relay ─▶ messages to the subscriber
//!      └─▶ NOTIFIER ─▶ 'larder_wake' to the relay, if it sleeps
//! ```
//!
//! A subscription is a resource, and ends when its relay ends, a process that the module
//! `larder_feed` starts for it. A writer can't send messages in all places where it writes, and
//! sending one would take as long as the write. So it passes the relay's pid to a thread of the
//! library, which sends the message.

use super::options::local_pid;
use super::single::BYTES_PER_TIMESLICE_UNIT;
use super::spec::{self, CallerContext};
use crate::call::{Call, Raise, Reply, BADARG};
use crate::layout;
use crate::resource::{Registered, ResourceRef};
use crate::sys::callback::{self, with_env};
use crate::sys::*;
use crate::tables::owners::{self, ENGINE};
use crate::tables::{self, caller_id, natural, reply_or_raise};
use crate::terms::{atoms, decode};
use larder::host::{
    EngineTable, Error, FeedEvent, FeedRead, Subscription, SubscriptionOptions, Waker,
};
use larder_matchspec::Program;
use larder_term::object::ObjectView;
use parking_lot::{Condvar, Mutex};
use std::ffi::c_void;
use std::sync::{Arc, LazyLock};

/// A subscription.
pub struct Feed {
    /// The process that may end it.
    subscriber: Pid,
    /// The process that may fetch its changes.
    relay: Pid,
    /// What its filter needs to know about the host.
    caller: CallerContext,
    /// `None` when it has ended.
    subscription: Mutex<Option<Subscription>>,
}

/// The resource type of subscriptions.
pub static FEEDS: Registered<Feed> = Registered::new();

/// The relays to be woken up, and the thread that does it.
struct Notifier {
    sleepers: Mutex<Vec<Pid>>,
    signal: Condvar,
}

/// `None` if the system has no thread for it.
static NOTIFIER: LazyLock<Option<Notifier>> = LazyLock::new(|| {
    let thread = std::thread::Builder::new().name("larder-feeds".to_owned());
    let started = thread.spawn(|| {
        if let Some(notifier) = &*NOTIFIER {
            notifier.run();
        }
    });
    started.is_ok().then(|| Notifier {
        sleepers: Mutex::default(),
        signal: Condvar::new(),
    })
});

impl Notifier {
    fn wake(&self, relay: Pid) {
        self.sleepers.lock().push(relay);
        self.signal.notify_one();
    }

    fn run(&self) {
        loop {
            // Wait without work. Any number of writers may add relays meanwhile.
            let mut sleepers = self.sleepers.lock();
            while sleepers.is_empty() {
                self.signal.wait(&mut sleepers);
            }
            // Take all of them at once, and send without the lock, so that no writer waits for a
            // message.
            let woken = std::mem::take(&mut *sleepers);
            drop(sleepers);
            for relay in woken {
                // SAFETY: a fresh environment is made, sent and freed here, on a thread of our own,
                // for which the caller's environment is null.
                unsafe {
                    let env = enif_alloc_env();
                    enif_send(std::ptr::null_mut(), &relay, env, atoms::WAKE.word());
                    enif_free_env(env);
                }
            }
        }
    }
}

/// Called by the emulator when a relay has ended.
///
/// # Safety
/// Only the emulator calls this, with a resource of `FEEDS`.
pub unsafe extern "C" fn down(
    env: *mut Env,
    object: *mut c_void,
    _pid: *mut Pid,
    _monitor: *mut Monitor,
) {
    callback::run(env, || {
        // SAFETY: resources with this callback hold a `Feed`, alive during the callback.
        let feed = unsafe { &*object.cast::<Feed>() };
        feed.end();
    });
}

impl Feed {
    fn end(&self) {
        let ended = self.subscription.lock().take();
        drop(ended);
    }
}

/// subscribe(Table, MatchSpec | all, Limit, Relay) -> Feed.
pub fn subscribe(call: &Call<'_>) -> Reply {
    let feed = open(call, |table, options| {
        table.subscribe(caller_id(call), options)
    })?;
    Ok(feed.term(call.env))
}

/// snapshot_and_subscribe(Table, MatchSpec | all, Limit, Relay) -> {Snapshot, Feed}.
pub fn snapshot_and_subscribe(call: &Call<'_>) -> Reply {
    // The owner of the snapshot is the caller. It is watched, so that the snapshot ends with it.
    owners::watch(call.env, call.self_pid());
    // The engine takes both at one instant.
    let mut snapshot = None;
    let feed = open(call, |table, options| {
        let subscribed = ENGINE.snapshot_and_subscribe(table, caller_id(call), options);
        subscribed.map(|(taken, subscription)| {
            snapshot = Some(taken);
            subscription
        })
    })?;
    let snapshot = snapshot.ok_or(BADARG)?;
    let snapshot = tables::term(call.env, &snapshot);
    Ok(call.tuple(&[snapshot, feed.term(call.env)]))
}

fn open(
    call: &Call<'_>,
    subscribe: impl FnOnce(&Arc<EngineTable>, SubscriptionOptions) -> Result<Subscription, Error>,
) -> Result<ResourceRef<Feed>, Raise> {
    let table = tables::get(call, call.args[0])?;
    reply_or_raise(call, &table, table.check_read(caller_id(call)))?;
    let filter = filter(call, call.args[1])?;
    let limit = natural(call.args[2])?;
    let relay = local_pid(call, call.args[3])?;
    let notifier = NOTIFIER.as_ref();
    let notifier = notifier.ok_or(Raise::Cause(atoms::SYSTEM_LIMIT))?;
    // A filter may ask for the process that calls, such as `self()`. It is evaluated as of now.
    let caller = match &filter {
        Some(program) => CallerContext::new(call, program)?,
        None => CallerContext::none(),
    };
    let waker: Waker = Arc::new(move || notifier.wake(relay));
    let options = SubscriptionOptions {
        limit,
        filter,
        waker,
    };
    let subscription = match with_env(call.env, || subscribe(&table, options)) {
        // The table is a snapshot, or has a structure of the studies.
        Err(Error::TableType) => {
            let is_snapshot = table.is_snapshot();
            let cause = if is_snapshot {
                atoms::IS_SNAPSHOT
            } else {
                atoms::STRUCTURE
            };
            return Err(Raise::Cause(cause));
        }
        other => reply_or_raise(call, &table, other)?,
    };
    let feed = FEEDS.make(Feed {
        subscriber: call.self_pid(),
        relay,
        caller,
        subscription: Mutex::new(Some(subscription)),
    });
    // The relay was dead already, so nobody would end the subscription.
    if !feed.monitor(call.env, &relay) {
        feed.end();
    }
    Ok(feed)
}

fn filter(call: &Call<'_>, spec: Word) -> Result<Option<Program>, Raise> {
    match spec {
        _ if spec == atoms::ALL.word() => Ok(None),
        layout::NIL => spec::nothing().map(Some),
        _ => spec::program(call, spec, None).map(Some),
    }
}

/// feed_next(Feed, Most, Sleeps) -> {some | nothing | waits | over, [{Seq, Event | [Event]}]}, in
/// reverse order.
pub fn feed_next(call: &Call<'_>) -> Reply {
    let feed = FEEDS.get(call, call.args[0]).ok_or(BADARG)?;
    // Only the relay reads. Of two readers, each would get a part of the events.
    if feed.relay != call.self_pid() {
        return Err(Raise::Cause(atoms::NOT_OWNER));
    }
    let most = natural(call.args[1])?;
    let sleeps = super::options::flag(call.args[2])?;
    // The events become terms while the engine shows them. Those of one commit are kept together.
    let mut events = Commits {
        call,
        done: layout::NIL,
        seq: 0,
        events: Vec::new(),
        count: 0,
        bytes: 0,
    };
    let read = match &mut *feed.subscription.lock() {
        None => FeedRead::Over,
        Some(subscription) => {
            let visit = &mut |seq, event: FeedEvent<'_>| events.add(seq, &event);
            subscription.next(most, sleeps, &feed.caller.context(), visit)
        }
    };
    events.end();
    // Making events takes as long as making rows. Report it to the scheduler.
    call.spent(2 * events.count + (events.bytes / BYTES_PER_TIMESLICE_UNIT) as u64);
    let state = match read {
        FeedRead::Some => atoms::SOME,
        FeedRead::Nothing => atoms::NOTHING,
        FeedRead::Waits => atoms::WAITS,
        FeedRead::Over => atoms::OVER,
    };
    Ok(call.tuple(&[state.word(), events.done]))
}

/// The events of a slice, as terms.
struct Commits<'c> {
    call: &'c Call<'c>,
    /// The complete commits.
    done: Word,
    /// The incomplete commit.
    seq: u64,
    events: Vec<Word>,
    count: u64,
    /// The number of bytes of the objects.
    bytes: usize,
}

impl Commits<'_> {
    fn add(&mut self, seq: u64, event: &FeedEvent<'_>) {
        // A new number begins another commit. The one before is complete.
        if seq != self.seq {
            self.end();
            self.seq = seq;
        }
        let bytes = &mut self.bytes;
        let mut object = |object: &ObjectView<'_>| {
            *bytes += object.key().bytes().len() + object.others_len();
            decode::object(&self.call.heap, object)
        };
        let word = match *event {
            FeedEvent::Insert(new) => self.call.tuple(&[atoms::INSERT.word(), object(new)]),
            FeedEvent::Replace(old, new) => {
                let terms = [atoms::REPLACE.word(), object(old), object(new)];
                self.call.tuple(&terms)
            }
            FeedEvent::Delete(old) => self.call.tuple(&[atoms::DELETE.word(), object(old)]),
            FeedEvent::Expire(old) => self.call.tuple(&[atoms::EXPIRE.word(), object(old)]),
            FeedEvent::Evict(old) => self.call.tuple(&[atoms::EVICT.word(), object(old)]),
            FeedEvent::Clear => atoms::CLEAR.word(),
            FeedEvent::Overflow(lost) => {
                let lost = self.call.int(lost as i64);
                self.call.tuple(&[atoms::OVERFLOW.word(), lost])
            }
            FeedEvent::Gone => atoms::GONE.word(),
        };
        self.events.push(word);
        self.count += 1;
    }

    /// Adds the commit, which is complete.
    fn end(&mut self) {
        // A commit with a single event is shown without a list.
        let events = match self.events[..] {
            [] => return,
            [one] => one,
            ref several => self.call.list(several),
        };
        self.events.clear();
        let seq = self.call.int(self.seq as i64);
        let commit = self.call.tuple(&[seq, events]);
        self.done = self.call.list_before(&[commit], self.done);
    }
}

/// unsubscribe(Feed) -> Relay. Ends the subscription.
pub fn unsubscribe(call: &Call<'_>) -> Reply {
    let feed = FEEDS.get(call, call.args[0]).ok_or(BADARG)?;
    if feed.subscriber != call.self_pid() {
        return Err(Raise::Cause(atoms::NOT_OWNER));
    }
    feed.end();
    Ok(feed.relay.pid)
}
