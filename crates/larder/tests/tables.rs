//! Tables as a whole: names, rights, owners, heirs, fixation, info, and what is left when they are
//! gone.

use larder::host::{
    Access, Bounds, CounterOp, Engine, EngineTable, Error, FixTime, Host, NewRow, NoHost, Options,
    OwnerId, Slot, TableId, TableKind,
};
use larder_term::number::Number;
use larder_term::object::{ObjectBuf, ObjectView};
use larder_term::{term, Atom, Mode, Term, TermBuf, TermRef};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// A host that notes what it is told.
#[derive(Default)]
struct Notes {
    transfers: Mutex<Vec<(TableId, OwnerId, OwnerId, String)>>,
}

impl Host for Notes {
    fn transfer(&self, table: &Arc<EngineTable>, from: OwnerId, to: OwnerId, data: &Term) {
        let note = (table.id(), from, to, data.to_string());
        self.transfers.lock().push(note);
    }
}

fn engine() -> (Engine, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    (Engine::new(notes.clone()), notes)
}

fn options(name: &str) -> Options {
    Options::new(Atom::new(name))
}

fn object(table: &EngineTable, tuple: &Term) -> ObjectBuf {
    let mut object = ObjectBuf::new();
    table.encode_object(tuple.as_ref(), &mut object).unwrap();
    object
}

fn key(table: &EngineTable, key: &Term) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.encode_key(key.as_ref(), &mut bytes);
    bytes
}

const NOW: FixTime = FixTime {
    system_ns: 1,
    monotonic_ns: 2,
};

#[test]
fn names_are_found_and_are_one_table_s() {
    let (engine, _) = engine();
    let me = engine.register();
    let name = Atom::new("names_are_found");
    let mut named = options("names_are_found");
    named.named = true;
    let t = engine.create(named.clone(), me).unwrap();
    assert_eq!(engine.find(name).unwrap().id(), t.id());
    assert_eq!(engine.all()[0].id(), t.id());
    assert_eq!(
        engine.create(named.clone(), me).err(),
        Some(Error::AlreadyExists)
    );
    let unnamed = engine.create(options("names_are_found"), me).unwrap();
    assert_eq!(engine.find(name).unwrap().id(), t.id());

    let other = Atom::new("another_name");
    assert_eq!(t.rename(me, None, name), Err(Error::AlreadyExists));
    t.rename(me, None, other).unwrap();
    assert!(engine.find(name).is_none());
    assert_eq!(engine.find(other).unwrap().name(), other);
    unnamed.rename(me, None, other).unwrap();
    assert_eq!(unnamed.name(), other);
    assert_eq!(engine.find(other).unwrap().id(), t.id());

    // Called by a name that it has no more, it isn't meant.
    assert_eq!(t.rename(me, Some(name), name), Err(Error::NoTable));
    assert_eq!(t.drop_called(me, Some(name)), Err(Error::NoTable));
    t.drop_called(me, Some(other)).unwrap();
    assert!(engine.find(other).is_none());
    assert!(engine.all().iter().all(|other| other.id() != t.id()));
    assert_eq!(t.rename(me, None, name), Err(Error::NoTable));
    assert!(engine.create(named, me).is_ok());
    assert_eq!(engine.all().len(), 2);
}

#[test]
fn rights() {
    let (engine, _) = engine();
    let (me, other) = (engine.register(), OwnerId::from_raw(77));
    for access in [Access::Public, Access::Protected, Access::Private] {
        let mut options = options("rights");
        options.access = access;
        let t = engine.create(options, me).unwrap();
        let row = object(&t, &term!({a, 1}));
        let k = key(&t, &term!(a));
        let write = if access == Access::Public {
            Ok(())
        } else {
            Err(Error::Access)
        };
        let read = if access == Access::Private {
            Err(Error::Access)
        } else {
            Ok(())
        };
        assert_eq!(t.insert(me, &row), Ok(()));
        assert_eq!(t.insert(other, &row), write);
        assert_eq!(t.check_write(other), write);
        assert_eq!(t.check_read(other), read);
        assert_eq!(t.member(other, &k).map(|_| ()), read);
        assert_eq!(t.first(other, &mut |_| ()).map(|_| ()), read);
        assert_eq!(t.delete(other, &k).map(|_| ()), write);
        assert_eq!(t.delete_all_objects(other).map(|_| ()), write);
        assert_eq!(t.safe_fix(other, NOW), read);
        assert_eq!(t.give_away(other, me), Err(Error::NotOwner));
        assert_eq!(t.set_heir(other, None), Err(Error::NotOwner));
        assert!(t.info().is_some());
        assert_eq!(t.drop_table(other), write);
        if write.is_ok() {
            // A dead table's error comes before the lack of a right.
            assert_eq!(t.insert(other, &row), Err(Error::NoTable));
            assert!(t.info().is_none());
        }
    }
}

#[test]
fn a_dead_private_table_is_no_table_for_everybody() {
    let (engine, _) = engine();
    let me = engine.register();
    let mut private = options("t");
    private.access = Access::Private;
    let t = engine.create(private, me).unwrap();
    t.drop_table(me).unwrap();
    assert_eq!(t.check_read(OwnerId::from_raw(5)), Err(Error::NoTable));
    assert_eq!(t.member(OwnerId::from_raw(5), b"x"), Err(Error::NoTable));
}

#[test]
fn bad_options() {
    let (engine, _) = engine();
    let me = engine.register();
    let mut zero = options("t");
    zero.keypos = 0;
    assert!(matches!(engine.create(zero, me), Err(Error::BadOption(_))));
    let mut odd = options("t");
    odd.structure = "hashbrownies".into();
    match engine.create(odd, me) {
        Err(Error::UnknownStructure(text)) => assert!(text.contains("default"), "{text}"),
        other => panic!("{other:?}"),
    }
    let nobody = OwnerId::from_raw(4711);
    assert_eq!(
        engine.create(options("t"), nobody).err(),
        Some(Error::NoOwner)
    );
    assert!(engine.all().is_empty());
}

#[test]
fn tables_end_with_their_owner_or_go_to_the_heir() {
    let (engine, notes) = engine();
    let (a, b, c) = (engine.register(), engine.register(), engine.register());
    let plain = engine.create(options("plain"), a).unwrap();
    let mut with_heir = options("with_heir");
    with_heir.heir = Some((b, term!({hello, 1})));
    let inherited = engine.create(with_heir.clone(), a).unwrap();
    with_heir.heir = Some((c, term!(x)));
    let orphan = engine.create(with_heir, a).unwrap();
    engine.down(c);
    assert_eq!(orphan.info().unwrap().heir, None);
    engine.down(a);
    assert!(!plain.is_alive());
    assert!(!orphan.is_alive());
    assert_eq!(inherited.owner(), b);
    let told = notes.transfers.lock().clone();
    assert_eq!(told, [(inherited.id(), a, b, "{hello,1}".to_owned())]);
    assert_eq!(engine.owned_by(b).len(), 1);
    // The heir is the owner now, and has no other heir.
    engine.down(b);
    assert!(!inherited.is_alive());
    assert!(engine.all().is_empty());
    engine.down(b);
}

#[test]
fn give_away() {
    let (engine, notes) = engine();
    let (a, b, gone) = (engine.register(), engine.register(), engine.register());
    engine.down(gone);
    let t = engine.create(options("t"), a).unwrap();
    assert_eq!(t.give_away(a, a), Err(Error::AlreadyOwner));
    assert_eq!(t.give_away(a, gone), Err(Error::NoOwner));
    t.give_away(a, b).unwrap();
    assert_eq!(t.owner(), b);
    assert_eq!(t.give_away(a, b), Err(Error::NotOwner));
    engine.down(a);
    assert!(t.is_alive());
    engine.down(b);
    assert!(!t.is_alive());
    assert!(notes.transfers.lock().is_empty());
    assert_eq!(t.give_away(b, a), Err(Error::NoTable));
}

#[test]
fn an_owner_with_many_tables_ends_quickly() {
    let (engine, _) = engine();
    let me = engine.register();
    let mut named = options("last_of_many");
    let kept = Arc::new(());
    for _ in 0..3000 {
        let table = engine.create(options("t"), me).unwrap();
        let kept = Arc::clone(&kept);
        table.with_beside(|beside| *beside = Some(Box::new(kept)));
    }
    named.named = true;
    engine.create(named.clone(), me).unwrap();
    engine.down(me);
    // Names are free at once.
    let next = engine.register();
    assert!(engine.create(named, next).is_ok());
    assert!(engine.reaper_idle(Duration::from_secs(20)));
    assert_eq!(engine.all().len(), 1);
    // What was kept beside the tables went with them.
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// The heir hears before the end of the owner is over, however many tables without an heir there
/// are.
#[test]
fn heirs_come_before_the_many() {
    let (engine, notes) = engine();
    let (me, heir) = (engine.register(), engine.register());
    for _ in 0..1000 {
        engine.create(options("t"), me).unwrap();
    }
    let mut last = options("last");
    last.heir = Some((heir, term!(data)));
    let last = engine.create(last, me).unwrap();
    engine.down(me);
    let told = notes.transfers.lock().clone();
    assert_eq!(told, [(last.id(), me, heir, "data".to_owned())]);
}

/// A host that holds up the reaper until it may go on.
struct Holds(Mutex<Option<Receiver<()>>>, ThreadId);

impl Host for Holds {
    fn transfer(&self, _: &Arc<EngineTable>, _: OwnerId, _: OwnerId, _: &Term) {
        if thread::current().id() != self.1 {
            if let Some(may) = self.0.lock().take() {
                let _ = may.recv_timeout(Duration::from_secs(60));
            }
        }
    }
}

/// Occupies the reaper until the sender is dropped.
fn hold_the_reaper() -> Sender<()> {
    let (go_on, may) = channel();
    let holds = Holds(Mutex::new(Some(may)), thread::current().id());
    let engine = Engine::new(Arc::new(holds));
    let (owner, heir) = (engine.register(), engine.register());
    let mut heirloom = options("heirloom");
    heirloom.heir = Some((heir, term!(data)));
    for _ in 0..=256 {
        engine.create(heirloom.clone(), owner).unwrap();
    }
    engine.down(owner);
    go_on
}

/// The end of an owner takes as long as that of 256 tables and fixations. What is left of it can be
/// had at once for one table.
#[test]
fn the_end_of_an_owner_has_a_bound() {
    const MANY: usize = 1000;
    let (engine, notes) = engine();
    let (me, other, heir) = (engine.register(), engine.register(), engine.register());
    let mut public = options("public");
    public.access = Access::Public;
    let tables = |options: &Options, owner| -> Vec<_> {
        (0..MANY)
            .map(|_| engine.create(options.clone(), owner).unwrap())
            .collect()
    };
    let (mine, fixed) = (tables(&public, me), tables(&public, other));
    fixed.iter().for_each(|t| t.safe_fix(me, NOW).unwrap());
    // The heirs of tables are set when these have been in the record for long.
    for t in &mine[MANY - 300..] {
        t.set_heir(me, Some((heir, term!(data)))).unwrap();
    }
    mine[MANY - 1].set_heir(me, None).unwrap();
    let held = hold_the_reaper();
    engine.down(me);
    let left = |tables: &[Arc<EngineTable>]| tables.iter().filter(|t| t.owner() == me).count();
    assert!(mine[..MANY - 300].iter().all(|t| t.is_alive()));
    assert_eq!(left(&mine), MANY - 256);
    assert_eq!(notes.transfers.lock().len(), 256);
    let still = |t: &&Arc<EngineTable>| t.info().unwrap().fixed;
    assert_eq!(fixed.iter().filter(still).count(), MANY - 256);
    assert_eq!(engine.all().len(), 2 * MANY);
    // Those that somebody meets.
    let (t, f) = (&mine[0], fixed.iter().find(still).unwrap());
    engine.settle(t);
    engine.settle(f);
    assert!(!t.is_alive() && !f.info().unwrap().fixed);
    let t = mine[MANY - 300..MANY - 1].iter().find(|t| t.owner() == me);
    let t = t.unwrap();
    engine.settle(t);
    assert_eq!((t.owner(), notes.transfers.lock().len()), (heir, 257));
    drop(held);
    assert!(engine.reaper_idle(Duration::from_secs(60)));
    assert_eq!(
        (left(&mine), notes.transfers.lock().len()),
        (MANY - 299, 299)
    );
    assert!(!fixed.iter().any(|t| t.info().unwrap().fixed));
    assert!(mine[..MANY - 300].iter().all(|t| !t.is_alive()));
    assert_eq!(engine.all().len(), MANY + 299);
}

#[test]
fn all_tables_if_there_are_few() {
    let (engine, _) = engine();
    let me = engine.register();
    for _ in 0..9 {
        engine.create(options("t"), me).unwrap();
    }
    // The owner counts, too.
    assert_eq!(engine.all_of(10).map(|all| all.len()), Some(9));
    assert!(engine.all_of(9).is_none());
}

#[test]
fn a_number_can_be_an_owner_again() {
    let (engine, _) = engine();
    let id = engine.register_as(5);
    assert_eq!(engine.register_as(5), id);
    let t = engine.create(options("t"), id).unwrap();
    engine.down(id);
    assert!(!engine.is_alive(id));
    assert!(!t.is_alive());
    engine.register_as(5);
    assert!(engine.is_alive(id));
    assert!(engine.owned_by(id).is_empty());
    assert!(!engine.is_alive(engine.register_as(0)));
}

#[test]
fn fixing_is_counted_and_ends_with_the_owner() {
    let (engine, _) = engine();
    let (a, b) = (engine.register(), engine.register());
    let mut public = options("t");
    public.access = Access::Public;
    let t = engine.create(public, a).unwrap();
    assert_eq!(t.info().unwrap().safe_fixed, None);
    t.safe_fix(a, NOW).unwrap();
    let later = FixTime {
        system_ns: 9,
        monotonic_ns: 9,
    };
    t.safe_fix(b, later).unwrap();
    t.safe_fix(b, later).unwrap();
    let fixed = t.info().unwrap().safe_fixed.unwrap();
    assert_eq!(fixed.since, NOW);
    assert_eq!(fixed.by, [(a, 1), (b, 2)]);
    t.safe_unfix(a).unwrap();
    t.safe_unfix(a).unwrap();
    t.safe_unfix(b).unwrap();
    assert_eq!(t.info().unwrap().safe_fixed.unwrap().by, [(b, 1)]);
    engine.down(b);
    assert!(!t.info().unwrap().fixed);
    // One that owns nothing can fix a table too.
    let stranger = OwnerId::from_raw(99);
    t.safe_fix(stranger, NOW).unwrap();
    assert!(t.info().unwrap().fixed);
    engine.down(stranger);
    assert!(!t.info().unwrap().fixed);
    t.safe_fix(b, NOW).unwrap();
    t.drop_table(a).unwrap();
    engine.down(b);
}

/// All keys, by first and next.
fn walk(t: &EngineTable, who: OwnerId, mut each: impl FnMut(&Term)) -> Vec<Term> {
    let mut keys = Vec::new();
    let mut at: Option<Term> = None;
    t.first(who, &mut |k| at = Some(Term::from(k))).unwrap();
    while let Some(term) = at.take() {
        each(&term);
        let mut next = None;
        t.next(who, &key(t, &term), &mut |k: TermRef<'_>| {
            next = Some(Term::from(k))
        })
        .unwrap();
        keys.push(term);
        at = next;
    }
    keys
}

#[test]
fn next_goes_on_from_a_key_deleted_while_fixed() {
    let (engine, _) = engine();
    let me = engine.register();
    for kind in [TableKind::Set, TableKind::Bag, TableKind::DuplicateBag] {
        let mut o = options("t");
        o.kind = kind;
        let t = engine.create(o, me).unwrap();
        for i in 0..300i64 {
            t.insert(me, &object(&t, &term!({(i), x}))).unwrap();
        }
        let gone = key(&t, &term!(5));
        t.delete(me, &gone).unwrap();
        assert_eq!(t.next(me, &gone, &mut |_| ()), Err(Error::BadKey));
        t.safe_fix(me, NOW).unwrap();
        let seen = walk(&t, me, |k| {
            t.delete(me, &key(&t, k)).unwrap();
        });
        assert_eq!(seen.len(), 299);
        assert_eq!(t.size(), 0);
        assert_eq!(t.next(me, &gone, &mut |_| ()), Err(Error::BadKey));
        // All at once.
        for i in 0..300i64 {
            t.insert(me, &object(&t, &term!({(i), x}))).unwrap();
        }
        let mut n = 0;
        walk(&t, me, |_| {
            n += 1;
            if n == 10 {
                assert_eq!(t.delete_all_objects(me).unwrap(), 300);
            }
        });
        assert_eq!(n, 10);
        t.safe_unfix(me).unwrap();
        let k = key(&t, &term!(7));
        assert_eq!(t.next(me, &k, &mut |_| ()), Err(Error::BadKey));
    }
}

#[test]
fn slots_are_a_partition() {
    let (engine, _) = engine();
    let me = engine.register();
    for (kind, ttl) in [
        (TableKind::Set, None),
        (TableKind::OrderedSet, None),
        // With a time to live, the table answers no queries of ranks.
        (TableKind::OrderedSet, Some(u64::from(u32::MAX))),
        (TableKind::Bag, None),
        (TableKind::DuplicateBag, None),
    ] {
        for n in [0usize, 1, 2, 5, 100, 1000] {
            let mut o = options("t");
            o.kind = kind;
            o.bounds = ttl.map(|ttl| {
                let ttl = Some(ttl);
                Box::new(Bounds {
                    ttl,
                    ..Bounds::default()
                })
            });
            let t = engine.create(o, me).unwrap();
            for i in 0..n as i64 {
                t.insert(me, &object(&t, &term!({(i), x}))).unwrap();
            }
            let mut seen = HashSet::new();
            let mut slot = 0;
            loop {
                let mut here = 0;
                let found = t.slot(me, slot, &mut |o| {
                    here += 1;
                    // Slot i of an ordered_set is the i-th object.
                    let expected = term!((slot as i64)).to_string();
                    assert!(!kind.is_ordered() || o.key().to_string() == expected);
                    assert!(seen.insert(o.key().to_string()));
                });
                match found.unwrap() {
                    Slot::Objects(n) => assert_eq!(n, here),
                    Slot::End => break,
                }
                slot += 1;
            }
            assert_eq!(seen.len(), n);
            assert_eq!(t.slot(me, slot + 1, &mut |_| ()), Err(Error::BadSlot));
        }
    }
}

#[test]
fn info_tells_what_was_asked_for() {
    let (engine, _) = engine();
    let me = engine.register();
    let heir = engine.register();
    let mut o = options("info");
    o.kind = TableKind::OrderedSet;
    o.keypos = 2;
    o.compressed = true;
    o.decentralized_counters = true;
    o.heir = Some((heir, term!(data)));
    let t = engine.create(o, me).unwrap();
    let empty = t.info().unwrap().memory;
    for i in 0..100i64 {
        t.insert(me, &object(&t, &term!({x, (i)}))).unwrap();
    }
    let info = t.info().unwrap();
    assert_eq!(
        (info.kind, info.keypos, info.size),
        (TableKind::OrderedSet, 2, 100)
    );
    assert_eq!((info.owner, info.heir), (me, Some(heir)));
    assert!(
        info.compressed && info.decentralized_counters && !info.named && !info.read_concurrency
    );
    assert!(info.memory > empty);
    assert_eq!(info.structure, "default");
    t.set_heir(me, None).unwrap();
    assert_eq!(t.info().unwrap().heir, None);
}

#[test]
fn an_empty_table_takes_a_kilobyte_at_most() {
    let engine = Engine::new(Arc::new(NoHost));
    let me = engine.register();
    for kind in [
        TableKind::Set,
        TableKind::OrderedSet,
        TableKind::Bag,
        TableKind::DuplicateBag,
    ] {
        let mut o = options("t");
        o.kind = kind;
        let memory = engine.create(o, me).unwrap().memory();
        // A bag is a set that also knows its value trees, its limits and how to hash an object.
        let most = if kind.is_unique() { 1024 } else { 1024 + 64 };
        assert!(memory <= most, "{kind:?}: {memory}");
    }
}

#[test]
fn compressed_tables_are_smaller() {
    let engine = Engine::new(Arc::new(NoHost));
    let me = engine.register();
    let memory = |compressed| {
        let mut o = options("t");
        o.compressed = compressed;
        let t = engine.create(o, me).unwrap();
        let text = "the same words again and again, ".repeat(20);
        let list: Vec<Term> = text
            .chars()
            .map(|c| Term::from(i64::from(u32::from(c))))
            .collect();
        for i in 0..200i64 {
            let row = term!({(i), (Term::list(list.clone()))});
            t.insert(me, &object(&t, &row)).unwrap();
        }
        t.memory()
    };
    let (plain, compressed) = (memory(false), memory(true));
    assert!(compressed * 3 < plain, "{compressed} {plain}");
}

/// Threads that count from a default under the same keys: one of them inserts it, and no sum is
/// lost.
#[test]
fn defaults_that_come_at_once_lose_no_sum() {
    const KEYS: i64 = 300;
    let (engine, _) = engine();
    for kind in [TableKind::Set, TableKind::OrderedSet] {
        let me = engine.register();
        let options = Options {
            kind,
            access: Access::Public,
            ..options("sums")
        };
        let table = engine.create(options, me).unwrap();
        std::thread::scope(|scope| {
            for step in [1, 100] {
                let table = &table;
                scope.spawn(move || {
                    for n in 0..KEYS {
                        let term = Term::int(n);
                        let row = Term::tuple([term.clone(), Term::int(7), term!(x)]);
                        let default = NewRow {
                            key: term.as_ref(),
                            tuple: row.as_ref(),
                        };
                        let mut sum = None;
                        let ops = [CounterOp::new(2, Number::Int(step))];
                        let key = key(table, &term);
                        table
                            .update_counter(me, &key, &ops, Some(default), &mut sum)
                            .unwrap();
                        let elements = [(3, term.as_ref())];
                        let done = table.update_element(me, &key, &elements, Some(default));
                        assert_eq!(done, Ok(true));
                    }
                });
            }
        });
        for n in 0..KEYS {
            let mut found = Vec::new();
            let mut visit = |object: &ObjectView<'_>| {
                found.push(
                    (2..=3)
                        .map(|at| object.element(at).map(Term::from))
                        .collect::<Vec<_>>(),
                );
            };
            table
                .lookup(me, &key(&table, &Term::int(n)), &mut visit)
                .unwrap();
            assert_eq!(found, [[Some(Term::int(108)), Some(Term::int(n))]]);
        }
    }
}

/// A default's binary that only the call has encoded is counted by the table before the call gives
/// its own count back.
#[test]
fn a_default_brings_its_binary() {
    let (engine, _) = engine();
    let me = engine.register();
    let table = engine.create(options("defaults"), me).unwrap();
    let whole = |n: u8| {
        [
            Term::int(i64::from(n)),
            Term::binary(&[n; 200]),
            term!(last),
        ]
    };
    for n in 0..100 {
        let elements = whole(n);
        let mut row = TermBuf::new(Mode::Inline);
        row.encode(|enc| {
            enc.begin_tuple(3);
            elements
                .iter()
                .for_each(|element| enc.term(element.as_ref()));
        });
        let default = NewRow {
            key: elements[0].as_ref(),
            tuple: row.term().unwrap(),
        };
        let (last, key) = (term!(last), key(&table, &elements[0]));
        let written = table.update_element(me, &key, &[(3, last.as_ref())], Some(default));
        assert_eq!(written, Ok(true));
    }
    for n in 0..100 {
        let elements = whole(n);
        let mut found = Vec::new();
        let mut visit = |object: &ObjectView<'_>| found.push(object.element(2).map(Term::from));
        table
            .lookup(me, &key(&table, &elements[0]), &mut visit)
            .unwrap();
        assert_eq!(found, [Some(elements[1].clone())]);
    }
}
