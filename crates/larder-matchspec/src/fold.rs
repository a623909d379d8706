//! Computing constant expressions while a specification is compiled.

use crate::{
    constant::{Arguments, Constants},
    gen::{Gen, Ops},
    head::Match,
    ir::{Ir, NodeId},
    machine::Machine,
    outcome::Context,
    row::{Fields, Row},
    test::Reader,
    value::Scratch,
};

/// The bytes of the value of an expression that looks at no row; `None` if it fails.
pub(crate) fn constant(ir: &Ir, pool: &mut Vec<u8>, id: NodeId) -> Option<Vec<u8>> {
    let mut ops = Ops::new();
    let reader = Reader {
        ir,
        holes: &[],
        places: &[],
        arity: None,
    };
    Gen {
        reader,
        pool,
        ops: &mut ops,
    }
    .value(id);
    let mut scratch = Scratch::new();
    let (row, context) = (Row::none(), Context::none());
    let mut fields = Fields::of(&row);
    let (head, arguments) = (Match::default(), Arguments::new());
    Machine::on(
        &head,
        (&row, &mut fields),
        Constants::of(pool, &arguments),
        &context,
        (&mut scratch, false),
        |machine| {
            machine.run(&ops).ok()?;
            let value = machine.pop();
            let value = machine.flat(value);
            Some(machine.with(value, |term| term.bytes().to_vec()))
        },
    )
}
