//! Every target: the kept corpus, the seeds, and a moment of simple mutation of both. What the
//! fuzzer found is in the corpus; this finds what is easy to find, without it.
//!
//! `LARDER_FUZZ_MS` (1,500) is how long each target mutates, `LARDER_SEED` repeats a run that
//! failed. An input that makes a target panic is printed in hexadecimal; `LARDER_FUZZ_INPUT=hex`
//! with the target's test runs it alone.

use larder_fuzz::{target, Target};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.split(',').next().and_then(|first| first.parse().ok()))
        .unwrap_or(default)
}

/// A generator of numbers, for which any seed will do.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n.max(1)
    }
}

/// The inputs that are kept in corpus/NAME.tar.gz, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.tar.gz"));
    let folder = tempfile::tempdir().unwrap();
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(folder.path())
        .status()
        .expect("tar can be run");
    assert!(unpacked.success(), "{} can be unpacked", archive.display());
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(7) {
            0 if at < input.len() => input[at] = random.below(256) as u8,
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 if at < input.len() => {
                input.remove(at);
            }
            3 => input.insert(at, random.below(256) as u8),
            4 => input.truncate(at),
            5 if at < input.len() => input[at] = [0, 1, 127, 128, 255][random.below(5)],
            _ => {
                let other = &others[random.below(others.len())];
                let from = random.below(other.len());
                let length = random.below(20).min(other.len() - from);
                input.splice(at..at, other[from..from + length].iter().copied());
            }
        }
    }
    input.truncate(4096);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn run(target: &Target, input: &[u8], seed: u64) {
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    if done.is_err() {
        panic!(
            "{}: LARDER_SEED={seed} LARDER_FUZZ_INPUT={}",
            target.name,
            hex(input)
        );
    }
}

fn fuzz(name: &str) {
    let target = target(name).unwrap();
    if let Ok(text) = std::env::var("LARDER_FUZZ_INPUT") {
        let bytes: Vec<u8> = (0..text.len() / 2)
            .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        return (target.run)(&bytes);
    }
    let seed = setting("LARDER_SEED", 20_261_122);
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut inputs = corpus(name);
    let (kept, start) = (inputs.len(), Instant::now());
    assert!(kept > 0, "{name}: corpus/{name}.tar.gz is empty");
    inputs.extend((target.seeds)());
    inputs.iter().for_each(|input| run(target, input, seed));
    run(target, &[], seed);
    let replayed = start.elapsed().as_millis();
    let end = Instant::now() + Duration::from_millis(setting("LARDER_FUZZ_MS", 1_500));
    let mut runs = 0u64;
    while Instant::now() < end {
        let mut input = inputs[random.below(inputs.len())].clone();
        mutate(&mut input, &inputs, &mut random);
        run(target, &input, seed);
        runs += 1;
    }
    println!(
        "{name}: {kept} kept inputs in {replayed} ms, {runs} mutated ones, LARDER_SEED={seed}"
    );
    assert!(runs > 10, "{name}: only {runs} inputs were tried");
}

macro_rules! replayed {
    ($($name:ident)*) => {
        $(#[test] fn $name() { fuzz(stringify!($name)); })*

        #[test]
        fn no_target_is_left_out() {
            let names: Vec<_> = larder_fuzz::TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

replayed!(etf text order object matchspec spec_text file operations);
