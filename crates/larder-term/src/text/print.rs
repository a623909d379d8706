//! Printing terms on one line, as `io:format("~0tp")` does.
//!
//! Lists of printable characters and printable binaries are printed as strings. The keys of a map
//! are in term order. Terms without a syntax are printed as Erlang prints them, except that another
//! node has its name instead of a number: `<0.17.0>`, `<a@b.17.0>`, `#Ref<0.3.2.1>`, `#Port<0.6>`,
//! `#Fun<lists.3.1234>`.

use crate::{
    maps::MapIndex,
    node::Node,
    order_key::{self, LocalNode},
    skip::{end_of, head},
    tags::*,
    view::{TermRef, View},
};
use std::fmt::{self, Write};

/// The text of a term.
///
/// # Complexity
/// Linear in the term, and O(n log n) in the keys of its maps. There is no recursion.
pub fn print(term: TermRef<'_>) -> String {
    printed(term, usize::MAX)
}

/// The beginning of the text of a term, for messages: at most this number of characters, and `…`
/// if there are more. The first pairs of a map of many are in no order.
///
/// # Complexity
/// Little more text is made than is returned, and a long binary is not read to its end.
pub fn beginning(term: TermRef<'_>, most: usize) -> String {
    // No character has more than four bytes.
    let mut out = printed(term, most.saturating_add(1).saturating_mul(4));
    if let Some((end, _)) = out.char_indices().nth(most) {
        out.truncate(end);
        out.push('…');
    }
    out
}

/// The text of a term; if it has more bytes than `limit`, at least as many of them.
fn printed(term: TermRef<'_>, limit: usize) -> String {
    let mut printer = Printer {
        bytes: term.bytes(),
        at: 0,
        out: String::new(),
        open: vec![Piece::Term],
        maps: None,
        limit,
    };
    // The stack has what is still to be written, the next piece last. So there is no recursion.
    while let Some(open) = printer.open.pop() {
        printer.step(open);
        if printer.out.len() >= limit {
            break;
        }
    }
    printer.out
}

/// The number of bytes of an integer that a message shows by its digits.
const LONG_INTEGER: usize = 1024;

/// A piece that is still to be printed. The stack of pieces has the innermost one last.
enum Piece {
    /// The term at the cursor.
    Term,
    /// This number of terms from the cursor on, each after a comma, and then this text.
    Rest(u64, &'static str),
    /// `|`, and the tail at the cursor.
    Tail,
    /// A fixed text.
    Text(&'static str),
    /// Pairs of a map: where their keys and values begin, the next pair last; the end of the map;
    /// and whether the next pair is the first one.
    Pairs(Vec<(usize, usize)>, usize, bool),
    /// The value at this offset.
    Value(usize),
}

struct Printer<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
    open: Vec<Piece>,
    maps: Option<MapIndex>,
    /// No more bytes of the text are wanted. Of a long leaf, list or map, only the beginning is
    /// read that has so many.
    limit: usize,
}

impl Printer<'_> {
    fn step(&mut self, open: Piece) {
        // Pieces are on a stack. So what is printed first is pushed last.
        match open {
            Piece::Term => self.term(),
            Piece::Text(text) => self.out.push_str(text),
            Piece::Rest(0, close) => self.out.push_str(close),
            Piece::Rest(left, close) => {
                self.out.push(',');
                self.open
                    .extend([Piece::Rest(left - 1, close), Piece::Term]);
            }
            Piece::Tail => {
                self.out.push('|');
                self.open.extend([Piece::Text("]"), Piece::Term]);
            }
            // Values are visited out of order. The cursor moves to the value, whose key has just
            // been printed.
            Piece::Value(offset) => {
                self.at = offset;
                self.out.push_str(" => ");
                self.open.push(Piece::Term);
            }
            Piece::Pairs(mut pairs, end, first) => match pairs.pop() {
                // All pairs are printed. Continue after the map, wherever the last value was.
                None => {
                    self.at = end;
                    self.out.push('}');
                }
                Some((key, value)) => {
                    if !first {
                        self.out.push(',');
                    }
                    self.at = key;
                    self.open.extend([
                        Piece::Pairs(pairs, end, false),
                        Piece::Value(value),
                        Piece::Term,
                    ]);
                }
            },
        }
    }

    /// Prints the term at the cursor if it is a leaf. Otherwise prints its opening bracket, and
    /// pushes its parts.
    fn term(&mut self) {
        let start = self.at;
        let (end, children) = head(self.bytes, start);
        self.at = end;
        match self.bytes[start] {
            TUPLE => self.sequence("{", children, "}"),
            // A list of printable characters is printed as a string.
            LIST => match string(&self.bytes[end..], children.min(self.limit as u64)) {
                Some((text, length)) => {
                    self.at = end + length;
                    write_quoted(&mut self.out, &text, '"');
                }
                None => self.sequence("[", children, "]"),
            },
            // The tail is printed after the elements, so it is pushed below them.
            ILIST => {
                self.open.push(Piece::Tail);
                self.sequence("[", children - 1, "");
            }
            MAP | TREE_MAP => self.map(start, children),
            FUN => {
                // The free variables are not part of the text.
                self.leaf(start, end);
                self.at = end_of(self.bytes, start);
            }
            _ => self.leaf(start, end),
        }
    }

    fn sequence(&mut self, open: &str, n: u64, close: &'static str) {
        self.out.push_str(open);
        match n {
            0 => self.out.push_str(close),
            _ => self.open.extend([Piece::Rest(n - 1, close), Piece::Term]),
        }
    }

    fn map(&mut self, start: usize, children: u64) {
        self.out.push_str("#{");
        let bytes = self.bytes;
        match children {
            0 => self.out.push('}'),
            // A single pair needs no sorting. The last piece that is pushed is printed first.
            2 => self.open.extend([
                Piece::Text("}"),
                Piece::Term,
                Piece::Text(" => "),
                Piece::Term,
            ]),
            // Each pair has a character or more, so no others are wanted.
            _ if children / 2 > self.limit as u64 => {
                let mut at = self.at;
                let mut next = || {
                    let begin = at;
                    at = end_of(bytes, begin);
                    begin
                };
                let mut pairs: Vec<_> = (0..self.limit).map(|_| (next(), next())).collect();
                pairs.reverse();
                self.open.push(Piece::Pairs(pairs, at, true));
            }
            _ => {
                // Sort the pairs by the term order of their keys.
                let index = self.maps.get_or_insert_with(|| MapIndex::new(bytes));
                let offsets = index.offsets(index.find(start));
                let pairs = sorted_pairs(
                    bytes,
                    (0..offsets.pairs()).map(|i| (offsets.key(i), offsets.value(i))),
                );
                self.open.push(Piece::Pairs(pairs, offsets.end(), true));
            }
        }
    }

    fn leaf(&mut self, start: usize, end: usize) {
        let leaf = TermRef::within(&self.bytes[start..end]);
        let (out, limit) = (&mut self.out, self.limit);
        // Writing to a string does not fail.
        let _ok = match leaf.view() {
            View::Bin(bytes) if bytes.len() > limit => {
                write_binary(out, whole_characters(&bytes[..limit]))
            }
            View::Bits { bytes, .. } if bytes.len() > limit => {
                write_bits(out, &bytes[..limit], 8 * limit)
            }
            // The digits of a long one take more than linear time.
            View::Big(n) if n.magnitude.len() > limit.max(LONG_INTEGER) => {
                write!(out, "an integer of {} bytes", n.magnitude.len())
            }
            _ => write_leaf(out, leaf),
        };
    }
}

/// The bytes, but for a character of UTF-8 that is cut at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
        _ => bytes,
    }
}

/// The offsets of the pairs of a map, in descending term order of the keys.
fn sorted_pairs(
    bytes: &[u8],
    offsets: impl Iterator<Item = (usize, usize)>,
) -> Vec<(usize, usize)> {
    // Sort by order keys. The pairs are popped from the end, so the least comes last.
    let mut pairs: Vec<_> = offsets
        .map(|(key, value)| {
            let mut order = Vec::new();
            let term = TermRef::within(&bytes[key..value]);
            order_key::encode_as(term, true, LocalNode::ByName, &mut order);
            (order, key, value)
        })
        .collect();
    pairs.sort_unstable();
    pairs
        .into_iter()
        .rev()
        .map(|(_, key, value)| (key, value))
        .collect()
}

/// The text of `n` terms, if all are printable characters, and the number of their bytes.
fn string(bytes: &[u8], n: u64) -> Option<(String, usize)> {
    let mut at = 0;
    let mut text = String::new();
    for _ in 0..n {
        // Most lists are no strings, and fail at the first element. That costs one look.
        if bytes[at] < SMALL && !(INT1..=INT8).contains(&bytes[at]) {
            return None;
        }
        let end = head(bytes, at).0;
        let code = TermRef::within(&bytes[at..end]).as_int()?;
        // Surrogates are integers, but no characters.
        text.push(
            u32::try_from(code)
                .ok()
                .and_then(char::from_u32)
                .filter(|&c| printable(c))?,
        );
        at = end;
    }
    Some((text, at))
}

/// Whether a character is printed as it is, or as one of the named escapes.
fn printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{8}'..='\r' | '\u{1b}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn write_leaf(out: &mut String, leaf: TermRef<'_>) -> fmt::Result {
    match leaf.view() {
        View::Int(n) => write!(out, "{n}"),
        View::Big(n) => write!(out, "{}", n.to_bigint()),
        View::Float(x) => write_float(out, x),
        View::Atom(atom) => write_atom(out, atom.text()),
        View::Nil => out.write_str("[]"),
        View::Bin(bytes) => write_binary(out, bytes),
        View::Bits { bytes, bits } => write_bits(out, bytes, bits),
        View::Pid(pid) => {
            out.push('<');
            write_node(out, pid.node)?;
            write!(out, ".{}.{}>", pid.id, pid.serial)
        }
        View::Port(port) => {
            out.push_str("#Port<");
            write_node(out, port.node)?;
            write!(out, ".{}>", port.id)
        }
        View::Ref(reference) => {
            out.push_str("#Ref<");
            // The words of a reference are printed from the last one on, as the emulator does.
            write_node(out, reference.node)?;
            reference
                .words()
                .rev()
                .try_for_each(|word| write!(out, ".{word}"))?;
            out.write_char('>')
        }
        View::Fun(fun) => {
            out.push_str("#Fun<");
            write_atom(out, fun.module.text())?;
            write!(out, ".{}.{}>", fun.old_index, fun.old_uniq)
        }
        View::Export {
            module,
            function,
            arity,
        } => {
            write!(out, "fun {module}:{function}/{arity}")
        }
        View::List(_) | View::Tuple(_) | View::Map(_) => Err(fmt::Error),
    }
}

fn write_node(out: &mut String, node: Node) -> fmt::Result {
    match node {
        Node::Local => out.write_char('0'),
        Node::External(name) => out.write_str(name.name.text()),
    }
}

/// The shortest digits from which a finite float's magnitude is read back, and the `place`: the
/// magnitude is 0.digits times ten to the `place`. Of two such runs of digits, returns the nearer
/// one, and at a tie the even one, as Erlang does.
fn shortest(x: f64) -> (String, i64) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(x.abs());
    // `ryu` gives the shortest digits, with a point or an exponent. Take the digits, and where the
    // point is.
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let place = exponent.parse::<i64>().unwrap_or(0) + whole.len() as i64;
    let all = [whole, fraction].concat();
    let digits = all.trim_start_matches('0');
    let place = place - (all.len() - digits.len()) as i64;
    (digits.trim_end_matches('0').to_owned(), place)
}

/// Writes the shortest digits from which the float is read back, with an exponent if that is
/// shorter.
fn write_float(out: &mut String, x: f64) -> fmt::Result {
    // The value is `0.DIGITS` times ten to the power of `place`.
    let (digits, place) = shortest(x);
    if x.is_sign_negative() {
        out.push('-');
    }
    // The length of the exponent, with its `e`, its dot, and the `.0` after a single digit. The
    // other form is chosen if it has fewer characters.
    let (exponent, n) = (place - 1, digits.len() as i64);
    let cost = exponent.to_string().len() as i64 + 1 + if n == 1 { 2 } else { 1 };
    let zeros = |out: &mut String, n: i64| (0..n).for_each(|_| out.push('0'));
    if x == 0.0 {
        out.write_str("0.0")
    } else if x.abs() >= 9_007_199_254_740_992.0
        || (place >= n && place - n + 2 > cost)
        || (place < 0 && 2 - place > cost)
    {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        write!(out, "{first}.{rest}e{exponent}")
    } else if place <= 0 {
        out.push_str("0.");
        zeros(out, -place);
        out.write_str(&digits)
    } else if place >= n {
        out.push_str(&digits);
        zeros(out, place - n);
        out.write_str(".0")
    } else {
        let (whole, fraction) = digits.split_at(place as usize);
        write!(out, "{whole}.{fraction}")
    }
}

fn write_binary(out: &mut String, bytes: &[u8]) -> fmt::Result {
    // Printable text is shown as a string. Everything else is shown byte by byte.
    match std::str::from_utf8(bytes) {
        Ok("") => out.write_str("<<>>"),
        Ok(text) if text.chars().all(printable) => {
            out.push_str("<<");
            write_quoted(out, text, '"');
            out.write_str(if text.is_ascii() { ">>" } else { "/utf8>>" })
        }
        _ => write_bits(out, bytes, bytes.len() * 8),
    }
}

fn write_bits(out: &mut String, bytes: &[u8], bits: usize) -> fmt::Result {
    out.push_str("<<");
    for (i, byte) in bytes.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        // The last byte may have fewer bits, and shows how many.
        match bits - 8 * i {
            8.. => write!(out, "{byte}")?,
            rest => write!(out, "{}:{rest}", byte >> (8 - rest))?,
        }
    }
    out.write_str(">>")
}

/// A text in quotes, with escapes.
fn write_quoted(out: &mut String, text: &str, quote: char) {
    out.push(quote);
    for c in text.chars() {
        // The character to write after a backslash. Those without such a form are written at once.
        let escape = match c {
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\u{b}' => 'v',
            '\u{8}' => 'b',
            '\u{c}' => 'f',
            '\u{1b}' => 'e',
            '\u{7f}' => 'd',
            '\\' => '\\',
            c if c == quote => quote,
            c if printable(c) => {
                out.push(c);
                continue;
            }
            // As Erlang does: three octal digits for control characters of Latin-1, and hexadecimal
            // ones beyond.
            c if (c as u32) < 0xA0 => {
                let _ok = write!(out, "\\{:03o}", c as u32);
                continue;
            }
            c => {
                let _ok = write!(out, "\\x{{{:X}}}", c as u32);
                continue;
            }
        };
        out.extend(['\\', escape]);
    }
    out.push(quote);
}

/// The words that are only atoms in quotes.
const RESERVED: &[&str] = &[
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse",
    "receive", "rem", "try", "when", "xor",
];

/// Whether a character of Latin-1 may begin an atom without quotes.
fn is_small_letter(c: char) -> bool {
    matches!(c, 'a'..='z' | 'ß'..='ö' | 'ø'..='ÿ')
}

/// Whether a character of Latin-1 may continue an atom without quotes.
fn is_name_char(c: char) -> bool {
    is_small_letter(c) || matches!(c, 'A'..='Z' | 'À'..='Ö' | 'Ø'..='Þ' | '0'..='9' | '_' | '@')
}

/// Writes the text of an atom, in quotes if needed.
pub(crate) fn write_atom(out: &mut impl Write, text: &str) -> fmt::Result {
    let mut chars = text.chars();
    // Without quotes: a small letter first, then letters, digits, `_` and `@`, and no reserved
    // word.
    let plain = chars.next().is_some_and(is_small_letter)
        && chars.all(is_name_char)
        && RESERVED.binary_search(&text).is_err();
    if plain {
        return out.write_str(text);
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    write_quoted(&mut quoted, text, '\'');
    out.write_str(&quoted)
}
