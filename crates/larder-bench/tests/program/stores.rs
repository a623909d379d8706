//! Every peer of this build goes through the workload, small; a peer that lies is found out; the
//! program writes a study.

use super::{bench, installed, studies::all_have};
use larder_bench::result::{read_json, Failure, Study};
use larder_bench::stores::peer::Peer;
use larder_bench::stores::{make, names, servers, workload};

#[test]
fn every_peer_gives_right_answers() {
    for name in names() {
        let server = servers::SERVERS.iter().find(|server| server.name == name);
        if server.is_some_and(|server| installed(server.program).is_none()) {
            let absent = make(name).err();
            assert!(matches!(absent, Some(Failure::Impossible(_))), "{name}");
            continue;
        }
        let mut peer = make(name).unwrap_or_else(|why| panic!("{name}: {why}"));
        let figures = workload::run(&mut *peer, 5000, 3000);
        let figures = figures.unwrap_or_else(|why| panic!("{name}: {why}"));
        for step in ["insert", "hit", "miss", "bytes"] {
            let has = figures.iter().any(|(of, _)| *of == step);
            assert!(has, "{name} has no {step}");
        }
    }
}

/// The standard map, with one fault.
struct Liar {
    inner: Box<dyn Peer>,
    fault: &'static str,
}

impl Peer for Liar {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<(), Failure> {
        let (mut keys, mut values) = (keys.to_vec(), values.to_vec());
        match self.fault {
            "loses a key" => (_, _) = (keys.pop(), values.pop()),
            "spoils a value" => values[0] ^= 1,
            _ => {}
        }
        self.inner.insert(&keys, &values)
    }
    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Result<usize, Failure> {
        let found = self.inner.get(keys, values)?;
        let more = usize::from(self.fault == "makes up a key" && found < keys.len());
        Ok(found + more)
    }
    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Result<bool, Failure> {
        let left = usize::from(self.fault == "forgets an append");
        self.inner.append(&keys[left..], piece)
    }
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, Failure> {
        self.inner.read(key, out)
    }
}

#[test]
fn a_peer_that_lies_is_found_out() {
    let run = |fault| {
        let inner = make("std HashMap").expect("it is always there");
        workload::run(&mut Liar { inner, fault }, 3000, 2000)
    };
    assert!(run("nothing").is_ok());
    for fault in "loses a key, spoils a value, makes up a key, forgets an append".split(", ") {
        let found = matches!(run(fault), Err(Failure::Wrong { .. }));
        assert!(found, "it {fault}");
    }
}

#[test]
fn a_run_leaves_a_study_that_says_what_it_could_not_get() {
    let out = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-study");
    let folder = out.display().to_string();
    let run = "peers run --entries 3000 --appends 1000 --runs 2 --only HashMap,larder \
               --jvm /nonexistent --out";
    bench(run.split_whitespace().chain([&*folder])).well();
    let study = read_json::<Study>(&out.join("peers.json")).expect("a study");
    all_have(
        &study,
        "insert, hit, miss, append",
        "larder hash, std HashMap",
    );
    assert!(study.skipped.iter().any(|text| text.contains("JVM")));
    assert!(study.points.iter().all(|point| point.runs == 2));
}

#[test]
fn who_is_not_there_is_said_to_be_absent() {
    let ended = bench(["peers", "one", "no such peer", "10", "10"]);
    assert_eq!(ended.code, Some(3));
}
