//! The studies in a BEAM: Larder and the real `ets` in one virtual machine, in turns.
//! `erlang/bench/larder_bench_study.erl` does the work. This module starts it, reads its output
//! line by line, and ends it.
//!
//! ```text
//!  @part   what  steps                              begins a part
//!  @step   what                                     one step of it is done
//!  @turn                                            the results so far may be written
//!  @fact   name  value                              of the virtual machine
//!  @point  plot  series  x  y                       one run's figure
//!  @skip   text                                     not measured, and why
//!  @wrong  structure  text                          a wrong answer: the run fails
//!  @done                                            all of it
//! ```
//! Fields are separated by tabs. To add a workload, add an entry to the list in that Erlang module.
//! Its plot is that of the study of 2003, or one of [`PLOTS`].

use super::ets_2003::{workloads, SIZES};
use super::run::Run;
use super::{Extent, Plan};
use crate::result::{ensure, Failure, Outcome, Scale, X};
use crate::time::memory;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub const STUDY: Plan = Plan {
    name: "erlang",
    title: "Larder and ets in one BEAM: the workloads of 2003, disjoint inserts, the 14 scenarios",
    source: "Fritchie 2003; the throughput benchmark of OTP's ets_SUITE",
    about: "Module larder beside module ets, called from Erlang, in one virtual machine and in turns. Needs erl, and a tree in which \
            `make build demo-beams bench-beams` was done (--root, the current folder if not said).",
    quick_seconds: 55.0,
    full_hours: 22.2,
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
    for [id, title, _] in workloads() {
        run.plots(WORKLOAD, &[("id", id), ("title", title)]);
    }
    let scenarios =
        "rows {K}, half of the range there at the beginning; a sequence of next is one operation";
    run.plots(PLOTS, &[("scenarios", scenarios)]);
    let mut sizes = run.options.sizes.clone();
    if sizes.is_empty() {
        let of_extent: &[usize] = run.extent.pick(&[700], &[700, 7_000, 70_000], &SIZES);
        sizes = of_extent.to_vec();
    }
    if run.extent != Extent::Full {
        run.skip("more than 70,000 keys, and scenarios on other structures than the defaults: asked for by --full alone".into());
    }
    // A row of ets, and keys in two orders, as lists.
    sizes.retain(|&n| run.fits(&format!("{n} keys"), n as f64 * 220.0));
    let mut child = start(run, &sizes)?;
    let outcome = listen(run, &mut child);
    if outcome.is_err() {
        // It may still be measuring.
        let _ = child.kill();
    }
    let status = child.wait()?;
    outcome?;
    ensure!(status.success(); "the virtual machine ended with {status}");
    run.check("every lookup, counter, traversal and deletion gave the right answer, and tables had the right number of rows");
    run.check("after each scenario, all rows are of the range and as many as the table counts");
    Ok(())
}

/// Starts the virtual machine. Its settings are in its environment.
fn start(run: &mut Run, sizes: &[usize]) -> Outcome<Child> {
    let root = run.options.root.clone();
    let folders = ["larder/ebin", "demo", "bench"].map(|f| root.join("_build").join(f));
    // Without the compiled modules, the virtual machine would start and fail later.
    let [larder, _, bench] = &folders;
    let modules = [
        larder.join("larder.beam"),
        bench.join("larder_bench_study.beam"),
    ];
    ensure!(modules.iter().all(|file| file.exists());
        "{} has no built Larder: `make build demo-beams bench-beams` there first, or say --root",
        root.display());
    let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
    let runs = run.runs(run.extent.pick(1, 3, 3));
    let (tiny, quick) = ((3_000, 2_000, 10), (50_000, 20_000, 25));
    let (inserts, range, ms) = run.extent.pick(tiny, quick, (10_000_000, 1_000_000, 3_000));
    let operations = run.extent.pick("2000", "30000", "1000000").to_string();
    let scenarios = run.extent.pick("all", "main", "all").to_string();
    let free = format!("{:.0}", memory::free().max(0.0));
    let flag = |on: bool| u8::from(on).to_string();
    // Whole seconds, or nothing without a limit.
    let left = run.clock.time_for_each(1.0, 1);
    let seconds = left.map_or(String::new(), |left| left.as_secs().to_string());
    run.setting("scenario keys", range);
    run.setting("scenario milliseconds", ms);
    run.setting("disjoint inserts", inserts);
    // Keys are literals of 124 bytes. From 8 million keys on they need more address space than the
    // emulator reserves for literals by default: 32 GiB here.
    Command::new("erl")
        .args(["-noinput", "+P", "1000000", "+MIscs", "32768", "-pa"])
        .args(&folders)
        .args(["-s", "larder_bench_study", "main"])
        .envs([
            ("LARDER_STUDY_SIZES", sizes.join(",")),
            ("LARDER_BENCH_RUNS", runs.to_string()),
            ("LARDER_STUDY_OPERATIONS", operations),
            ("LARDER_STUDY_INSERTS", inserts.to_string()),
            ("LARDER_BENCH_RANGE", range.to_string()),
            ("LARDER_BENCH_MS", ms.to_string()),
            ("LARDER_STUDY_ONLY", run.filter.0.join(",")),
            ("LARDER_STUDY_SCENARIOS", scenarios),
            ("LARDER_STUDY_SECONDS", seconds),
            ("LARDER_STUDY_STRICT", flag(run.clock.strict)),
            ("LARDER_STUDY_PLANT", flag(run.options.plant)),
            ("LARDER_STUDY_FREE", free),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| Failure::Impossible(format!("erl can't be started: {e}")))
}

/// Reads the output of the virtual machine to its end.
fn listen(run: &mut Run, child: &mut Child) -> Outcome {
    let out = child.stdout.take().expect("its output is piped");
    let mut done = false;
    for line in BufReader::new(out).lines() {
        let line = line?;
        done |= line == "@done";
        read_line(run, &line.split('\t').collect::<Vec<_>>())?;
    }
    ensure!(done; "the virtual machine ended before its work was done");
    Ok(())
}

/// Executes a line. A line of another form is a message for the user.
fn read_line(run: &mut Run, fields: &[&str]) -> Outcome {
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
            let x = match run.find_plot(plot).ok_or_else(odd)?.x_scale {
                Scale::Names => X::Name(x.into()),
                _ => X::Number(x.parse().map_err(|_| odd())?),
            };
            run.figure(plot, series, x, y.parse().map_err(|_| odd())?);
        }
        ["@wrong", structure, what] => return Err(Failure::wrong(structure, what)),
        ["@done"] => {}
        _ => run.progress.say(&fields.join(" ")),
    }
    Ok(())
}
