//! The values that a row has in an index, as order keys: bytes that compare as the terms do.

use super::definition::{IndexDefinition, IndexOn};
use crate::error::Error;
use larder_index::Values;
use larder_matchspec::{Context, KeyOrder, Outcome, Plan, Program, Scratch};
use larder_term::object::ObjectView;
use larder_term::{order_key, TermRef};

/// Extracts the values of an index from a row.
pub(crate) struct Extractor {
    on: On,
    /// Whether the elements of the value, a list, are the values.
    each: bool,
}

enum On {
    Element(usize),
    Expression(Program),
}

/// Runs a program on a row. This is not inlined: the interpreter of match specifications is inlined
/// in scans of tables, and the compiler stops to do that if it is inlined in too many other places.
#[inline(never)]
pub(super) fn run<'a>(
    program: &'a Program,
    row: &'a ObjectView<'a>,
    context: &'a Context<'a>,
    scratch: &'a mut Scratch,
) -> Option<Outcome<'a>> {
    program.run(row, context, scratch)
}

/// Whether a value is among others, which are usually few.
pub(super) fn has(values: &Values, value: &[u8]) -> bool {
    values.iter().any(|other| other == value)
}

impl Extractor {
    pub(super) fn of(definition: &IndexDefinition) -> Result<Self, Error> {
        let on = match (definition.program()?, &definition.on) {
            (Some(program), _) => On::Expression(program),
            (None, IndexOn::Element(position)) => On::Element(*position),
            (None, IndexOn::Expression(_)) => unreachable!("an expression has a program"),
        };
        Ok(Extractor {
            on,
            each: definition.each,
        })
    }

    /// The values that rows matching a program can have. Nothing is known about the elements of
    /// lists.
    pub(super) fn plan(&self, program: &Program) -> Plan {
        match &self.on {
            _ if self.each => Plan::Full,
            On::Element(position) => program.plan_of_element(*position, KeyOrder::Ordered),
            // Guards of the program that compare this index's expression limit its values.
            On::Expression(own) => program.plan_of_expression(own, KeyOrder::Ordered),
        }
    }

    /// Writes the values of a row to `out`, each once.
    pub(crate) fn values(&self, row: &ObjectView<'_>, scratch: &mut Scratch, out: &mut Values) {
        out.clear();
        match &self.on {
            On::Element(position) => {
                if let Some(term) = row.element(*position) {
                    self.put(term, out);
                }
            }
            On::Expression(program) => match run(program, row, &Context::none(), scratch) {
                Some(Outcome::Term(term)) => self.put(term, out),
                Some(Outcome::Object) => {
                    let mut tuple = Vec::new();
                    row.to_tuple(&mut tuple);
                    self.put(crate::raw::stored(&tuple), out);
                }
                None => {}
            },
        }
    }

    /// Whether a row has a value. Leaves the row's values in `out`.
    #[inline]
    pub(super) fn has(
        &self,
        row: &ObjectView<'_>,
        value: &[u8],
        scratch: &mut Scratch,
        out: &mut Values,
    ) -> bool {
        self.values(row, scratch, out);
        has(out, value)
    }

    fn put(&self, term: TermRef<'_>, out: &mut Values) {
        if !self.each {
            let from = out.bytes.len();
            order_key::encode(term, &mut out.bytes);
            return out.end(from);
        }
        let Some(elements) = term.as_list() else {
            return;
        };
        let encode = |element| {
            let mut value = Vec::new();
            order_key::encode(element, &mut value);
            value
        };
        let mut values: Vec<Vec<u8>> = elements.map(encode).collect();
        values.sort_unstable();
        values.dedup();
        values.iter().for_each(|value| out.push(value));
    }
}
