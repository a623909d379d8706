//! Room in tables with limits: what is expired makes room for whatever comes, beside another thread
//! that removes it, too; and an object that is too large for the table goes first.

use larder::api::{Larder, Table};
use larder::host::{Budget, ObjectList, Step};
use larder::{advance_clock, Bounds, Error, Evict, Limits};
use larder_term::object::ObjectBuf;
use larder_term::{term, Term};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const HOUR: u64 = 3_600_000;

fn pair(key: i64, value: i64) -> Term {
    term!({(key), (value)})
}

fn refusing(limits: Limits) -> Table {
    let bounds = Bounds {
        ttl: Some(HOUR),
        idle: None,
        limits: Some(limits),
    };
    Larder::new().table("t").bounds(bounds).create().unwrap()
}

/// Fills a table with rows, has them expire, and writes 100 others, again and again, while another
/// thread removes what is expired. None of these writes is refused.
fn beside_the_expirer(write: impl Fn(&Table, &[Term]) -> Result<(), Error>) {
    let most = 100;
    let t = refusing(Limits {
        max_size: Some(most as usize),
        max_memory: None,
        evict: Evict::None,
    });
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Ordering: Relaxed; nothing else is passed on.
            while !over.load(Ordering::Relaxed) {
                while t
                    .engine_table()
                    .remove_expired()
                    .is_ok_and(|(_, more)| more)
                {}
            }
        });
        let begun = Instant::now();
        let mut round = 0;
        let mut refused = 0;
        while begun.elapsed() < Duration::from_secs(2) {
            round += 1;
            for k in 0..most {
                // Those of the last round may not be removed yet.
                while let Err(error) = t.insert(&pair(k, 0)) {
                    assert!(matches!(error, Error::Full(_)), "{error:?}");
                }
            }
            advance_clock(2 * HOUR);
            let rows: Vec<_> = (0..most).map(|k| pair(1000 * round + k, 0)).collect();
            match write(&t, &rows) {
                Ok(()) => {}
                Err(Error::Full(_)) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
            advance_clock(2 * HOUR);
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0, "of {round}");
    });
}

#[test]
fn what_is_expired_makes_room_for_lists() {
    beside_the_expirer(|t, rows| t.insert_all(rows));
}

#[test]
fn what_is_expired_makes_room_for_transactions() {
    beside_the_expirer(|t, rows| {
        t.larder()
            .transaction(&[t], |views| {
                rows.iter().try_for_each(|row| views[0].insert(row))
            })
            .map(drop)
    });
}

#[test]
fn what_is_expired_makes_room_for_replacements() {
    let text = format!("\"{}\"", "a".repeat(20_000));
    // The key is bound, or the whole table is visited.
    let specs = [
        "[{{1,'_'},[],[{{1,{const,x}}}]}]",
        "[{{'$1','_'},[],[{{'$1',{const,x}}}]}]",
    ];
    for spec in specs.map(|spec| spec.replace('x', &text)) {
        for _ in 0..10 {
            let t = refusing(Limits {
                max_size: None,
                max_memory: Some(100_000),
                evict: Evict::None,
            });
            t.insert_with(&pair(1, 0), None).unwrap();
            let filled = (2..).take_while(|k| t.insert(&pair(*k, 0)).is_ok()).count();
            assert!(filled > 1000);
            advance_clock(2 * HOUR);
            assert_eq!(t.select_replace(spec.as_str()).unwrap(), 1);
        }
    }
}

/// An object that outgrows its table goes first, also if it can't be removed at once: a list that
/// is being inserted refuses all others for a while.
#[test]
fn what_is_too_large_goes_first_beside_a_list() {
    let builder = Larder::new().table("t").max_memory(200_000);
    let t = builder.evict(Evict::Lru).create().unwrap();
    (0..4_000).for_each(|k| t.insert(&pair(k, k)).unwrap());
    let engine = t.engine_table();
    let (mut list, mut object) = (ObjectList::new(), ObjectBuf::new());
    for k in 100..500 {
        let row = pair(k, k + 1);
        engine.encode_object(row.as_ref(), &mut object).unwrap();
        list.push(&object);
    }
    let mut job = engine.begin_insert(engine.owner(), list, false).unwrap();
    let zeros = "0,".repeat(400_000) + "0";
    let spec = format!("[{{{{5,'_'}},[],[{{{{5,{{const,{{{zeros}}}}}}}}}]}}]");
    assert_eq!(t.select_replace(spec.as_str()).unwrap(), 1);
    // The list begins, and takes its time.
    let step = job.step(&mut Budget::new(10, Duration::from_millis(1)));
    assert_eq!(step.unwrap(), Step::More);
    std::thread::sleep(Duration::from_millis(300));
    while job.step(&mut Budget::unlimited()).unwrap() == Step::More {}
    let begun = Instant::now();
    while engine.weight().unwrap() > 200_000 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(t.len(), 3_999);
}

/// An object that outgrew its table is one like others if the limit was raised since.
#[test]
fn what_fits_again_stays() {
    let bounds = |most| Bounds {
        limits: Some(Limits {
            max_size: None,
            max_memory: Some(most),
            evict: Evict::Lru,
        }),
        ..Bounds::default()
    };
    let builder = Larder::new().table("t").bounds(bounds(200_000));
    let t = builder.create().unwrap();
    (0..100).for_each(|k| t.insert(&pair(k, k)).unwrap());
    let text = "a".repeat(300_000);
    let spec = format!("[{{{{5,'_'}},[],[{{{{5,{{const,\"{text}\"}}}}}}]}}]");
    assert_eq!(t.select_replace(spec.as_str()).unwrap(), 1);
    t.set_bounds(&bounds(2_000_000)).unwrap();
    for k in 100..60_000 {
        t.insert(&pair(k, k)).unwrap();
        if k % 100 == 0 {
            assert_eq!(t.lookup(&term!(5)).unwrap().len(), 1, "{k}");
        }
    }
}
