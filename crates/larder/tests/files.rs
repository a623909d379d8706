//! Tables in files: round trips, and every way in which a file can be bad.

mod lists;

use larder::api::{Larder, Table};
use larder::host::{read_header, LoadJob, LoadOptions, SaveJob, SaveOptions};
use larder::host::{Budget, Concurrency, Error, FileError, Options, Step, TableKind};
use larder_term::{term, Atom, NodeName, Term};
use lists::list;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn kinds(larder: &Larder) -> Vec<Table> {
    vec![
        larder.table("set").set().create().unwrap(),
        larder
            .table("ordered")
            .ordered_set()
            .keypos(2)
            .create()
            .unwrap(),
        larder.table("bag").bag().compressed().create().unwrap(),
        larder.table("dup").duplicate_bag().create().unwrap(),
    ]
}

fn fill(t: &Table, n: i64) {
    let rows: Vec<Term> = (0..n)
        .map(|i| {
            let big = Term::binary(&[i as u8; 100]);
            term!({(i % 700), (i), [i, 1.5 | tail], (big), #{k => (i)}, "text"})
        })
        .collect();
    t.insert_all(&rows).unwrap();
}

fn save(t: &Table, path: &Path, budget: u32) -> Result<(), Error> {
    let options = SaveOptions {
        sync: true,
        node: NodeName::NONE,
        extra: b"host".to_vec(),
    };
    let table = t.engine_table();
    let mut job = SaveJob::begin(table, table.owner(), path, options)?;
    while job.step(&mut Budget::new(budget, Duration::from_secs(1)))? == Step::More {}
    assert_eq!(job.step(&mut Budget::slice())?, Step::Done);
    Ok(())
}

fn load(
    larder: &Larder,
    path: &Path,
    verify: bool,
    budget: u32,
) -> Result<Arc<larder::host::EngineTable>, Error> {
    let options = LoadOptions {
        verify,
        node: NodeName::NONE,
        legacy_zero: false,
        new_atoms: usize::MAX,
    };
    let mut job = LoadJob::begin(larder.engine(), larder.owner(), path, options)?;
    while job.step(&mut Budget::new(budget, Duration::from_secs(1)))? == Step::More {}
    Ok(Arc::clone(job.table()))
}

fn rows(table: &Arc<larder::host::EngineTable>) -> Vec<Term> {
    let nobody = term!(nobody);
    let context = larder_matchspec::Context {
        self_pid: nobody.as_ref(),
        node: Atom::new("n"),
    };
    let mut rows = Vec::new();
    let mut job = table
        .each(table.owner(), larder::Direction::Forward)
        .unwrap();
    job.step(&mut Budget::unlimited(), &context, &mut |output| {
        if let larder::host::Output::Object(object) = output {
            rows.push(Term::build(|enc| object.encode(enc)).unwrap());
        }
    })
    .unwrap();
    rows
}

#[test]
fn what_is_saved_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let larder = Larder::new();
    for n in [0, 1, 3000] {
        for t in kinds(&larder) {
            fill(&t, n);
            let path = folder.path().join("table");
            save(&t, &path, 100).unwrap();
            for (verify, budget) in [(true, 1), (false, 7), (true, 1_000_000)] {
                let back = load(&larder, &path, verify, budget).unwrap();
                let mut expected = t.to_vec().unwrap();
                let mut found = rows(&back);
                assert_eq!(back.kind(), t.engine_table().kind());
                assert_eq!(back.keypos(), t.engine_table().keypos());
                assert_eq!(back.compressed(), t.engine_table().compressed());
                assert_eq!(back.name(), t.engine_table().name());
                if back.kind() == TableKind::OrderedSet {
                    assert_eq!(found, expected);
                }
                found.sort();
                expected.sort();
                assert_eq!(found, expected);
                // In bags the objects of a key keep their order.
                let key = term!(5);
                let mut index_key = Vec::new();
                back.encode_key(key.as_ref(), &mut index_key);
                let mut under = Vec::new();
                back.lookup(back.owner(), &index_key, &mut |o| {
                    under.push(Term::build(|enc| o.encode(enc)).unwrap());
                })
                .unwrap();
                assert_eq!(under, t.lookup(&key).unwrap());
                back.drop_table(back.owner()).unwrap();
            }
        }
    }
}

#[test]
fn the_header_tells_the_options() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let mut options = Options::new(Atom::new("an odd name é"));
    options.kind = TableKind::DuplicateBag;
    options.keypos = 3;
    options.named = true;
    options.write_concurrency = Concurrency::Auto;
    options.decentralized_counters = true;
    options.heir = Some((larder.engine().register(), term!(x)));
    let table = larder.engine().create(options, larder.owner()).unwrap();
    let save = SaveOptions {
        sync: false,
        node: NodeName::NONE,
        extra: b"extra".to_vec(),
    };
    let mut job = SaveJob::begin(&table, larder.owner(), &path, save).unwrap();
    assert_eq!(job.step(&mut Budget::slice()).unwrap(), Step::Done);
    let header = read_header(&path).unwrap();
    assert_eq!(header.extra, b"extra");
    assert_eq!(header.objects, 0);
    let o = header.options;
    assert_eq!(
        (o.kind, o.keypos, o.named),
        (TableKind::DuplicateBag, 3, true)
    );
    assert_eq!(o.write_concurrency, Concurrency::Auto);
    assert!(o.decentralized_counters && o.heir.is_none() && !o.compressed);
    assert_eq!(o.name.text(), "an odd name é");
    // The name is in use.
    assert_eq!(
        load(&larder, &path, true, 10).err(),
        Some(Error::AlreadyExists)
    );
    table.drop_table(larder.owner()).unwrap();
    assert!(load(&larder, &path, true, 10).unwrap().is_named());
}

#[test]
fn every_cut_and_every_flipped_byte_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    t.insert_all(&[term!({a, 1}), term!({b, [1, 2]}), term!({c, "text"})])
        .unwrap();
    save(&t, &path, 100).unwrap();
    let good = fs::read(&path).unwrap();
    let tables = larder.engine().all().len();
    for verify in [true, false] {
        for end in 0..good.len() {
            fs::write(&path, &good[..end]).unwrap();
            let expected = if end < 8 {
                FileError::NotLarder
            } else {
                FileError::CutShort
            };
            assert_eq!(
                load(&larder, &path, verify, 10).err(),
                Some(expected.into()),
                "{end}"
            );
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            match load(&larder, &path, verify, 10).err() {
                Some(Error::File(_)) => {}
                // The footer's digest is only looked at if asked for, but its checksum covers it.
                other => panic!("byte {at}: {other:?}"),
            }
        }
        let mut long = good.clone();
        long.push(0);
        fs::write(&path, &long).unwrap();
        assert!(matches!(
            load(&larder, &path, verify, 10),
            Err(Error::File(error)) if matches!(*error, FileError::Damaged(_))
        ));
    }
    assert_eq!(larder.engine().all().len(), tables);
}

#[test]
fn other_files_and_newer_versions_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    save(&t, &path, 100).unwrap();
    let mut newer = fs::read(&path).unwrap();
    newer[8] = 2;
    fs::write(&path, newer).unwrap();
    let expected = FileError::NewerVersion { found: 2, known: 1 };
    assert_eq!(
        load(&larder, &path, true, 10).err(),
        Some(expected.clone().into())
    );
    assert_eq!(read_header(&path).err(), Some(expected.into()));
    fs::write(&path, b"something else altogether").unwrap();
    assert_eq!(
        load(&larder, &path, true, 10).err(),
        Some(FileError::NotLarder.into())
    );
    let missing = load(&larder, &folder.path().join("missing"), true, 10).err();
    let Some(Error::File(error)) = missing else {
        panic!("{missing:?}");
    };
    let not_found = std::io::ErrorKind::NotFound;
    assert!(matches!(*error, FileError::Io { kind, .. } if kind == not_found));
}

/// A save that is asked for nothing.
fn plain() -> SaveOptions {
    SaveOptions {
        sync: false,
        node: NodeName::NONE,
        extra: Vec::new(),
    }
}

/// What a file couldn't be loaded with isn't saved.
#[test]
fn a_header_that_is_too_long_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let t = Larder::new().table("t").create().unwrap();
    let (table, most) = (t.engine_table(), 1 << 24);
    for (bytes, is_saved) in [(most - 100, true), (most, false), (most + 1, false)] {
        let mut options = plain();
        options.extra = vec![7; bytes];
        match SaveJob::begin(table, table.owner(), &path, options) {
            Ok(mut job) => {
                assert!(is_saved, "{bytes}");
                assert_eq!(job.step(&mut Budget::slice()).unwrap(), Step::Done);
                assert_eq!(read_header(&path).unwrap().extra.len(), bytes);
            }
            Err(Error::File(error)) => {
                let too_large = std::io::ErrorKind::FileTooLarge;
                assert!(matches!(*error, FileError::Io { kind, .. } if kind == too_large));
                assert!(!is_saved, "{bytes}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Rows that a snapshot leaves out are work, too.
#[test]
fn a_slice_of_a_save_ends_among_what_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    let snapshot = t.snapshot().unwrap();
    fill(&t, 20_000);
    let table = snapshot.engine_table();
    let mut job = SaveJob::begin(table, table.owner(), &path, plain()).unwrap();
    let mut slices = 1;
    while job
        .step(&mut Budget::new(100, Duration::from_secs(1)))
        .unwrap()
        == Step::More
    {
        slices += 1;
    }
    assert!(slices > 1, "{slices}");
    assert_eq!(read_header(&path).unwrap().objects, 0);
    assert!(load(&larder, &path, true, 100).unwrap().size() == 0);
}

/// A slice whose time is over ends after a long object, and not after a leaf of them.
#[test]
fn a_slice_ends_after_a_long_object() -> Result<(), Error> {
    const OBJECTS: usize = 40;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    for t in kinds(&larder) {
        let long = Term::binary(&[7; 300_000]);
        (0..OBJECTS as i64).try_for_each(|n| t.insert(&term!({(n / 3), (n), (long.clone())})))?;
        let objects = t.len();
        let table = t.engine_table();
        let slices = |step: &mut dyn FnMut(&mut Budget) -> Result<Step, Error>| {
            let mut slices = 1;
            while step(&mut Budget::new(20_000, Duration::ZERO))? == Step::More {
                slices += 1;
            }
            Ok::<usize, Error>(slices)
        };
        let mut job = SaveJob::begin(table, table.owner(), &path, plain())?;
        let saved = slices(&mut |budget| job.step(budget))?;
        let options = LoadOptions {
            verify: false,
            node: NodeName::NONE,
            legacy_zero: false,
            new_atoms: usize::MAX,
        };
        let mut job = LoadJob::begin(larder.engine(), larder.owner(), &path, options)?;
        let loaded = slices(&mut |budget| job.step(budget))?;
        assert!(saved >= objects && loaded >= objects, "{saved} {loaded}");
        let [mut found, mut expected] = [job.table(), table].map(rows);
        found.sort();
        expected.sort();
        assert!(found == expected);
    }
    Ok(())
}

#[test]
fn a_save_that_fails_or_is_given_up_leaves_the_good_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    fill(&t, 3000);
    save(&t, &path, 100).unwrap();
    let good = fs::read(&path).unwrap();
    let options = plain();
    let table = t.engine_table();
    let mut job = SaveJob::begin(table, table.owner(), &path, options.clone()).unwrap();
    let mut little = Budget::new(1, Duration::from_secs(1));
    assert_eq!(job.step(&mut little).unwrap(), Step::More);
    drop(job);
    assert_eq!(fs::read(&path).unwrap(), good);
    let mut job = SaveJob::begin(table, table.owner(), &path, options.clone()).unwrap();
    job.step(&mut Budget::new(1, Duration::from_secs(1)))
        .unwrap();
    t.drop_table().unwrap();
    assert_eq!(job.step(&mut Budget::slice()), Err(Error::NoTable));
    drop(job);
    assert_eq!(fs::read(&path).unwrap(), good);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let other = larder.table("other").create().unwrap();
    let other = other.engine_table();
    let nowhere = folder.path().join("no/such/folder");
    assert!(matches!(
        SaveJob::begin(other, other.owner(), &nowhere, options).err(),
        Some(Error::File(error)) if matches!(*error, FileError::Io { .. })
    ));
}

#[test]
fn a_list_holds_up_the_beginning_of_a_save_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    fill(&t, 3000);
    let options = plain();
    let table = t.engine_table();
    let had = table.size();
    let little = || Budget::new(1, Duration::from_secs(1));
    let mut save = SaveJob::begin(table, table.owner(), &path, options.clone()).unwrap();
    assert_eq!(save.step(&mut little()).unwrap(), Step::More);
    let rows = list(&t, (0..1000).map(|i| term!({ (10_000 + i) })));
    let mut insert = table.begin_insert(table.owner(), rows, false).unwrap();
    assert_eq!(insert.step(&mut little()).unwrap(), Step::More);
    // What is saved is the table of before, whatever becomes of it.
    assert_eq!(save.step(&mut little()), Ok(Step::More));
    let later = folder.path().join("later");
    let begun = SaveJob::begin(table, table.owner(), &later, options.clone());
    assert_eq!(begun.err(), Some(Error::Busy));
    while insert.step(&mut little()).unwrap() == Step::More {}
    while save.step(&mut little()).unwrap() == Step::More {}
    let back = load(&larder, &path, true, 1000).unwrap();
    assert_eq!(back.size(), had);
    let mut save = SaveJob::begin(table, table.owner(), &later, options).unwrap();
    while save.step(&mut little()).unwrap() == Step::More {}
    let back = load(&larder, &later, true, 1000).unwrap();
    assert_eq!(back.size(), had + 1000);
}

#[test]
fn a_load_given_up_leaves_no_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    fill(&t, 1000);
    save(&t, &path, 100).unwrap();
    let options = LoadOptions {
        verify: false,
        node: NodeName::NONE,
        legacy_zero: false,
        new_atoms: usize::MAX,
    };
    let mut job = LoadJob::begin(larder.engine(), larder.owner(), &path, options).unwrap();
    let mut little = Budget::new(5, Duration::from_secs(1));
    assert_eq!(job.step(&mut little).unwrap(), Step::More);
    assert_eq!(larder.engine().all().len(), 2);
    drop(job);
    assert_eq!(larder.engine().all().len(), 1);
}

/// The payload's length and the number of objects of each chunk of a file.
fn chunks(bytes: &[u8]) -> Vec<(usize, u32)> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    // After the magic and the version: the header, with its length before it and its checksum
    // after it.
    let mut at = 14 + number(10) as usize + 4;
    let mut chunks = Vec::new();
    while bytes[at] == b'C' {
        let length = number(at + 1) as usize;
        chunks.push((length, number(at + 5)));
        at += 9 + length + 4;
    }
    chunks
}

/// Once all objects of a leaf came into one chunk, whatever their binaries, which lie in no leaf: a
/// chunk of more than a gigabyte could not be read again, nor one of more than four, whose length
/// was cut off.
#[test]
fn a_chunk_ends_when_it_is_full() {
    let (folder, larder) = (tempfile::tempdir().unwrap(), Larder::new());
    let path = folder.path().join("table");
    for t in kinds(&larder) {
        let row = |i: i64| {
            let large = Term::binary(&[7; 10_000]);
            term!({(i), (i), (large)})
        };
        let rows: Vec<Term> = (0..300).map(row).collect();
        t.insert_all(&rows).unwrap();
        save(&t, &path, 1_000_000).unwrap();
        let chunks = chunks(&fs::read(&path).unwrap());
        assert_eq!(chunks.iter().map(|c| c.1).sum::<u32>(), 300);
        assert!(
            chunks.iter().all(|c| c.0 < (1 << 15) + 11_000),
            "{chunks:?}"
        );
        let back = load(&larder, &path, true, 1_000_000).unwrap();
        let mut found = crate::rows(&back);
        found.sort();
        assert_eq!(found, rows);
        back.drop_table(back.owner()).unwrap();
    }
}

/// The short forms: what is saved is loaded with its options, under its name or a new one, and a
/// bad file leaves no table behind.
#[test]
fn short_forms_save_and_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let larder = Larder::new();
    let table = larder
        .table("stock")
        .ordered_set()
        .keypos(2)
        .named()
        .create()
        .unwrap();
    let rows = [term!({apple, 1}), term!({pear, 2, [x]})];
    table.insert_all(&rows).unwrap();
    table.save(&path).unwrap();
    assert_eq!(
        larder.load(&path).unwrap_err(),
        larder::Error::AlreadyExists
    );
    let unnamed = [(); 2].map(|()| larder.load_unnamed(&path).unwrap());
    for table in &unnamed {
        assert_eq!(table.to_vec().unwrap(), rows);
        assert!(!table.engine_table().is_named());
    }
    table.rename("old").unwrap();
    let back = larder.load(&path).unwrap();
    assert_eq!(back.to_vec().unwrap(), rows);
    assert_eq!(back.lookup(&term!(2)).unwrap(), rows[1..]);
    assert!(larder.find("stock").is_some() && larder.find("old").is_some());
    back.drop_table().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 1);
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(larder.load(&path), Err(larder::Error::File(_))));
    assert!(larder.find("stock").is_none(), "nothing is left of it");
    assert!(matches!(
        table.save(folder.path().join("no/such")),
        Err(larder::Error::File(_))
    ));
    assert!(matches!(
        table.rename(&"x".repeat(256)),
        Err(larder::Error::BadOption(_))
    ));
}
