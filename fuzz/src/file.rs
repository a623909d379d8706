//! Table files. Checksums keep strangers out, and a fuzzer: so those of an input are put right,
//! unless its first byte is odd.

use larder::api::Larder;
use larder::host::{read_header, LoadJob, LoadOptions, SaveJob, SaveOptions};
use larder::host::{Budget, Direction, EngineTable, Output, OwnerId, Step};
use larder_matchspec::Context;
use larder_term::{term, Encoder, Mode, NodeName, Term};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the parts of a file begin, as docs/design.md says: 8 bytes of magic, 2 of version, 4 with
/// the header's length.
const HEADER: usize = 14;

/// A file that exists while an input is looked at.
struct Place(PathBuf);

impl Place {
    /// One that no other process or thread uses.
    fn new() -> Place {
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let name = format!("larder-fuzz-{}-{number}", std::process::id());
        Place(std::env::temp_dir().join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What can't be removed is left in the folder for such things.
        let _ = fs::remove_file(&self.0);
    }
}

/// Any bytes as a file.
pub fn file(data: &[u8]) {
    let Some((&mode, bytes)) = data.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if mode % 2 == 0 {
        put_right(&mut bytes);
    }
    check(&Larder::new(), &Place::new().0, &bytes, mode % 2 == 0);
}

fn check(larder: &Larder, path: &Path, bytes: &[u8], right: bool) {
    fs::write(path, bytes).expect("a file for the input");
    let header = read_header(path);
    let verified = load(larder, path, true);
    let found = verified.as_ref().ok().map(rows);
    if let Ok(table) = &verified {
        let owner = table.owner();
        table.drop_table(owner).expect("the table that was loaded");
    }
    let plainly = load(larder, path, false);
    assert!(
        header.is_ok() || plainly.is_err(),
        "a table of a file without a header"
    );
    if right {
        assert_eq!(
            verified.is_ok(),
            plainly.is_ok(),
            "{:?} {:?}",
            verified.err(),
            plainly.err()
        );
    }
    let Ok(table) = plainly else {
        assert!(larder.engine().all().is_empty(), "a table was left behind");
        return;
    };
    let rows_now = rows(&table);
    if let Some(found) = found {
        assert_eq!(found, rows_now);
    }
    // What was loaded is saved and loaded again.
    save(&table, table.owner(), path);
    table
        .drop_table(table.owner())
        .expect("the table that was loaded");
    let again = load(larder, path, true).expect("a file that was just saved");
    assert_eq!(rows(&again), rows_now);
    again
        .drop_table(again.owner())
        .expect("the table that was loaded");
    assert!(larder.engine().all().is_empty(), "a table was left behind");
}

fn load(larder: &Larder, path: &Path, verify: bool) -> Result<Arc<EngineTable>, larder::Error> {
    let options = LoadOptions {
        verify,
        node: NodeName::NONE,
        legacy_zero: false,
        new_atoms: 64,
    };
    let mut job = LoadJob::begin(larder.engine(), larder.owner(), path, options)?;
    while job.step(&mut Budget::unlimited())? == Step::More {}
    Ok(Arc::clone(job.table()))
}

fn save(table: &Arc<EngineTable>, owner: OwnerId, path: &Path) {
    let options = SaveOptions {
        sync: false,
        node: NodeName::NONE,
        extra: b"extra".to_vec(),
    };
    let mut job = SaveJob::begin(table, owner, path, options).expect("a save");
    while job.step(&mut Budget::unlimited()).expect("a save") == Step::More {}
}

/// All objects, as plain bytes, sorted.
fn rows(table: &Arc<EngineTable>) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    let mut job = table
        .each(table.owner(), Direction::Forward)
        .expect("one's own table");
    job.step(&mut Budget::unlimited(), &Context::none(), &mut |output| {
        if let Output::Object(object) = output {
            let mut bytes = Vec::new();
            object.encode(&mut Encoder::new(&mut bytes, Mode::Inline));
            rows.push(bytes);
        }
    })
    .expect("one's own table");
    rows.sort();
    rows
}

/// Gives the header, each chunk and the footer the checksums that belong to them, as far as the
/// bytes have such parts.
fn put_right(bytes: &mut [u8]) {
    let Some(length) = number(bytes, 10) else {
        return;
    };
    let Some(mut at) = sum(bytes, 0, HEADER.saturating_add(length)) else {
        return;
    };
    while let Some(&mark) = bytes.get(at) {
        let end = match mark {
            b'C' => number(bytes, at + 1).map(|payload| at + 9 + payload),
            b'E' => digest(bytes, at),
            _ => None,
        };
        match end.and_then(|end| sum(bytes, at, end)) {
            Some(next) => at = next,
            None => return,
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize)
}

/// Writes the checksum of a part after it; gives where the next one begins.
fn sum(bytes: &mut [u8], from: usize, to: usize) -> Option<usize> {
    let crc = crc32fast::hash(bytes.get(from..to)?);
    bytes
        .get_mut(to..to + 4)?
        .copy_from_slice(&crc.to_le_bytes());
    Some(to + 4)
}

/// Writes the digest of all that comes before into the footer; gives where its checksum is.
fn digest(bytes: &mut [u8], at: usize) -> Option<usize> {
    let sha = Sha256::digest(&bytes[..at]);
    bytes.get_mut(at + 9..at + 41)?.copy_from_slice(&sha);
    Some(at + 41)
}

/// Files of tables of every type.
pub fn seeds() -> Vec<Vec<u8>> {
    let larder = Larder::new();
    let folder = tempfile::tempdir().expect("a folder for files");
    let path = folder.path().join("table");
    let tables = [
        larder.table("t").set().create(),
        larder.table("t").ordered_set().create(),
        larder.table("t").bag().compressed().create(),
        larder.table("t").duplicate_bag().keypos(2).create(),
        larder.table("t").set().named().structure("avl").create(),
    ];
    let mut seeds = Vec::new();
    for table in tables {
        let table = table.expect("a table");
        let rows: Vec<Term> = (0..6i64)
            .map(|n| term!({(n % 4), (n), "text", [1.5, a | b], #{k => (n)}}))
            .collect();
        table.insert_all(&rows).expect("rows");
        save(table.engine_table(), larder.owner(), &path);
        for mode in [0, 1] {
            let mut seed = vec![mode];
            seed.extend(fs::read(&path).expect("the file"));
            seeds.push(seed);
        }
    }
    seeds
}
