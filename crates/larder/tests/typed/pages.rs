//! Pages of iterators: the rows that an iterator has read, and returns one by one.

use larder::prelude::*;
use larder::typed::Order;
use larder::Error;

/// A value whose text lies outside of its row, for which the row has a handle, and whose numbers
/// make a row too large for a leaf if there are many.
type Long = (String, Vec<u64>);

fn long(key: u64) -> Long {
    let numbers = [1000, 2, 2][key as usize % 3];
    (format!("{key} ").repeat(100), vec![key << 40; numbers])
}

/// Removes all rows of a table, and makes others, so that the memory of the removed ones is used
/// again.
fn replace_all<O: Order>(table: &Typed<u64, Long, O>) -> Result<(), Error> {
    table.clear()?;
    for _ in 0..3 {
        table.extend((1000..1200).map(|key| (key, long(key))))?;
        table.retain(|key, _| *key < 1000)?;
    }
    Ok(())
}

fn check<O: Order>(table: &Typed<u64, Long, O>) -> Result<(), Error> {
    table.extend((0..100).map(|key| (key, long(key))))?;
    let mut rows = table.iter();
    let first = rows.next().transpose()?;
    assert!(first.is_some_and(|(key, value)| value == long(key)));
    replace_all(table)?;
    // Nobody else has these rows any more.
    let mut left = 0;
    for row in rows {
        let (key, value) = row?;
        assert_eq!(value, long(key));
        left += 1;
    }
    assert!((1..100).contains(&left), "{left}");
    Ok(())
}

#[test]
fn rows_that_were_read_stay_though_they_are_removed() -> Result<(), Error> {
    for compressed in [false, true] {
        let builder = || {
            let builder = Larder::new().table("table");
            if compressed {
                builder.compressed()
            } else {
                builder
            }
        };
        check(&builder().typed()?)?;
        check(&builder().typed_hash()?)?;
    }
    Ok(())
}

/// The pages of both ends, of which each ends with rows of the other one.
#[test]
fn pages_of_both_ends_stay() -> Result<(), Error> {
    for read in [(1, 1), (3, 1), (1, 3), (40, 40)] {
        let table = Larder::new().typed::<u64, Long>("table")?;
        table.extend((0..100).map(|key| (key, long(key))))?;
        let mut rows = table.iter();
        let front: Vec<_> = rows.by_ref().take(read.0).collect::<Result<_, _>>()?;
        let back: Vec<_> = rows.by_ref().rev().take(read.1).collect::<Result<_, _>>()?;
        replace_all(&table)?;
        let mut left = rows.collect::<Result<Vec<_>, _>>()?;
        left.extend(front);
        left.extend(back);
        assert!(left.iter().all(|(key, value)| *value == long(*key)));
        // None was returned twice.
        let mut keys: Vec<_> = left.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), left.len());
        assert!(keys.len() > read.0 + read.1);
    }
    Ok(())
}

/// An iterator within the loop of another one has pages of its own.
#[test]
fn iterators_may_be_nested() -> Result<(), Error> {
    let table = Larder::new().typed::<u64, u64>("table")?;
    table.extend((0..50).map(|n| (n, n * n)))?;
    let mut pairs = 0;
    for outer in table.iter() {
        let (low, square) = outer?;
        assert_eq!(square, low * low);
        for inner in table.range(low..)?.rev() {
            let (high, square) = inner?;
            assert_eq!(square, high * high);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 50 * 51 / 2);
    Ok(())
}

/// A row of other types ends an iterator, from either end, whichever end has read it.
#[test]
fn an_error_ends_both_ends() -> Result<(), Error> {
    let table = Larder::new().table("mixed").ordered_set().create()?;
    for n in 0..10i64 {
        table.insert(&term!({(n), (if n == 5 { -1 } else { n })}))?;
    }
    let typed = table.typed::<u64, u8>()?;
    // The front has read all rows.
    let mut rows = typed.iter();
    assert_eq!(rows.next(), Some(Ok((0, 0))));
    assert_eq!(rows.size_hint().0, 1);
    for n in [9, 8, 7, 6] {
        assert_eq!(rows.next_back(), Some(Ok((n, n as u8))));
    }
    assert!(matches!(rows.next_back(), Some(Err(Error::WrongType(_)))));
    assert_eq!((rows.next(), rows.next_back()), (None, None));
    assert_eq!(rows.size_hint(), (0, Some(0)));
    // The back has, and the front returns rows before the error.
    let mut rows = typed.range(2..)?;
    assert_eq!(rows.next_back(), Some(Ok((9, 9))));
    assert_eq!(rows.by_ref().filter(Result::is_ok).count(), 3);
    assert_eq!((rows.next(), rows.next_back()), (None, None));
    Ok(())
}
