//! Parsing the text of a term.
//!
//! There are two passes, without recursion. The first turns tokens into events, in order; the head
//! of a container gets its count when the container is closed. The second passes the events to an
//! [`Encoder`], which needs the counts first.

use super::{
    lexer::{Lexer, Token},
    ParseError,
};
use crate::{
    atom::Atom,
    encoder::{Encoder, MapToken},
    node::Node,
    term::Term,
};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::ToPrimitive;
use std::str::FromStr;

/// An event: a step of writing the term.
enum Event {
    Integer(BigInt),
    Float(f64),
    Atom(Atom),
    Bits(Vec<u8>, usize),
    Pid(u32, u32),
    Port(u64),
    Ref(Vec<u32>),
    Export(Atom, Atom, u8),
    Tuple(usize),
    List(usize),
    Improper(usize),
    Map(usize),
    EndMap,
    /// The former head of a list that has become part of the list whose tail it was.
    Merged,
}

/// An open container.
struct OpenContainer {
    kind: Bracket,
    /// The index of its head among the events.
    head: usize,
    /// The number of terms in it so far.
    count: usize,
    /// The index of the first event of a list's tail, once its `|` has been read.
    tail: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Tuple,
    List,
    Map,
}

/// What the parser expects next.
enum Wanted {
    /// A term. The flag says whether the container may also be closed.
    Term(bool),
    /// `,` or `|` or `=>` or the end of the container.
    Separator,
}

/// Parses one term, with an optional full stop after it.
///
/// # Errors
/// [`ParseError`] says where and why. Atoms in the text are created, and never removed. So don't
/// parse untrusted text.
///
/// # Complexity
/// Linear in the text, without recursion.
pub fn parse(text: &str) -> Result<Term, ParseError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        events: Vec::new(),
        open: Vec::new(),
    };
    // 1. Tokens to events. 2. Events to bytes.
    parser.run()?;
    let mut written = Ok(());
    let term = Term::build(|encoder| written = replay(&parser.events, encoder));
    written.map_err(|what| parser.lexer.error(what))?;
    term.map_err(|e| parser.lexer.error(e.to_string()))
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    events: Vec<Event>,
    open: Vec<OpenContainer>,
}

impl FromStr for Term {
    type Err = ParseError;

    fn from_str(source: &str) -> Result<Term, ParseError> {
        parse(source)
    }
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), ParseError> {
        // The parser has two states: a term comes next, or a separator does.
        let mut wanted = Wanted::Term(false);
        loop {
            let token = self.lexer.next()?;
            wanted = match wanted {
                Wanted::Term(may_close) => self.term(token, may_close)?,
                Wanted::Separator => self.separator(token)?,
            };
            // The outermost term is complete.
            if self.open.is_empty() && matches!(wanted, Wanted::Separator) {
                return self.end();
            }
        }
    }

    fn end(&mut self) -> Result<(), ParseError> {
        // A full stop may follow, as in files of terms.
        let mut token = self.lexer.next()?;
        if token == Token::Punctuation('.') {
            token = self.lexer.next()?;
        }
        match token {
            Token::End => Ok(()),
            other => Err(self.unexpected("the end of the text", &other)),
        }
    }

    fn unexpected(&self, wanted: &str, found: &Token) -> ParseError {
        let found = found.describe();
        self.lexer
            .error(format!("expected {wanted}, found {found}"))
    }

    fn term(&mut self, token: Token, may_close: bool) -> Result<Wanted, ParseError> {
        let event = match token {
            Token::Integer(n) => Event::Integer(n),
            Token::Float(x) => Event::Float(x),
            Token::Fun => self.export()?,
            Token::Atom(text) => Event::Atom(self.atom(&text)?),
            // A string may be empty, which is `[]`. So it makes its events itself.
            Token::String(text) => return self.string(text),
            Token::Pid(numbers) => self.pid(&numbers)?,
            Token::Port(numbers) => self.port(&numbers)?,
            Token::Ref(numbers) => self.reference(&numbers)?,
            Token::OpenBinary => self.binary()?,
            // A sign is a token of its own.
            Token::Punctuation('-') => self.negative()?,
            Token::Punctuation('+') => self.signed(false)?,
            Token::Punctuation('{') => return Ok(self.begin(Bracket::Tuple)),
            Token::Punctuation('[') => return Ok(self.begin(Bracket::List)),
            // `#` begins a map only: records and tokens with `#` of other kinds are no terms.
            Token::Punctuation('#') => {
                self.expect(Token::Punctuation('{'))?;
                return Ok(self.begin(Bracket::Map));
            }
            // `{}` and `[]` close what has just been opened. After a comma a term must follow.
            Token::Punctuation(close @ ('}' | ']')) if may_close => return self.close(close),
            other => return Err(self.unexpected("a term", &other)),
        };
        self.events.push(event);
        Ok(self.complete())
    }

    /// Called when a term is complete.
    fn complete(&mut self) -> Wanted {
        if let Some(open) = self.open.last_mut() {
            open.count += 1;
        }
        Wanted::Separator
    }

    fn begin(&mut self, kind: Bracket) -> Wanted {
        // The count isn't known yet. The event is replaced when the container is closed.
        let head = self.events.len();
        self.events.push(match kind {
            Bracket::Tuple => Event::Tuple(0),
            Bracket::List => Event::List(0),
            Bracket::Map => Event::Map(0),
        });
        self.open.push(OpenContainer {
            kind,
            head,
            count: 0,
            tail: None,
        });
        Wanted::Term(true)
    }

    /// Adds the events of a string literal: a list of characters.
    fn string(&mut self, text: Vec<char>) -> Result<Wanted, ParseError> {
        self.events.push(Event::List(text.len()));
        let codes = text
            .into_iter()
            .map(|c| Event::Integer(u32::from(c).into()));
        self.events.extend(codes);
        Ok(self.complete())
    }

    fn separator(&mut self, token: Token) -> Result<Wanted, ParseError> {
        let Some(open) = self.open.last_mut() else {
            return Err(self.unexpected("the end of the text", &token));
        };
        // In a map every other term is a key, which `=>` must follow.
        let is_key = open.kind == Bracket::Map && open.count % 2 == 1;
        match token {
            Token::Arrow if is_key => Ok(Wanted::Term(false)),
            found if is_key => Err(self.unexpected("'=>'", &found)),
            Token::Punctuation(',') if open.tail.is_none() => Ok(Wanted::Term(false)),
            Token::Punctuation('|') if open.kind == Bracket::List && open.tail.is_none() => {
                // One more term follows, and then only the bracket.
                open.tail = Some(self.events.len());
                Ok(Wanted::Term(false))
            }
            Token::Punctuation(close @ ('}' | ']')) => self.close(close),
            found => Err(self.unexpected("',' or the end of the list, tuple or map", &found)),
        }
    }

    fn close(&mut self, with: char) -> Result<Wanted, ParseError> {
        // Only square brackets tell a list from the others: `}` closes tuples and maps.
        let fits = |open: &OpenContainer| (with == ']') == (open.kind == Bracket::List);
        let last = match self.open.last() {
            Some(open) if fits(open) => self.open.pop(),
            _ => None,
        };
        let Some(open) = last else {
            return Err(self.unexpected("another closing bracket", &Token::Punctuation(with)));
        };
        // The count is known now. Put it into the head, which lies before the events of the
        // children.
        match open.kind {
            Bracket::Tuple => self.events[open.head] = Event::Tuple(open.count),
            Bracket::Map => {
                self.events[open.head] = Event::Map(open.count / 2);
                self.events.push(Event::EndMap);
            }
            Bracket::List => self.events[open.head] = self.list_head(&open),
        }
        Ok(self.complete())
    }

    /// The head of a complete list. If the tail is a list itself, it becomes part of this list.
    fn list_head(&mut self, open: &OpenContainer) -> Event {
        let Some(tail) = open.tail else {
            return Event::List(open.count);
        };
        // The last term is the tail. If it is a list, its elements become those of this list, and
        // its head is removed.
        let before = open.count - 1;
        match self.events[tail] {
            Event::List(n) => {
                self.events[tail] = Event::Merged;
                Event::List(before + n)
            }
            Event::Improper(n) => {
                self.events[tail] = Event::Merged;
                Event::Improper(before + n)
            }
            _ => Event::Improper(before),
        }
    }

    fn expect(&mut self, wanted: Token) -> Result<(), ParseError> {
        let found = self.lexer.next()?;
        if found == wanted {
            return Ok(());
        }
        Err(self.unexpected(&wanted.describe(), &found))
    }

    fn atom(&self, text: &str) -> Result<Atom, ParseError> {
        Atom::try_new(text).map_err(|e| self.lexer.error(e.to_string()))
    }

    fn negative(&mut self) -> Result<Event, ParseError> {
        self.signed(true)
    }

    fn signed(&mut self, negative: bool) -> Result<Event, ParseError> {
        match self.lexer.next()? {
            // A sign belongs to the number after it, since terms have no operators.
            Token::Integer(n) if negative => Ok(Event::Integer(-n)),
            Token::Float(x) if negative => Ok(Event::Float(-x)),
            Token::Integer(n) => Ok(Event::Integer(n)),
            Token::Float(x) => Ok(Event::Float(x)),
            other => Err(self.unexpected("a number after the sign", &other)),
        }
    }

    /// Parses `m:f/1` after `fun`.
    fn export(&mut self) -> Result<Event, ParseError> {
        let module = self.name("a module's name after 'fun'")?;
        self.expect(Token::Punctuation(':'))?;
        let function = self.name("a function's name")?;
        self.expect(Token::Punctuation('/'))?;
        match self.lexer.next()? {
            Token::Integer(n) => match n.to_u8() {
                Some(arity) => Ok(Event::Export(module, function, arity)),
                None => Err(self.lexer.error("an arity is 0 to 255")),
            },
            other => Err(self.unexpected("an arity", &other)),
        }
    }

    fn name(&mut self, what: &str) -> Result<Atom, ParseError> {
        match self.lexer.next()? {
            Token::Atom(text) => self.atom(&text),
            other => Err(self.unexpected(what, &other)),
        }
    }

    fn own_node<'n>(&self, numbers: &'n [u64], what: &str) -> Result<&'n [u64], ParseError> {
        match numbers {
            [0, rest @ ..] => Ok(rest),
            _ => Err(self.lexer.error(format!(
                "only {what} of this node (the first number 0) can be read"
            ))),
        }
    }

    fn pid(&self, numbers: &[u64]) -> Result<Event, ParseError> {
        if let [id, serial] = self.own_node(numbers, "a pid")? {
            if let (Ok(id), Ok(serial)) = (u32::try_from(*id), u32::try_from(*serial)) {
                return Ok(Event::Pid(id, serial));
            }
        }
        Err(self.lexer.error("a pid has three numbers below 2^32"))
    }

    fn port(&self, numbers: &[u64]) -> Result<Event, ParseError> {
        match self.own_node(numbers, "a port")? {
            [id] => Ok(Event::Port(*id)),
            _ => Err(self.lexer.error("a port has two numbers")),
        }
    }

    /// The words are printed from the highest one on, and stored from the lowest one on.
    fn reference(&self, numbers: &[u64]) -> Result<Event, ParseError> {
        let words = self.own_node(numbers, "a reference")?;
        let words: Option<Vec<u32>> = words.iter().rev().map(|&n| u32::try_from(n).ok()).collect();
        match words {
            Some(words) if (1..=5).contains(&words.len()) => Ok(Event::Ref(words)),
            _ => Err(self
                .lexer
                .error("a reference has two to six numbers below 2^32")),
        }
    }

    /// Parses the segments up to `>>`.
    fn binary(&mut self) -> Result<Event, ParseError> {
        let mut bits = BitBuf::default();
        // An empty binary has no segments, and no comma.
        let mut token = self.lexer.next()?;
        if token == Token::CloseBinary {
            return Ok(Event::Bits(bits.bytes, 0));
        }
        loop {
            token = self.segment(token, &mut bits)?;
            match token {
                Token::CloseBinary => return Ok(Event::Bits(bits.bytes, bits.len)),
                Token::Punctuation(',') => token = self.lexer.next()?,
                other => return Err(self.unexpected("',' or '>>'", &other)),
            }
        }
    }

    /// Parses one segment. Returns the token after it.
    fn segment(&mut self, first: Token, bits: &mut BitBuf) -> Result<Token, ParseError> {
        match first {
            Token::String(text) => self.string_segment(&text, bits),
            Token::Integer(n) => self.integer_segment(n, bits),
            Token::Punctuation('-') => match self.signed(true)? {
                Event::Integer(n) => self.integer_segment(n, bits),
                _ => Err(self
                    .lexer
                    .error("a float segment is not read: write its bytes")),
            },
            other => Err(self.unexpected("an integer or a string in a binary", &other)),
        }
    }

    fn string_segment(&mut self, text: &[char], bits: &mut BitBuf) -> Result<Token, ParseError> {
        // A string in a binary is a sequence of bytes, unless `/utf8` follows.
        let next = self.lexer.next()?;
        if next == Token::Punctuation('/') {
            match self.lexer.next()? {
                Token::Atom(kind) if kind == "utf8" => {}
                other => return Err(self.unexpected("utf8", &other)),
            }
            let text: String = text.iter().collect();
            text.bytes().for_each(|byte| bits.push(u64::from(byte), 8));
            return self.lexer.next();
        }
        // Without a type, each character is one byte.
        for &c in text {
            let byte = u8::try_from(u32::from(c)).map_err(|_| {
                self.lexer
                    .error("a character above 255 in a binary needs /utf8")
            })?;
            bits.push(u64::from(byte), 8);
        }
        Ok(next)
    }

    fn integer_segment(&mut self, n: BigInt, bits: &mut BitBuf) -> Result<Token, ParseError> {
        // Without a size, an integer has eight bits.
        let next = self.lexer.next()?;
        if next != Token::Punctuation(':') {
            bits.push_int(&n, 8);
            return Ok(next);
        }
        match self.lexer.next()? {
            // The limit keeps a short text from asking for gigabytes.
            Token::Integer(size) => match size.to_usize().filter(|&size| size <= MAX_SEGMENT) {
                Some(size) => bits.push_int(&n, size),
                None => return Err(self.lexer.error("a segment has at most 2^24 bits")),
            },
            other => return Err(self.unexpected("a size in bits", &other)),
        }
        self.lexer.next()
    }
}

/// The greatest number of bits of a segment, so that a short text can't cause a large allocation.
const MAX_SEGMENT: usize = 1 << 24;

/// A bitstring to which bits are appended.
#[derive(Default)]
struct BitBuf {
    bytes: Vec<u8>,
    len: usize,
}

impl BitBuf {
    /// Appends the low `size` bits of `value`, from the highest one on. `size` is at most 64.
    fn push(&mut self, value: u64, size: usize) {
        // Bits are added from the highest one on. A new byte begins with zeros.
        for i in (0..size).rev() {
            if self.len.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = (value >> i & 1) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= bit << (7 - self.len % 8);
            }
            self.len += 1;
        }
    }

    /// Appends the low `size` bits of an integer of any size.
    fn push_int(&mut self, n: &BigInt, size: usize) {
        // A negative number is written in two's complement of `size` bits.
        let modulus = BigUint::from(1u8) << size;
        let low = match n.sign() {
            Sign::Minus => (&modulus - n.magnitude() % &modulus) % &modulus,
            _ => n.magnitude() % &modulus,
        };
        let digits = low.to_bytes_be();
        // Fill up with zero bits on the left.
        let zeros = size.saturating_sub(digits.len() * 8);
        (0..zeros).for_each(|_| self.push(0, 1));
        // The first digit has the bits that don't fill a byte. All others have eight.
        let mut first = (size - zeros) % 8;
        if first == 0 {
            first = 8;
        }
        for (i, &byte) in digits.iter().enumerate().filter(|_| size > 0) {
            self.push(u64::from(byte), if i == 0 { first } else { 8 });
        }
    }
}

/// Passes the events to the encoder. The error says what can't be encoded.
fn replay(events: &[Event], encoder: &mut Encoder<'_>) -> Result<(), String> {
    let mut maps: Vec<MapToken> = Vec::new();
    for event in events {
        match event {
            Event::Integer(n) => encoder.bigint(n),
            Event::Float(x) => encoder.float(*x),
            Event::Atom(atom) => encoder.atom(*atom),
            Event::Bits(bytes, bits) => encoder.bits(bytes, *bits),
            // An identifier in a text is always of this node, as it is in the shell.
            Event::Pid(id, serial) => encoder.pid(Node::Local, *id, *serial),
            Event::Port(id) => encoder.port(Node::Local, *id),
            Event::Ref(words) => encoder.reference(Node::Local, words),
            Event::Export(module, function, arity) => encoder.export(*module, *function, *arity),
            Event::Tuple(n) => encoder.begin_tuple(*n),
            Event::List(n) => encoder.begin_list(*n),
            Event::Improper(n) => encoder.begin_improper(*n),
            Event::Map(n) => maps.push(encoder.begin_map(*n)),
            // The elements after this head belong to the list in front of it, whose head has
            // counted them.
            Event::Merged => {}
            Event::EndMap => {
                let token = maps.pop().ok_or("a map ends that did not begin")?;
                encoder.end_map(token).map_err(|e| e.to_string())?;
            }
        }
    }
    Ok(())
}
