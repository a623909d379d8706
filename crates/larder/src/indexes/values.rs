//! The values that a row has in an index, as order keys: bytes that compare as the terms do.

use super::definition::{IndexDefinition, IndexOn};
use crate::error::Error;
use crate::programs::{Context, KeyAccess, Outcome, Plan, Program, Scratch};
use larder_index::Values;
use larder_term::object::{has_same_element, ObjectView};
use larder_term::{order_key, TermRef};
use smallvec::SmallVec;

/// Extracts the values of an index from a row.
pub(crate) struct Extractor {
    on: IndexedPart,
    /// Whether the elements of the value, a list, are the values.
    each: bool,
}

enum IndexedPart {
    Element(usize),
    Expression(Program),
}

/// Runs a program on a row. This is not inlined: the interpreter of match specifications is inlined
/// in scans of tables, and the compiler stops to do that if it is inlined in too many other places.
#[inline(never)]
fn run<'a>(
    program: &'a Program,
    row: &'a ObjectView<'a>,
    context: &'a Context<'a>,
    scratch: &'a mut Scratch,
) -> Option<Outcome<'a>> {
    program.run(row, context, scratch)
}

/// Whether a value is among those of a row, which `Extractor::values` has sorted. A list that is
/// indexed with `each` may have many.
pub(super) fn has(values: &Values, value: &[u8]) -> bool {
    values.has_sorted(value)
}

/// The longest stored term that is kept beside a value that is looked for.
const MAX_STORED: usize = 32;

/// Bytes that take no allocation if they are short, as those of most values.
type ShortBytes = SmallVec<[u8; MAX_STORED]>;

/// A value that is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchValue {
    /// As an order key.
    pub(super) value: ShortBytes,
    /// As a stored term; empty if that is long or has handles. Most rows that have the value have
    /// it in this encoding.
    stored: ShortBytes,
}

impl SearchValue {
    /// `buffer` is for the order key.
    pub(super) fn new(term: TermRef<'_>, buffer: &mut Vec<u8>) -> Self {
        buffer.clear();
        order_key::encode(term, buffer);
        // The copy counts no handles. Their memory could become that of other ones.
        let is_kept = term.bytes().len() <= MAX_STORED && !term.has_handles();
        SearchValue {
            value: ShortBytes::from_slice(buffer),
            stored: ShortBytes::from_slice(if is_kept { term.bytes() } else { &[] }),
        }
    }
}

/// Checks rows for values of an index.
///
/// Rows that are checked one after the other often have the same value, and then mostly in the same
/// encoding. So the element in which a value was found last is remembered, and compared as bytes.
pub(super) struct ValueCheck<'a> {
    extractor: &'a Extractor,
    /// The value, if all checks are for the same one.
    one_value: Option<&'a [u8]>,
    scratch: &'a mut Scratch,
    /// The values of the last row that was examined.
    indexed: &'a mut Values,
    /// The element that the answer was found for, as it was stored; empty if there was none. At
    /// first it is the value that is looked for. Handles in it aren't counted: they are compared,
    /// not followed, and name the same memory as long as the caller's epoch is pinned.
    element: &'a mut Vec<u8>,
    /// The position of that element; 0 if there is none.
    position: usize,
    /// The answer for `one_value`.
    has_one: bool,
}

impl<'a> ValueCheck<'a> {
    pub(super) fn new(
        extractor: &'a Extractor,
        wanted: Option<&'a SearchValue>,
        scratch: &'a mut Scratch,
        indexed: &'a mut Values,
        element: &'a mut Vec<u8>,
    ) -> Self {
        indexed.clear();
        // A row whose element is stored as the value that is looked for has it.
        let stored = wanted.map_or(&[][..], |wanted| &wanted.stored);
        let position = extractor.position().filter(|_| !stored.is_empty());
        element.clear();
        element.extend_from_slice(stored);
        ValueCheck {
            extractor,
            one_value: wanted.map(|wanted| &wanted.value[..]),
            scratch,
            indexed,
            element,
            position: position.unwrap_or(0),
            has_one: true,
        }
    }

    /// Whether a row has a value, which is `one_value` if there is one.
    #[inline(always)]
    pub(super) fn has(&mut self, row: &ObjectView<'_>, value: &[u8]) -> bool {
        // If the element is the same as that of the last answer, so is this one.
        if !row.element_is(self.position, self.element) {
            self.examine(row);
        }
        match self.one_value {
            Some(_) => self.has_one,
            None => has(self.indexed, value),
        }
    }

    /// Reads the values of a row.
    #[inline(never)]
    fn examine(&mut self, row: &ObjectView<'_>) {
        self.extractor.values(row, self.scratch, self.indexed);
        self.element.clear();
        self.position = match self.extractor.element_of(row) {
            Some((position, term)) => {
                self.element.extend_from_slice(term.bytes());
                position
            }
            None => 0,
        };
        self.has_one = self.one_value.is_some_and(|one| has(self.indexed, one));
    }

    /// The memory for programs, between two checks.
    pub(super) fn scratch(&mut self) -> &mut Scratch {
        self.scratch
    }
}

impl Extractor {
    /// The position of the element that is the value of a row, if the index is on an element.
    fn position(&self) -> Option<usize> {
        match self.on {
            IndexedPart::Element(position) if !self.each => Some(position),
            _ => None,
        }
    }

    /// That element of a row, and its position.
    fn element_of<'r>(&self, row: &ObjectView<'r>) -> Option<(usize, TermRef<'r>)> {
        let position = self.position()?;
        Some((position, row.element(position)?))
    }

    /// Whether a row is replaced by one with the same element, as `is_same_element` says. The rows
    /// are values under one key. `false` if these alone don't decide it.
    #[inline]
    pub(super) fn keeps_element(&self, old: &[u8], new: &[u8], keypos: usize) -> bool {
        match self.on {
            IndexedPart::Element(position) => {
                has_same_element(old, new, keypos, position) == Some(true)
            }
            IndexedPart::Expression(_) => false,
        }
    }

    /// Whether two rows have the same element, stored as the same bytes. If so, they have the same
    /// values. `false` if the index is on an expression.
    #[inline]
    pub(super) fn is_same_element(&self, one: &ObjectView<'_>, other: &ObjectView<'_>) -> bool {
        let IndexedPart::Element(position) = self.on else {
            return false;
        };
        // The end of the element is searched for in one row only.
        match one.element(position) {
            Some(term) => other.element_is(position, term.bytes()),
            None => other.element(position).is_none(),
        }
    }

    pub(super) fn of(definition: &IndexDefinition) -> Result<Self, Error> {
        let on = match (definition.program()?, &definition.on) {
            (Some(program), _) => IndexedPart::Expression(program),
            (None, IndexOn::Element(position)) => IndexedPart::Element(*position),
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
            _ if self.each => Plan::AllKeys,
            IndexedPart::Element(position) => {
                program.plan_of_element(*position, KeyAccess::Ordered)
            }
            // Guards of the program that compare this index's expression limit its values.
            IndexedPart::Expression(expression) => {
                program.plan_of_expression(expression, KeyAccess::Ordered)
            }
        }
    }

    /// Writes the values of a row to `out`, each once and in order.
    pub(crate) fn values(&self, row: &ObjectView<'_>, scratch: &mut Scratch, out: &mut Values) {
        out.clear();
        match &self.on {
            // A row that is too short has no value.
            IndexedPart::Element(position) => {
                if let Some(term) = row.element(*position) {
                    self.put(term, out);
                }
            }
            IndexedPart::Expression(program) => {
                match run(program, row, &Context::none(), scratch) {
                    Some(Outcome::Term(term)) => self.put(term, out),
                    Some(Outcome::Object) => {
                        let mut tuple = Vec::new();
                        row.to_tuple(&mut tuple);
                        self.put(crate::raw::stored(&tuple), out);
                    }
                    // The expression fails for this row, so the row has no value.
                    None => {}
                }
            }
        }
    }

    fn put(&self, term: TermRef<'_>, out: &mut Values) {
        // One value: the term itself.
        if !self.each {
            let from = out.bytes.len();
            order_key::encode(term, &mut out.bytes);
            return out.end(from);
        }
        // With `each`, a term that is no list has no values.
        let Some(elements) = term.as_list() else {
            return;
        };
        let encode = |element| {
            let mut value = Vec::new();
            order_key::encode(element, &mut value);
            value
        };
        let mut values: Vec<Vec<u8>> = elements.map(encode).collect();
        // Each value once: an entry says that a row has it, not how often.
        values.sort_unstable();
        values.dedup();
        values.iter().for_each(|value| out.push(value));
    }
}
