//! Compiles a specification and runs it on a row, again and again: something for a profiler to look
//! at.
//!
//! `cargo run --release --example instructions -- compile 1000 "[{{7,'$1'},[],['$1']}]"`, or `run`
//! in place of `compile`; the row is `{7,49}`.

use larder_matchspec::{Context, KeyAccess, Plan, Program, Scratch};
use larder_term::{
    object::{self, KeyForm, ObjectBuf},
    Term,
};

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(what), Some(times), Some(spec)) = (args.next(), args.next(), args.next()) else {
        panic!("compile or run, how many times, a specification");
    };
    let spec: Term = spec.parse().expect("a specification");
    let times: usize = times.parse().expect("a number");
    let mut buffer = ObjectBuf::new();
    let row: Term = "{7,49}".parse().expect("a row");
    let form = KeyForm::Hash { legacy_zero: false };
    object::encode(row.as_ref(), 1, form, false, &mut buffer).expect("a row");
    let mut plain = Vec::new();
    let row = buffer.view(1, &mut plain);
    let (mut scratch, context) = (Scratch::new(), Context::none());
    let program = Program::compile(spec.as_ref()).expect("a program");
    let mut found = 0;
    for _ in 0..times {
        if what == "compile" {
            let program = Program::compile(spec.as_ref()).expect("a program");
            let plan = program.plan(1, KeyAccess::Hash);
            found += usize::from(matches!(plan, Plan::Keys(_)));
        } else {
            found += usize::from(program.run(&row, &context, &mut scratch).is_some());
        }
    }
    println!("{found} of {times}");
}
