//! The functions of guards and bodies.
//!
//! Small integers, the arity and the elements of the row, and the ends of lists are handled here
//! directly. The term layer does everything else.

use super::{Fail, Machine};
use crate::{
    compare::{compare_flat, compare_ints},
    constant::Span,
    func::{Arith, Cmp, Func, Unary},
    host,
    map_search::MapKey,
    value::{Run, Val, FALSE, NIL, TRUE},
    wire::{self, Head, Short},
};
use larder_term::{
    number::{Number, NumberError},
    tags, Encoder, Kind, Mode, Node, View,
};

type BuiltinResult<'a> = Result<Val<'a>, Fail>;

/// The integers that the host stores in one word. Sizes and positions are such integers.
const SMALL_BITS: u32 = 59;

/// Arithmetic of two small integers, if the result is one.
#[inline]
fn small_arithmetic(arith: Arith, a: i64, b: i64) -> Option<i64> {
    // A result that overflows, or a division by zero, takes the general path.
    match arith {
        Arith::Add => a.checked_add(b),
        Arith::Sub => a.checked_sub(b),
        Arith::Mul => a.checked_mul(b),
        Arith::IntDiv => a.checked_div(b),
        Arith::Rem => a.checked_rem(b),
        Arith::Band => Some(a & b),
        Arith::Bor => Some(a | b),
        Arith::Bxor => Some(a ^ b),
        Arith::Div | Arith::Bsl | Arith::Bsr => None,
    }
}

/// Applies a function to two small integers, if the result fits in a value.
#[inline]
pub(crate) fn apply_to_ints<'a>(func: Func, a: i64, b: i64) -> Option<Val<'a>> {
    match func {
        Func::Cmp(cmp) => Some(Val::Bool(compare_ints(cmp, a, b))),
        Func::Arith(arith) => small_arithmetic(arith, a, b).map(Val::Int),
        _ => None,
    }
}

/// Applies a function to the first term of a run, if the head of the term is sufficient.
#[inline]
pub(crate) fn apply_to_head<'a>(func: Func, run: &'a [u8]) -> Option<Val<'a>> {
    let count = |n: usize| Some(Val::Int(n as i64));
    match func {
        // The parts of a list follow its head at once.
        Func::Hd => match wire::open(run) {
            (Head::List(_) | Head::Improper(_), at) => Some(Val::Term(wire::split(&run[at..]).0)),
            _ => None,
        },
        Func::Length => match wire::open(run) {
            // An improper list has no length, and fails in the general path.
            (Head::List(n), _) => count(n),
            _ => None,
        },
        Func::Size | Func::TupleSize => match wire::open(run) {
            (Head::Tuple(n), _) => count(n),
            _ if func == Func::Size => count(wire::binary(run)?.len()),
            _ => None,
        },
        Func::ByteSize => count(wire::binary(run)?.len()),
        Func::MapSize => match wire::open(run) {
            (Head::Map(n), _) => count(n),
            _ => None,
        },
        _ => None,
    }
}

/// The element at a position, counted from 1, of the tuple at the beginning of a run, if it has
/// one.
pub(crate) fn element_of<'a>(position: i64, run: &'a [u8]) -> Option<Val<'a>> {
    // The elements of a tuple follow its head.
    let (Head::Tuple(arity), mut at) = wire::open(run) else {
        return None;
    };
    let position = usize::try_from(position).ok()?;
    if position == 0 || position > arity {
        return None;
    }
    // Skip the elements before it.
    for _ in 1..position {
        at += larder_term::skip(&run[at..]);
    }
    Some(Val::Term(wire::split(&run[at..]).0))
}

/// Applies `map_get/2` or `is_map_key/2` to a key and to the map at the beginning of a run. `None`
/// if that is no map, and if `map_get/2` fails.
pub(crate) fn look_up<'a>(func: Func, key: &[u8], run: &'a [u8]) -> Option<Val<'a>> {
    let (Head::Map(mut left), at) = wire::open(run) else {
        return None;
    };
    let found = MapKey::new(key).find(&run[at..], &mut left);
    match func {
        Func::IsMapKey => Some(Val::Bool(found.is_some())),
        _ => found.map(|value| Val::Term(wire::split(value).0)),
    }
}

impl<'a> Machine<'a, '_> {
    /// Calls a function.
    #[inline]
    pub(crate) fn apply(&mut self, func: Func, [a, b, c]: [Val<'a>; 3]) -> BuiltinResult<'a> {
        match func {
            Func::Cmp(cmp) => Ok(Val::Bool(self.compare(cmp, a, b))),
            Func::Arith(arith) => self.arithmetic(arith, a, b),
            Func::Element => self.element(a, b),
            _ => self.rare(func, [a, b, c]),
        }
    }

    #[inline(never)]
    fn rare(&mut self, func: Func, [a, b, c]: [Val<'a>; 3]) -> BuiltinResult<'a> {
        match func {
            Func::Unary(unary) => self.unary(unary, a),
            Func::Not => a.truth().map(|truth| Val::Bool(!truth)).ok_or(Fail),
            // `xor` takes booleans only. So do `not`, `and` and `or`.
            Func::Xor => match (a.truth(), b.truth()) {
                (Some(a), Some(b)) => Ok(Val::Bool(a != b)),
                _ => Err(Fail),
            },
            Func::Hd => self.hd(a),
            Func::Tl => self.tl(a),
            // As in Erlang, the first operand is returned if both are equal.
            Func::Max => Ok(if self.compare(Cmp::Lt, a, b) { b } else { a }),
            Func::Min => Ok(if self.compare(Cmp::Gt, a, b) { b } else { a }),
            Func::SelfPid => Ok(Val::Term(self.context.self_pid.bytes())),
            Func::NodeName => Ok(self.store_short(Short::atom(self.context.node))),
            Func::Length => self.length(a),
            Func::Size | Func::TupleSize => self.size(func, a),
            Func::IsRecord => self.is_record(a, b, c),
            Func::BinaryPart | Func::BinaryPartFromTo => self.binary_part(func, a, b, c),
            Func::IsFunctionArity => self.is_function(a, b),
            Func::IsMapKey | Func::MapGet => self.map_lookup(func, a, b),
            Func::BitSize | Func::ByteSize | Func::MapSize | Func::NodeOf => {
                let value = self.flat(a);
                self.measure(func, value)
            }
            // All other functions are type tests. A value that isn't contiguous is written first.
            _ => {
                let value = self.flat(a);
                Ok(Val::Bool(self.is_of_type(func, value)))
            }
        }
    }

    /// Compares two values.
    #[inline]
    pub(crate) fn compare(&mut self, cmp: Cmp, a: Val<'a>, b: Val<'a>) -> bool {
        if let (Some(a), Some(b)) = (small(&a), small(&b)) {
            return compare_ints(cmp, a, b);
        }
        self.compare_terms(cmp, a, b)
    }

    #[inline(never)]
    fn compare_terms(&mut self, cmp: Cmp, a: Val<'a>, b: Val<'a>) -> bool {
        if matches!(cmp, Cmp::Same | Cmp::NotSame) {
            return self.identical(a, b) == (cmp == Cmp::Same);
        }
        let (a, b) = (self.flat(a), self.flat(b));
        self.with(a, |a| self.with(b, |b| compare_flat(cmp, a, b)))
    }

    /// Whether two values are identical terms.
    pub(crate) fn identical(&mut self, a: Val<'a>, b: Val<'a>) -> bool {
        let (a, b) = (self.flat(a), self.flat(b));
        self.with(a, |a| self.with(b, |b| a.identical(b)))
    }

    fn number(&mut self, value: Val<'a>) -> Result<Number, Fail> {
        // A small integer is a value of its own. Other numbers are read from their bytes.
        match value {
            Val::Int(n) => Ok(Number::Int(n)),
            other => {
                let flat = self.flat(other);
                self.with(flat, Number::from_term).ok_or(Fail)
            }
        }
    }

    #[inline]
    fn arithmetic(&mut self, arith: Arith, a: Val<'a>, b: Val<'a>) -> BuiltinResult<'a> {
        if let (Some(a), Some(b)) = (small(&a), small(&b)) {
            if let Some(n) = small_arithmetic(arith, a, b) {
                return Ok(Val::Int(n));
            }
        }
        self.exact_arithmetic(arith, a, b)
    }

    #[inline(never)]
    fn exact_arithmetic(&mut self, arith: Arith, a: Val<'a>, b: Val<'a>) -> BuiltinResult<'a> {
        // Small integers were handled before. What gets here may be large, or a float.
        let (a, b) = (self.number(a)?, self.number(b)?);
        self.numeric(match arith {
            Arith::Add => a.add(&b),
            Arith::Sub => a.sub(&b),
            Arith::Mul => a.mul(&b),
            Arith::Div => a.fdiv(&b),
            Arith::IntDiv => a.idiv(&b),
            Arith::Rem => a.rem(&b),
            Arith::Band => a.band(&b),
            Arith::Bor => a.bor(&b),
            Arith::Bxor => a.bxor(&b),
            Arith::Bsl => a.bsl(&b),
            Arith::Bsr => a.bsr(&b),
        })
    }

    fn unary(&mut self, unary: Unary, a: Val<'a>) -> BuiltinResult<'a> {
        let n = self.number(a)?;
        self.numeric(match unary {
            Unary::Plus => Ok(n),
            Unary::Minus => n.neg(),
            Unary::Bnot => n.bnot(),
            // Releases in which both zeros are identical don't change the sign of a zero.
            Unary::Abs if n == Number::Float(0.0) && larder_term::legacy_zero() => Ok(n),
            Unary::Abs => n.abs(),
            Unary::Round => n.round(),
            Unary::Trunc => n.trunc(),
            Unary::Float => n.float(),
            Unary::Floor => n.floor(),
            Unary::Ceil => n.ceil(),
        })
    }

    fn numeric(&mut self, result: Result<Number, NumberError>) -> BuiltinResult<'a> {
        match result.map_err(|_| Fail)? {
            // A small result is kept as a value. Others are encoded into the arena.
            Number::Int(n) => Ok(Val::Int(n)),
            other => {
                let from = self.arena.len();
                other.encode(&mut Encoder::new(self.arena, Mode::Inline));
                Ok(Val::Arena(Span {
                    from,
                    to: self.arena.len(),
                }))
            }
        }
    }

    fn store_short(&mut self, short: Short) -> Val<'a> {
        self.store(short.bytes())
    }

    /// An integer that the host stores in one word.
    fn index(&mut self, value: Val<'a>) -> Result<i64, Fail> {
        let n = small(&value).ok_or(Fail)?;
        let limit = 1i64 << SMALL_BITS;
        (-limit..limit).contains(&n).then_some(n).ok_or(Fail)
    }

    /// `element(N, Tuple)`.
    fn element(&mut self, index: Val<'a>, tuple: Val<'a>) -> BuiltinResult<'a> {
        let position = usize::try_from(small(&index).ok_or(Fail)?).map_err(|_| Fail)?;
        // The row's elements are found without a tuple being built.
        if let Val::Object = tuple {
            return self.row.element(position).map(Val::Term).ok_or(Fail);
        }
        let (bytes, arena) = self.bytes_of(tuple).ok_or(Fail)?;
        let (Head::Tuple(arity), at) = wire::open(bytes) else {
            return Err(Fail);
        };
        if position == 0 || position > arity {
            return Err(Fail);
        }
        // Walk over the elements in front.
        let mut start = at;
        for _ in 1..position {
            start += larder_term::skip(&bytes[start..]);
        }
        let range = start..start + larder_term::skip(&bytes[start..]);
        Ok(self.part(tuple, arena, range))
    }

    /// The bytes of a flat term, and its offset if it is in the arena.
    fn bytes_of(&self, value: Val<'a>) -> Option<(&[u8], Option<usize>)> {
        match value {
            Val::Term(term) => Some((term, None)),
            Val::Arena(span) => Some((&self.arena[span.range()], Some(span.from))),
            _ => None,
        }
    }

    /// A term of the arena as a value. Booleans and small integers become values of their own, as
    /// functions expect them.
    fn settled(&self, span: Span) -> Val<'a> {
        match &self.arena[span.range()] {
            TRUE => Val::Bool(true),
            FALSE => Val::Bool(false),
            bytes => wire::int(bytes).map_or(Val::Arena(span), Val::Int),
        }
    }

    /// A part of a term. If `arena` is given, the term is in the arena from there on.
    fn part(&self, whole: Val<'a>, arena: Option<usize>, range: std::ops::Range<usize>) -> Val<'a> {
        // The part lies where the whole lies, so nothing is copied.
        match (whole, arena) {
            (Val::Term(term), _) => Val::Term(&term[range]),
            (_, Some(start)) => self.settled(Span {
                from: start + range.start,
                to: start + range.end,
            }),
            (other, None) => other,
        }
    }

    /// A list as the rest of a list: the number of elements, whether it is proper, and its run.
    fn open_list(&mut self, value: Val<'a>) -> Result<(usize, bool, Run<'a>), Fail> {
        let value = match value {
            Val::Rest { count, proper, run } => return Ok((count as usize, proper, run)),
            other => self.flat(other),
        };
        let (bytes, arena) = self.bytes_of(value).ok_or(Fail)?;
        let (count, proper, at) = match wire::open(bytes) {
            (Head::List(n), at) => (n, true, at),
            (Head::Improper(n), at) => (n, false, at),
            _ => return Err(Fail),
        };
        // A run in the arena is named by its offset, since the arena may move when it grows.
        let run = match (value, arena) {
            (Val::Term(term), _) => Run::Slice(&term[at..]),
            (_, Some(from)) => Run::Arena(Span {
                from: from + at,
                to: from + bytes.len(),
            }),
            _ => return Err(Fail),
        };
        Ok((count, proper, run))
    }

    /// The first term of a run and what follows.
    fn split_run(&self, run: Run<'a>) -> (Val<'a>, Run<'a>) {
        match run {
            Run::Slice(bytes) => {
                // The first term ends where its encoding says.
                let (first, rest) = wire::split(bytes);
                (Val::Term(first), Run::Slice(rest))
            }
            Run::Arena(Span { from, to }) => {
                let cut = from + larder_term::skip(&self.arena[from..to]);
                (
                    self.settled(Span { from, to: cut }),
                    Run::Arena(Span { from: cut, to }),
                )
            }
        }
    }

    fn hd(&mut self, list: Val<'a>) -> BuiltinResult<'a> {
        let (_, _, run) = self.open_list(list)?;
        Ok(self.split_run(run).0)
    }

    fn tl(&mut self, list: Val<'a>) -> BuiltinResult<'a> {
        // The tail of a list is a run of the same bytes, so nothing is copied.
        let (count, proper, run) = self.open_list(list)?;
        let (_, rest) = self.split_run(run);
        // If no element is left, what remains is the tail: `[]`, or the one of an improper list.
        Ok(match (count - 1, proper, rest) {
            (0, true, _) => Val::Term(NIL),
            (0, false, Run::Slice(tail)) => Val::Term(tail),
            (0, false, Run::Arena(span)) => self.settled(span),
            (count, proper, run) => Val::Rest {
                count: u32::try_from(count).map_err(|_| Fail)?,
                proper,
                run,
            },
        })
    }

    fn length(&mut self, list: Val<'a>) -> BuiltinResult<'a> {
        // The empty list has no run.
        if let Val::Term(NIL) = list {
            return Ok(Val::Int(0));
        }
        match self.open_list(list) {
            Ok((count, true, _)) => Ok(Val::Int(count as i64)),
            Ok(_) => Err(Fail),
            // A list that has no run is written out, to see whether it is empty.
            Err(Fail) => {
                let flat = self.flat(list);
                let empty = self.with(flat, |term| term.kind() == Kind::Nil);
                empty.then_some(Val::Int(0)).ok_or(Fail)
            }
        }
    }

    /// The arity of a tuple, which may be contiguous or the row.
    fn arity(&self, value: Val<'a>) -> Option<usize> {
        // The row has its arity, and no bytes of its own that begin with it.
        if let Val::Object = value {
            return self.row.tuple_arity();
        }
        match wire::open(self.bytes_of(value)?.0) {
            (Head::Tuple(arity), _) => Some(arity),
            _ => None,
        }
    }

    fn size(&mut self, func: Func, value: Val<'a>) -> BuiltinResult<'a> {
        // The arity of a tuple is in its head.
        if let Some(arity) = self.arity(value) {
            return Ok(Val::Int(arity as i64));
        }
        if func == Func::TupleSize {
            return Err(Fail);
        }
        // Only `size` also takes a bitstring, of which it counts the whole bytes.
        let flat = self.flat(value);
        self.with(flat, |term| match term.view() {
            View::Bin(bytes) => Ok(Val::Int(bytes.len() as i64)),
            View::Bits { bits, .. } => Ok(Val::Int((bits / 8) as i64)),
            _ => Err(Fail),
        })
    }

    fn measure(&mut self, func: Func, value: Val<'a>) -> BuiltinResult<'a> {
        // The term itself has the answer, save the name of a node, which needs the context.
        let found = self.with(value, |term| match (func, term.view()) {
            (Func::BitSize, View::Bin(bytes)) => Ok(bytes.len() as i64 * 8),
            (Func::BitSize, View::Bits { bits, .. }) => Ok(bits as i64),
            (Func::ByteSize, View::Bin(bytes)) => Ok(bytes.len() as i64),
            (Func::ByteSize, View::Bits { bytes, .. }) => Ok(bytes.len() as i64),
            (Func::MapSize, View::Map(map)) => Ok(map.len() as i64),
            (Func::NodeOf, view) => Err(node_of(view)),
            _ => Err(None),
        });
        match found {
            Ok(n) => Ok(Val::Int(n)),
            Err(Some(node)) => {
                let name = match node {
                    Node::Local => self.context.node,
                    Node::External(name) => name.name,
                };
                Ok(self.store_short(Short::atom(name)))
            }
            Err(None) => Err(Fail),
        }
    }

    /// `is_record(Term, Tag, Size)`. Fails unless the tag is an atom and the size an integer,
    /// whatever the term is. With another atom for the size, some hosts ask for a native record,
    /// which no term of ours is.
    fn is_record(&mut self, value: Val<'a>, tag: Val<'a>, size: Val<'a>) -> BuiltinResult<'a> {
        let tag = self.flat(tag);
        if !self.is_atom(tag) {
            return Err(Fail);
        }
        let Ok(size) = self.index(size) else {
            let size = self.flat(size);
            let is_name = host::native_records() && self.is_atom(size);
            return is_name.then_some(Val::Bool(false)).ok_or(Fail);
        };
        // A term that is no tuple, or one of another size, is no record. That is no failure.
        if self.arity(value).is_none_or(|arity| arity as i64 != size) {
            return Ok(Val::Bool(false));
        }
        let Ok(first) = self.element(Val::Int(1), value) else {
            return Ok(Val::Bool(false));
        };
        Ok(Val::Bool(self.identical(first, tag)))
    }

    fn is_atom(&mut self, value: Val<'a>) -> bool {
        matches!(value, Val::Bool(_)) || self.with(value, |value| value.kind() == Kind::Atom)
    }

    /// `binary_part(Binary, {Start, Length})` and `binary_part(Binary, Start, Length)`. A negative
    /// length counts backwards.
    fn binary_part(
        &mut self,
        func: Func,
        value: Val<'a>,
        b: Val<'a>,
        c: Val<'a>,
    ) -> BuiltinResult<'a> {
        let (start, length) = match func {
            Func::BinaryPartFromTo => (b, c),
            _ if self.arity(b) == Some(2) => {
                (self.element(Val::Int(1), b)?, self.element(Val::Int(2), b)?)
            }
            _ => return Err(Fail),
        };
        let (start, length) = (self.index(start)?, self.index(length)?);
        // A negative length is a range that ends at the start.
        let end = start.checked_add(length).ok_or(Fail)?;
        let (from, to) = (start.min(end), start.max(end));
        let value = self.flat(value);
        let found = self.with(value, |term| {
            let (bytes, whole) = match term.view() {
                View::Bin(bytes) => (bytes, bytes.len()),
                View::Bits { bytes, bits } => (bytes, bits / 8),
                _ => return None,
            };
            // A start before the beginning, or an end past the whole bytes, fails.
            let range = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
            (range.end <= whole).then(|| encode_binary(&bytes[range]))
        });
        Ok(self.store(&found.ok_or(Fail)?))
    }

    fn is_function(&mut self, value: Val<'a>, arity: Val<'a>) -> BuiltinResult<'a> {
        // The arity may be any integer, even one that no function has.
        let wanted = self.number(arity)?;
        let wanted = match wanted {
            Number::Int(n) if n >= 0 => n as u64,
            // An arity that no function has is a valid question, with the answer `false`.
            Number::Big(_) if self.is_positive(&wanted) => u64::MAX,
            _ => return Err(Fail),
        };
        let value = self.flat(value);
        Ok(Val::Bool(self.with(value, |term| match term.view() {
            View::Fun(fun) => fun.arity == wanted,
            View::Export { arity, .. } => arity == wanted,
            _ => false,
        })))
    }

    fn is_positive(&self, n: &Number) -> bool {
        n.compare(&Number::Int(0)).is_gt()
    }

    fn map_lookup(&mut self, func: Func, key: Val<'a>, map: Val<'a>) -> BuiltinResult<'a> {
        // Both as bytes, since keys are compared by their encoding.
        let (key, map) = (self.flat(key), self.flat(map));
        let (bytes, arena) = self.bytes_of(map).ok_or(Fail)?;
        let (Head::Map(mut left), at) = wire::open(bytes) else {
            return Err(Fail);
        };
        let constant = self.constants.map_at(bytes);
        let found = self.with(key, |key| {
            let value = match constant {
                Some(map) => map.find(key, &bytes[at..], left),
                None => MapKey::new(key.bytes()).find(&bytes[at..], &mut left),
            };
            value.map(|value| wire::split(value).0)
        });
        if func == Func::IsMapKey {
            return Ok(Val::Bool(found.is_some()));
        }
        let found = found.ok_or(Fail)?;
        // The value is a part of the map's bytes, so the difference of the addresses is its offset.
        let from = found.as_ptr() as usize - bytes.as_ptr() as usize;
        let range = from..from + found.len();
        Ok(self.part(map, arena, range))
    }

    fn is_of_type(&self, func: Func, value: Val<'a>) -> bool {
        // By the kind, where that is enough. Binaries and booleans are parts of a kind.
        self.with(value, |term| {
            let kind = term.kind();
            match func {
                Func::IsAtom => kind == Kind::Atom,
                Func::IsFloat => kind == Kind::Float,
                Func::IsInteger => kind == Kind::Integer,
                Func::IsNumber => matches!(kind, Kind::Integer | Kind::Float),
                Func::IsList => matches!(kind, Kind::List | Kind::Nil),
                Func::IsPid => kind == Kind::Pid,
                Func::IsPort => kind == Kind::Port,
                Func::IsReference => kind == Kind::Reference,
                Func::IsTuple => kind == Kind::Tuple,
                Func::IsMap => kind == Kind::Map,
                Func::IsFunction => kind == Kind::Fun,
                Func::IsBitstring => kind == Kind::Bitstring,
                Func::IsBinary => matches!(term.view(), View::Bin(_)),
                Func::IsBoolean => {
                    value.truth().is_some() || Val::Term(term.bytes()).truth().is_some()
                }
                _ => false,
            }
        })
    }
}

/// The value as a small integer, if it is one.
#[inline]
pub(crate) fn small(value: &Val<'_>) -> Option<i64> {
    match value {
        Val::Int(n) => Some(*n),
        Val::Term(term) => wire::int(term),
        _ => None,
    }
}

fn node_of(view: View<'_>) -> Option<Node> {
    match view {
        View::Pid(pid) => Some(pid.node),
        View::Port(port) => Some(port.node),
        View::Ref(reference) => Some(reference.node),
        _ => None,
    }
}

fn encode_binary(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 4);
    wire::push_head(&mut out, tags::BIN, bytes.len());
    out.extend_from_slice(bytes);
    out
}
