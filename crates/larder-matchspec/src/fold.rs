//! Constant folding: computing constant expressions while a specification is compiled.

use crate::{
    constant::{Arguments, Constants},
    gen::{Gen, Ops},
    head::CompiledHead,
    ir::{Ir, NodeId},
    machine::{Environment, Machine, Memory},
    outcome::Context,
    row::Row,
    test::Reader,
    value::Scratch,
};

/// Evaluates an expression that doesn't read the row. Returns the encoded value; `None` if the
/// evaluation fails.
pub(crate) fn constant(ir: &Ir, pool: &mut Vec<u8>, id: NodeId) -> Option<Vec<u8>> {
    // The same generator and the same machine as for a row, so that a folded expression has the
    // value that it would have had.
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
    // There is no row. An expression that reads one isn't folded.
    let mut scratch = Scratch::new();
    let (mut row, context) = (Row::none(), Context::none());
    let (head, arguments) = (CompiledHead::default(), Arguments::new());
    Machine::on(
        &head,
        &mut row,
        Environment {
            constants: Constants::of(pool, &Vec::new(), &arguments),
            context: &context,
        },
        Memory {
            scratch: &mut scratch,
            many: false,
        },
        |machine| {
            // A failure is not folded. The expression must fail, or give `'EXIT'`, when the program
            // runs on a row.
            machine.run(&ops).ok()?;
            let value = machine.pop();
            let value = machine.flat(value);
            Some(machine.with(value, |term| term.bytes().to_vec()))
        },
    )
}
