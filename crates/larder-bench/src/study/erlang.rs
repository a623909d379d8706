//! The studies in a BEAM: Larder and the real `ets` in one virtual machine, in turns.
//! `erlang/bench/larder_bench_study.erl` does the work. This module starts it, reads its output
//! line by line, and ends it.
//!
//! ```text
//!  @part   what  steps                              begins a part
//!  @step   what                                     one step of it is done
//!  @turn                                            what was found may be written
//!  @fact   name  value                              of the virtual machine
//!  @point  plot  series  x  y                       one run's figure
//!  @skip   text                                     not measured, and why
//!  @wrong  structure  text                          a wrong answer: the run fails
//!  @done                                            all of it
//! ```
//! Fields are separated by tabs. To add a workload, add an entry to the list in that Erlang module.
//! Its plot is that of the study of 2003, or one of [`PLOTS`].

use super::ets_2003::{SIZES, WORKLOADS};
use super::run::Run;
use super::{Extent, Plan};
use crate::result::{Failure, Outcome, Scale, X};
use crate::time::memory;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The study.
pub const STUDY: Plan = Plan {
    name: "erlang",
    title: "Larder and ets in one BEAM: the workloads of 2003, disjoint inserts, the 14 scenarios",
    source: "Fritchie 2003; the throughput benchmark of OTP's ets_SUITE",
    about: "Module larder beside module ets, called from Erlang, in one virtual machine and in turns. Needs erl, and a tree in which \
            `make build demo-beams bench-beams` was done (--root, the current folder if not said).",
    quick_seconds: 55.0,
    run,
};

/// The plot of each of the workloads of 2003.
const WORKLOAD: &str =
    "{id} | {title} | keys, log | us for 1,000 keys, log | us, less | one process, rows {K, K}";

const PLOTS: &str = "
bytes | Memory of a row | keys, log | bytes, linear | bytes, less | what the table says of itself
disjoint | Inserts of disjoint ranges | processes, log | {rate} | each process inserts a range of its own, in order
scenarios-1 | Scenarios, one process | insert/delete/lookup in %, and the rest, names | {rate} | {scenarios}
scenarios | Scenarios, a process for each scheduler | insert/delete/lookup in %, and the rest, names | {rate} | {scenarios}
";

fn run(run: &mut Run) -> Outcome {
    for w in &WORKLOADS {
        run.plots(WORKLOAD, &[("id", w.id()), ("title", w.title())]);
    }
    let scenarios =
        "rows {K}, half of the range there at the beginning; a sequence of next is one operation";
    run.plots(PLOTS, &[("scenarios", scenarios)]);
    // Sizes, by how much time there is.
    let own: &[usize] = run.scale.pick(&[700], &[700, 7_000, 70_000], &SIZES);
    let sizes = match run.options.sizes.is_empty() {
        true => own.to_vec(),
        false => run.options.sizes.clone(),
    };
    if run.scale == Extent::Full {
        foresee(run, &sizes);
    } else {
        run.skip("more than 70,000 keys, and scenarios on other structures than the defaults: asked for by --full alone".into());
    }
    // A row of ets, and keys in two orders, as lists.
    let fit: Vec<_> = sizes
        .into_iter()
        .filter(|n| run.fits(&format!("{n} keys"), *n as f64 * 220.0))
        .collect();
    let sizes: Vec<_> = fit.iter().map(usize::to_string).collect();
    // The virtual machine gets all its settings from its environment.
    let mut child = start(run, &sizes.join(","))?;
    // It reports line by line, so that what was measured is kept if it is ended.
    let heard = listen(run, &mut child);
    if heard.is_err() {
        // It may have been in the middle of something.
        let _ = child.kill();
    }
    let status = child.wait()?;
    heard?;
    if !status.success() {
        return Err(Failure::Impossible(format!(
            "the virtual machine ended with {status}"
        )));
    }
    run.check("every lookup, counter, traversal and deletion gave the right answer, and tables had the right number of rows");
    run.check("after each scenario, all rows are of the range and as many as the table counts");
    Ok(())
}

/// Says about how long it will take, with all contenders (some twenty): nine steps of a microsecond
/// and a third a key, scenarios of five and a half seconds.
fn foresee(run: &mut Run, sizes: &[usize]) {
    let (contenders, runs) = (20.0, run.runs(3) as f64);
    let keys = sizes.iter().sum::<usize>() as f64 * 9.0 * 1.3e-6;
    let disjoint = 3.0 * 10e6 * 1.5e-6;
    run.announce(contenders * runs * (keys + disjoint + 14.0 * 2.0 * 5.5));
}

fn start(run: &mut Run, sizes: &str) -> Outcome<Child> {
    let root = run.options.root.clone();
    let folders = ["larder/ebin", "demo", "bench"].map(|f| root.join("_build").join(f));
    let there = |folder: &Path, file: &str| folder.join(file).exists();
    // Without the compiled modules the virtual machine would start and fail later.
    if !there(&folders[0], "larder.beam") || !there(&folders[2], "larder_bench_study.beam") {
        let what = format!(
            "{} has no built Larder: `make build demo-beams bench-beams` there first, or say --root",
            root.display()
        );
        return Err(Failure::Impossible(what));
    }
    let runs = run.runs(run.scale.pick(1, 3, 3));
    let (inserts, range, ms) = run.scale.pick(
        (3_000, 2_000, 10),
        (50_000, 20_000, 25),
        (10_000_000, 1_000_000, 3_000),
    );
    let flag = |on| String::from(if on { "1" } else { "0" });
    // Whole seconds; nothing where there is no end.
    let left = run.clock.patience(1.0, 1);
    let seconds = left.map_or(String::new(), |left| left.as_secs().max(1).to_string());
    let mut erl = Command::new("erl");
    // What the studies' keys take as literals, 124 bytes each, is more than the emulator's own
    // limit from 8 million on: room for it, in MB, of addresses alone.
    erl.args(["-noinput", "+P", "1000000", "+MIscs", "32768", "-pa"])
        .args(&folders)
        .args(["-s", "larder_bench_study", "main"])
        .envs([
            ("LARDER_STUDY_SIZES", sizes.to_string()),
            ("LARDER_BENCH_RUNS", runs.to_string()),
            (
                "LARDER_STUDY_OPERATIONS",
                run.scale.pick("2000", "30000", "1000000").into(),
            ),
            ("LARDER_STUDY_INSERTS", inserts.to_string()),
            ("LARDER_BENCH_RANGE", range.to_string()),
            ("LARDER_BENCH_MS", ms.to_string()),
            ("LARDER_STUDY_ONLY", run.only.0.join(",")),
            (
                "LARDER_STUDY_SCENARIOS",
                run.scale.pick("all", "main", "all").into(),
            ),
            ("LARDER_STUDY_SECONDS", seconds),
            ("LARDER_STUDY_STRICT", flag(run.clock.is_strict())),
            ("LARDER_STUDY_PLANT", flag(run.options.plant)),
            (
                "LARDER_STUDY_FREE",
                format!("{:.0}", memory::free().max(0.0)),
            ),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    run.setting("scenario keys", range);
    run.setting("scenario milliseconds", ms);
    run.setting("disjoint inserts", inserts);
    erl.spawn()
        .map_err(|e| Failure::Impossible(format!("erl can't be started: {e}")))
}

/// Reads until the output of the virtual machine ends.
fn listen(run: &mut Run, child: &mut Child) -> Outcome {
    let Some(out) = child.stdout.take() else {
        return Err(Failure::Impossible(
            "the virtual machine can't be heard".into(),
        ));
    };
    let mut done = false;
    for line in BufReader::new(out).lines() {
        let line = line?;
        done |= line == "@done";
        said(run, &line.split('\t').collect::<Vec<_>>())?;
    }
    // Without its last line, the virtual machine has been killed or has failed.
    match done {
        true => Ok(()),
        false => Err(Failure::Impossible(
            "the virtual machine ended before its work was done".into(),
        )),
    }
}

/// What one line says.
fn said(run: &mut Run, fields: &[&str]) -> Outcome {
    let odd = || Failure::Impossible(format!("the virtual machine said {fields:?}"));
    match *fields {
        ["@part", what, steps] => run.progress.part(what, steps.parse().map_err(|_| odd())?),
        ["@step", what] => {
            run.progress.at(what);
            run.progress.step();
        }
        ["@turn"] => run.save()?,
        ["@fact", name, value] => run.setting(name, value),
        ["@skip", what] => run.skip(what.into()),
        ["@point", plot, series, x, y] => {
            // A place is a number or a name, which the plot decides.
            let x = match run.x_scale(plot).ok_or_else(odd)? {
                Scale::Names => X::Name(x.into()),
                _ => X::Number(x.parse().map_err(|_| odd())?),
            };
            run.figure(plot, series, x, y.parse().map_err(|_| odd())?);
        }
        ["@wrong", structure, what] => return Err(Failure::wrong(structure, what)),
        ["@done"] => {}
        // Anything else is a message for the reader.
        _ => run.progress.say(&fields.join(" ")),
    }
    Ok(())
}
