//! Random operations on typed tables of both kinds and on maps of the standard library.

use larder::prelude::*;
use larder::typed::{Hashed, Order, Ordered};
use larder::{Error, TimeLeft};
use larder_testing::environment::{seed, times};
use larder_testing::mix;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Bound;
use std::time::Duration;

/// A stream of random numbers.
struct Chance(u64);

/// Keys are those of the numbers below this one.
const MOST: u64 = 240;

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = mix(self.0.wrapping_add(0x9E37_79B9_7F4A_7C15));
        (self.0 >> 16) % n
    }

    fn key<K: FromNumber>(&mut self) -> K {
        K::of(self.below(MOST))
    }
}

/// A key that can be had from a number, in its order.
trait FromNumber: larder::typed::OrderedKey + Ord + Clone + Debug {
    fn of(n: u64) -> Self;
}

impl FromNumber for u64 {
    fn of(n: u64) -> Self {
        n * n
    }
}

impl FromNumber for String {
    fn of(n: u64) -> Self {
        format!(
            "{:03}{}",
            n,
            "tail".repeat((n % 9) as usize * (n % 7) as usize)
        )
    }
}

impl FromNumber for (Option<i16>, bool, Vec<u8>) {
    fn of(n: u64) -> Self {
        let first = (n > 20).then(|| n as i16 / 5 - 10);
        (first, n.is_multiple_of(2), vec![n as u8; (n % 4) as usize])
    }
}

/// Values, short ones and such as lie outside their rows.
fn value(n: u64) -> (u64, String) {
    (n, "value".repeat((n % 5 * n % 40) as usize))
}

type Value = (u64, String);
type Oracle<K> = BTreeMap<K, Value>;

fn bounds<K: FromNumber>(chance: &mut Chance) -> (Bound<K>, Bound<K>) {
    let (a, b) = (chance.key(), chance.key());
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    // A `BTreeMap` panics at a range of nothing between two excluded bounds.
    match chance.below(5) {
        0 => (Bound::Included(low), Bound::Excluded(high)),
        1 => (Bound::Unbounded, Bound::Included(high)),
        2 if low != high => (Bound::Excluded(low), Bound::Excluded(high)),
        3 => (Bound::Excluded(low), Bound::Unbounded),
        _ => (Bound::Included(low), Bound::Included(high)),
    }
}

/// A walk from both ends, in random turns, is that of the oracle.
fn compare_range<K: FromNumber>(
    table: &Typed<K, Value>,
    oracle: &Oracle<K>,
    chance: &mut Chance,
) -> Result<(), Error> {
    let (low, high) = bounds(chance);
    let mut rows = table.range((low.as_ref(), high.as_ref()))?;
    let mut expected = oracle.range((low, high));
    let ends = chance.below(4);
    loop {
        let from_back = match ends {
            0 => false,
            1 => true,
            _ => chance.below(2) == 0,
        };
        let (row, expected) = match from_back {
            true => (rows.next_back(), expected.next_back()),
            false => (rows.next(), expected.next()),
        };
        let row = row.transpose()?;
        assert_eq!(row.as_ref().map(|(k, v)| (k, v)), expected);
        if row.is_none() {
            break;
        }
        // Some are given up on the way.
        if ends == 3 && chance.below(20) == 0 {
            return Ok(());
        }
    }
    // Nothing comes after the end, from either side.
    assert!(rows.next().is_none() && rows.next_back().is_none());
    Ok(())
}

fn owned<K: Clone>(row: Option<(&K, &Value)>) -> Option<(K, Value)> {
    row.map(|(key, value)| (key.clone(), value.clone()))
}

/// What the kinds of tables do differently.
trait Kind: Order + Sized {
    /// Reads what depends on the order; all rows, if there is none.
    fn compare_order<K: FromNumber>(
        table: &Typed<K, Value, Self>,
        oracle: &Oracle<K>,
        chance: &mut Chance,
    ) -> Result<(), Error>;

    /// Ranks, of tables that have any.
    fn compare_ranks<K: FromNumber>(
        table: &Typed<K, Value, Self>,
        oracle: &Oracle<K>,
        chance: &mut Chance,
    ) -> Result<(), Error>;

    /// Removes a row at an end, if there is one.
    fn pop<K: FromNumber>(
        table: &Typed<K, Value, Self>,
        oracle: &mut Oracle<K>,
        first: bool,
    ) -> Result<(), Error>;
}

impl Kind for Ordered {
    fn compare_order<K: FromNumber>(
        table: &Typed<K, Value>,
        oracle: &Oracle<K>,
        chance: &mut Chance,
    ) -> Result<(), Error> {
        assert_eq!(table.first()?, owned(oracle.first_key_value()));
        assert_eq!(table.last()?, owned(oracle.last_key_value()));
        compare_range(table, oracle, chance)
    }

    fn compare_ranks<K: FromNumber>(
        table: &Typed<K, Value>,
        oracle: &Oracle<K>,
        chance: &mut Chance,
    ) -> Result<(), Error> {
        compare_ranks(table, oracle, chance)
    }

    fn pop<K: FromNumber>(
        table: &Typed<K, Value>,
        oracle: &mut Oracle<K>,
        first: bool,
    ) -> Result<(), Error> {
        match first {
            true => assert_eq!(table.pop_first()?, oracle.pop_first()),
            false => assert_eq!(table.pop_last()?, oracle.pop_last()),
        }
        Ok(())
    }
}

impl Kind for Hashed {
    fn compare_order<K: FromNumber>(
        table: &TypedHash<K, Value>,
        oracle: &Oracle<K>,
        chance: &mut Chance,
    ) -> Result<(), Error> {
        // Each row is there once; some walks are given up on the way.
        let most = match chance.below(4) {
            0 => chance.below(1 + oracle.len() as u64) as usize,
            _ => usize::MAX,
        };
        let mut rows = table.iter();
        let found: Vec<_> = rows.by_ref().take(most).collect::<Result<_, _>>()?;
        assert_eq!(found.len(), most.min(oracle.len()));
        // Nothing comes after the end.
        assert!(most < usize::MAX || rows.next().is_none());
        let seen: Oracle<K> = found.iter().cloned().collect();
        assert_eq!(seen.len(), found.len());
        for (key, value) in &seen {
            assert_eq!(oracle.get(key), Some(value));
        }
        Ok(())
    }

    fn compare_ranks<K: FromNumber>(
        table: &TypedHash<K, Value>,
        _: &Oracle<K>,
        _: &mut Chance,
    ) -> Result<(), Error> {
        assert_eq!(table.table().nth(1), Err(Error::Unranked));
        Ok(())
    }

    fn pop<K: FromNumber>(
        _: &TypedHash<K, Value>,
        _: &mut Oracle<K>,
        _: bool,
    ) -> Result<(), Error> {
        Ok(())
    }
}

/// All that reads.
fn compare<K: FromNumber, O: Kind>(
    table: &Typed<K, Value, O>,
    oracle: &Oracle<K>,
    chance: &mut Chance,
    is_counted: bool,
) -> Result<(), Error> {
    let key = chance.key();
    assert_eq!(table.get(&key)?, oracle.get(&key).cloned());
    let len = table.with(&key, |view| view.field::<&str>(1).map(str::len))?;
    assert_eq!(
        len.transpose()?,
        oracle.get(&key).map(|value| value.1.len())
    );
    assert_eq!(table.contains_key(&key)?, oracle.contains_key(&key));
    // Rows that have expired count until they are removed.
    if is_counted {
        assert_eq!(table.len(), oracle.len());
        assert_eq!(table.is_empty(), oracle.is_empty());
    }
    assert!(table.len() >= oracle.len());
    let keys: Vec<K> = (0..chance.below(70)).map(|_| chance.key()).collect();
    let values: Vec<_> = keys.iter().map(|key| oracle.get(key).cloned()).collect();
    assert_eq!(table.get_many(&keys)?, values);
    O::compare_order(table, oracle, chance)
}

fn compare_ranks<K: FromNumber>(
    table: &Typed<K, Value>,
    oracle: &Oracle<K>,
    chance: &mut Chance,
) -> Result<(), Error> {
    let key = chance.key();
    let rank = oracle.range(..&key).count() as u64 + 1;
    assert_eq!(table.rank(&key)?, oracle.contains_key(&key).then_some(rank));
    let (a, b) = (chance.key(), chance.key());
    let between = oracle.keys().filter(|key| a <= **key && **key < b).count();
    assert_eq!(table.count(&a, &b)?, between as u64);
    let n = chance.below(MOST) as usize;
    assert_eq!(table.nth(n as i64 + 1)?, owned(oracle.iter().nth(n)));
    assert_eq!(table.nth(-1 - n as i64)?, owned(oracle.iter().nth_back(n)));
    let rows = oracle.iter().skip(n).take(9);
    let rows: Vec<_> = rows
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    assert_eq!(table.slice(n as i64 + 1, 9)?, rows);
    Ok(())
}

const HOUR: Duration = Duration::from_secs(3600);

/// `None` where rows have no times: a table has no bounds.
fn is_bounded<R>(result: Result<R, Error>) -> Result<Option<R>, Error> {
    match result {
        Err(Error::Unbounded) => Ok(None),
        other => other.map(Some),
    }
}

fn is_timed(left: TimeLeft) -> bool {
    matches!(left, TimeLeft::Ms(1..))
}

/// One write, whose answer is the oracle's.
fn write<K: FromNumber, O: Kind>(
    table: &Typed<K, Value, O>,
    oracle: &mut Oracle<K>,
    chance: &mut Chance,
) -> Result<(), Error> {
    let (key, new) = (chance.key::<K>(), value(chance.below(1000)));
    match chance.below(25) {
        0..6 => assert_eq!(
            table.insert(key.clone(), new.clone())?,
            oracle.insert(key, new)
        ),
        6 => {
            table.put(&key, &new)?;
            oracle.insert(key, new);
        }
        7..10 => assert_eq!(table.remove(&key)?, oracle.remove(&key)),
        10 => {
            let rows = (0..chance.below(40)).map(|_| (chance.key(), value(chance.below(99))));
            let rows: Vec<_> = rows.collect();
            table.extend(rows.clone())?;
            oracle.extend(rows);
        }
        11 => O::pop(table, oracle, true)?,
        12 => O::pop(table, oracle, false)?,
        13 | 14 => {
            let change = |old: Option<Value>| match old {
                Some((n, _)) if n % 3 == 0 => None,
                Some((n, text)) => Some((n + 1, text)),
                None => Some(new.clone()),
            };
            let made = change(oracle.remove(&key));
            assert_eq!(table.compute(&key, change)?, made);
            oracle.extend(made.map(|made| (key, made)));
        }
        15 | 16 => {
            // Half of the time what is expected is there.
            let there = oracle.get(&key).cloned();
            let current = if chance.below(2) == 0 {
                there.clone()
            } else {
                Some(new.clone())
            };
            let next = (chance.below(3) > 0).then_some(new);
            let answer = table.compare_exchange(&key, current.as_ref(), next.as_ref())?;
            if current == there {
                assert_eq!(answer, Ok(there));
                oracle.remove(&key);
                oracle.extend(next.map(|next| (key, next)));
            } else {
                assert_eq!(answer, Err(there));
            }
        }
        which @ 17..20 => write_by_entry(which, table, oracle, key, new)?,
        20 if chance.below(8) == 0 => {
            let keep = |n: u64| n % 4 != 1;
            let before = oracle.len();
            oracle.retain(|_, v| keep(v.0));
            assert_eq!(table.retain(|_, v| keep(v.0))?, before - oracle.len());
        }
        21 if chance.below(40) == 0 => {
            table.clear()?;
            oracle.clear();
        }
        which @ 22..25 => write_time(which, table, oracle, key, new, chance)?,
        _ => {}
    }
    Ok(())
}

/// One write by an entry.
fn write_by_entry<K: FromNumber, O: Order>(
    which: u64,
    table: &Typed<K, Value, O>,
    oracle: &mut Oracle<K>,
    key: K,
    new: Value,
) -> Result<(), Error> {
    match which {
        17 => {
            let entry = table
                .entry(key.clone())
                .and_modify(|v| v.0 += 1)
                .and_modify(|v| v.0 *= 2);
            let expected = oracle.entry(key).and_modify(|v| v.0 = (v.0 + 1) * 2);
            assert_eq!(entry.or_insert(new.clone())?, *expected.or_insert(new));
        }
        18 => {
            let made = table.entry(key.clone()).or_default()?;
            assert_eq!(made, *oracle.entry(key).or_default());
        }
        _ => {
            let made = table
                .entry(key.clone())
                .and_modify(|v| v.1.clear())
                .or_nothing()?;
            let expected = oracle.get_mut(&key).map(|v| {
                v.1.clear();
                v.clone()
            });
            assert_eq!(made, expected);
        }
    }
    Ok(())
}

/// One write that gives or takes a time. Times are for tables with bounds. Nothing expires by
/// itself here.
fn write_time<K: FromNumber, O: Order>(
    which: u64,
    table: &Typed<K, Value, O>,
    oracle: &mut Oracle<K>,
    key: K,
    new: Value,
    chance: &mut Chance,
) -> Result<(), Error> {
    match which {
        22 => {
            let ttl = (chance.below(2) == 0).then_some(HOUR);
            if is_bounded(table.put_with(&key, &new, ttl))?.is_some() {
                oracle.insert(key.clone(), new);
                assert_eq!(is_timed(table.time_left(&key)?), ttl.is_some());
            }
        }
        23 => {
            if let Some(found) = is_bounded(table.expire(&key, Some(Duration::ZERO)))? {
                assert_eq!(found, oracle.remove(&key).is_some());
                // A transaction still has it: the lifetime begins at the commit.
                if table.contains_key(&key)? {
                    assert_eq!(table.time_left(&key)?, TimeLeft::Ms(0));
                    table.remove(&key)?;
                }
            }
        }
        _ => {
            if let Some(found) = is_bounded(table.expire(&key, None))? {
                assert_eq!(found, oracle.contains_key(&key));
                assert!(!is_timed(table.time_left(&key)?));
            }
        }
    }
    Ok(())
}

/// A snapshot can be read only, whatever would be written.
fn refuses_writes<K: FromNumber, O: Order>(snapshot: &Typed<K, Value, O>) -> Result<(), Error> {
    let read_only = |result: Result<(), Error>| assert_eq!(result, Err(Error::ReadOnly));
    let (key, new) = (|| K::of(1), || value(1));
    read_only(snapshot.insert(key(), new()).map(drop));
    read_only(snapshot.put(&key(), &new()));
    read_only(snapshot.extend([(key(), new())]));
    read_only(snapshot.remove(&key()).map(drop));
    read_only(snapshot.compute(&key(), |_| Some(new())).map(drop));
    let there = snapshot.get(&key())?;
    let exchanged = snapshot.compare_exchange(&key(), there.as_ref(), Some(&new()));
    read_only(exchanged.map(drop));
    let entry = snapshot.entry(key()).and_modify(|value| value.0 += 1);
    read_only(entry.or_insert_with(new).map(drop));
    read_only(snapshot.clear().map(drop));
    read_only(snapshot.put_with(&key(), &new(), None));
    read_only(snapshot.expire(&key(), None).map(drop));
    if !snapshot.is_empty() {
        read_only(snapshot.retain(|_, _| false).map(drop));
    }
    Ok(())
}

/// Writes and reads, with snapshots that stay what they were, and transactions.
fn run<K: FromNumber, O: Kind>(
    make: impl Fn(&Larder) -> Result<Typed<K, Value, O>, Error>,
    ranked: bool,
) -> Result<(), Error> {
    let larder = Larder::new();
    let (table, mut oracle) = (make(&larder)?, Oracle::new());
    let mut snapshots = Vec::new();
    let mut chance = Chance(seed(20_261_126));
    for step in 0..times(700) {
        write(&table, &mut oracle, &mut chance)?;
        compare(&table, &oracle, &mut chance, ranked)?;
        if ranked {
            O::compare_ranks(&table, &oracle, &mut chance)?;
        }
        if step % 50 == 0 {
            snapshots.push((table.snapshot()?, oracle.clone()));
        }
        if snapshots.len() > 3 {
            snapshots.remove(chance.below(3) as usize);
        }
        for (snapshot, oracle) in &snapshots {
            compare(snapshot, oracle, &mut chance, ranked)?;
            refuses_writes(snapshot)?;
        }
        if step % 20 == 0 {
            let fails = chance.below(3) == 0;
            let (mut after, from) = (oracle.clone(), chance.0);
            let result = table.transaction(|view| {
                after.clone_from(&oracle);
                let mut chance = Chance(from);
                for _ in 0..8 {
                    write(view, &mut after, &mut chance)?;
                    compare(view, &after, &mut chance, ranked)?;
                }
                if fails {
                    Err(Error::BadKey)
                } else {
                    Ok(())
                }
            });
            if fails {
                assert_eq!(result, Err(Error::BadKey));
            } else {
                result?;
                oracle = after;
            }
            chance.below(2);
        }
    }
    Ok(())
}

#[test]
fn integers() -> Result<(), Error> {
    run::<u64, _>(|larder| larder.typed("integers"), true)?;
    run::<u64, _>(|larder| larder.typed_hash("hashed integers"), true)
}

#[test]
fn texts() -> Result<(), Error> {
    run::<String, _>(|larder| larder.typed("texts"), true)?;
    run::<String, _>(|larder| larder.typed_hash("hashed texts"), true)
}

#[test]
fn tuples() -> Result<(), Error> {
    // Keys of these are not in the order of their numbers.
    type Tuple = (Option<i16>, bool, Vec<u8>);
    run::<Tuple, _>(|larder| larder.typed("tuples"), true)?;
    run::<Tuple, _>(|larder| larder.typed_hash("hashed tuples"), true)
}

#[test]
fn compressed() -> Result<(), Error> {
    let table = |larder: &Larder| larder.table("compressed").compressed();
    run::<u64, _>(|larder| table(larder).typed(), true)?;
    run::<u64, _>(|larder| table(larder).typed_hash(), true)
}

#[test]
fn bounded() -> Result<(), Error> {
    let table = |larder: &Larder| larder.table("bounded").ttl(HOUR).max_size(1 << 20);
    run::<String, _>(|larder| table(larder).typed(), false)?;
    run::<String, _>(|larder| table(larder).typed_hash(), false)
}

#[test]
fn with_an_index() -> Result<(), Error> {
    use larder::api::Index;
    let first = || Index::expression("number", "{element, 1, {element, 2, '$_'}}");
    let table = |larder: &Larder| larder.table("indexed").index(first());
    run::<u64, _>(|larder| table(larder).typed(), true)?;
    run::<u64, _>(|larder| table(larder).typed_hash(), true)
}

/// A table that grows and shrinks by many rows at a time has those of the oracle, and so has a
/// snapshot of each of its sizes.
fn grow_and_shrink<K: FromNumber + Hash, O: Order>(
    table: &Typed<K, Value, O>,
) -> Result<(), Error> {
    const MOST: u64 = 20_000;
    let mut chance = Chance(seed(20_261_127));
    let mut oracle: HashMap<K, Value> = HashMap::new();
    let mut before = (table.snapshot()?, oracle.clone());
    for round in 0..times(12) as u64 {
        let first = chance.below(MOST);
        match round % 3 {
            0 => {
                let rows = (first..first + MOST / 2).map(|n| (K::of(n % MOST), value(n + round)));
                table.extend(rows.clone())?;
                oracle.extend(rows);
            }
            1 => {
                for n in first..first + MOST / 3 {
                    let key = K::of(n % MOST);
                    assert_eq!(table.remove(&key)?, oracle.remove(&key));
                }
            }
            _ => {
                let keep = |_: &K, value: &Value| value.0 % 5 == round % 5;
                let len = oracle.len();
                oracle.retain(|key, value| keep(key, value));
                assert_eq!(table.retain(keep)?, len - oracle.len());
            }
        }
        assert_eq!(table.len(), oracle.len());
        let all = |table: &Typed<K, Value, O>| -> Result<Vec<_>, Error> { table.iter().collect() };
        for (rows, oracle) in [(all(table)?, &oracle), (all(&before.0)?, &before.1)] {
            assert_eq!(rows.len(), oracle.len());
            let rows: HashMap<_, _> = rows.into_iter().collect();
            assert_eq!(&rows, oracle);
        }
        let keys: Vec<_> = (0..MOST).step_by(7).map(K::of).collect();
        let values: Vec<_> = keys.iter().map(|key| oracle.get(key).cloned()).collect();
        assert_eq!(table.get_many(&keys)?, values);
        before = (table.snapshot()?, oracle.clone());
    }
    Ok(())
}

#[test]
fn many_rows() -> Result<(), Error> {
    let larder = Larder::new();
    grow_and_shrink::<u64, _>(&larder.typed("integers")?)?;
    grow_and_shrink::<u64, _>(&larder.typed_hash("hashed integers")?)?;
    grow_and_shrink::<String, _>(&larder.typed("texts")?)?;
    grow_and_shrink::<String, _>(&larder.typed_hash("hashed texts")?)
}

/// What bounds do to typed rows.
#[test]
fn times_and_limits() -> Result<(), Error> {
    let larder = Larder::new();
    let table = larder.table("times").ttl(HOUR).typed::<u8, String>()?;
    table.put_with(&1, &"gone".into(), Some(Duration::ZERO))?;
    table.put_with(&2, &"stays".into(), None)?;
    table.put(&3, &"an hour".into())?;
    assert_eq!(table.get(&1)?, None);
    assert_eq!(table.first()?.map(|row| row.0), Some(2));
    assert_eq!(table.time_left(&2)?, TimeLeft::Unlimited);
    assert!(matches!(table.time_left(&3)?, TimeLeft::Ms(1..=3_600_000)));
    assert!(table.expire(&3, Some(Duration::ZERO))?);
    assert_eq!(table.pop_last()?, Some((2, "stays".into())));
    assert_eq!(table.pop_last()?, None);
    let small = larder.table("small").max_size(2).typed::<u8, u8>()?;
    small.extend([(1, 1), (2, 2)])?;
    assert!(matches!(small.insert(3, 3), Err(Error::Full(_))));
    assert!(matches!(
        small.compute(&3, |_| Some(3)),
        Err(Error::Full(_))
    ));
    assert_eq!(small.insert(2, 4)?, Some(2));
    assert_eq!(small.compute(&1, |_| Some(9))?, Some(9));
    Ok(())
}
