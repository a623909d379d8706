//! The functions that guards and bodies may call, and looking them up by name.
//!
//! The set is that of the newest OTP release: `floor`, `ceil`, `max`, `min`, `tuple_size`,
//! `is_boolean`, `is_bitstring` and `is_function/2` are available on every release, including older
//! ones. Functions for tracing only are not included. They are refused as unknown, as by `ets`.

/// A function that a guard or a body may call. Each has a fixed number of arguments. `and`, `or`,
/// `andalso` and `orelse` take any number, so they aren't functions but have nodes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Func {
    IsAtom,
    IsFloat,
    IsInteger,
    IsList,
    IsNumber,
    IsPid,
    IsPort,
    IsReference,
    IsTuple,
    IsMap,
    IsBinary,
    IsBitstring,
    IsBoolean,
    IsFunction,
    IsFunctionArity,
    IsRecord,
    IsMapKey,
    MapGet,
    MapSize,
    Element,
    Hd,
    Tl,
    Length,
    Size,
    BitSize,
    ByteSize,
    TupleSize,
    BinaryPart,
    BinaryPartFromTo,
    SelfPid,
    NodeName,
    NodeOf,
    Max,
    Min,
    Not,
    Xor,
    Cmp(Cmp),
    Arith(Arith),
    Unary(Unary),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cmp {
    Gt,
    Ge,
    Lt,
    Le,
    Eq,
    Ne,
    Same,
    NotSame,
}

impl Cmp {
    /// Whether the comparison distinguishes 1 and 1.0.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Cmp::Same | Cmp::NotSame)
    }

    /// The comparison that is equivalent if the operands are exchanged.
    pub(crate) fn flipped(self) -> Cmp {
        match self {
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            other => other,
        }
    }
}

/// Arithmetic of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    IntDiv,
    Rem,
    Band,
    Bor,
    Bxor,
    Bsl,
    Bsr,
}

/// Arithmetic of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    Plus,
    Minus,
    Bnot,
    Abs,
    Round,
    Trunc,
    Float,
    Floor,
    Ceil,
}

impl Func {
    /// The comparison that is equivalent if the operands are exchanged; any other function
    /// unchanged.
    pub(crate) fn turned(self) -> Func {
        match self {
            Func::Cmp(cmp) => Func::Cmp(cmp.flipped()),
            other => other,
        }
    }

    /// The function of this name and number of arguments.
    pub(crate) fn find(name: &str, arity: usize) -> Option<Func> {
        // Names are looked up once, when a specification is compiled.
        match arity {
            0 => nullary(name),
            1 => unary(name),
            2 => binary(name),
            3 => ternary(name),
            _ => None,
        }
    }

    /// Whether the result depends on the context.
    pub(crate) fn asks_context(self) -> bool {
        matches!(self, Func::SelfPid | Func::NodeName | Func::NodeOf)
    }

    /// Whether the result depends on the arguments alone, so that it may be computed once, at
    /// compile time.
    pub(crate) fn is_pure(self) -> bool {
        !self.asks_context()
    }
}

fn nullary(name: &str) -> Option<Func> {
    match name {
        "self" => Some(Func::SelfPid),
        "node" => Some(Func::NodeName),
        _ => None,
    }
}

fn unary(name: &str) -> Option<Func> {
    Some(match name {
        "is_atom" => Func::IsAtom,
        "is_float" => Func::IsFloat,
        "is_integer" => Func::IsInteger,
        "is_list" => Func::IsList,
        "is_number" => Func::IsNumber,
        "is_pid" => Func::IsPid,
        "is_port" => Func::IsPort,
        "is_reference" => Func::IsReference,
        "is_tuple" => Func::IsTuple,
        "is_map" => Func::IsMap,
        "is_binary" => Func::IsBinary,
        "is_bitstring" => Func::IsBitstring,
        "is_boolean" => Func::IsBoolean,
        "is_function" => Func::IsFunction,
        "map_size" => Func::MapSize,
        "hd" => Func::Hd,
        "tl" => Func::Tl,
        "length" => Func::Length,
        "size" => Func::Size,
        "bit_size" => Func::BitSize,
        "byte_size" => Func::ByteSize,
        "tuple_size" => Func::TupleSize,
        "node" => Func::NodeOf,
        "not" => Func::Not,
        "+" => Func::Unary(Unary::Plus),
        "-" => Func::Unary(Unary::Minus),
        "bnot" => Func::Unary(Unary::Bnot),
        "abs" => Func::Unary(Unary::Abs),
        "round" => Func::Unary(Unary::Round),
        "trunc" => Func::Unary(Unary::Trunc),
        "float" => Func::Unary(Unary::Float),
        "floor" => Func::Unary(Unary::Floor),
        "ceil" => Func::Unary(Unary::Ceil),
        _ => return None,
    })
}

fn binary(name: &str) -> Option<Func> {
    Some(match name {
        "is_function" => Func::IsFunctionArity,
        "is_map_key" => Func::IsMapKey,
        "map_get" => Func::MapGet,
        "element" => Func::Element,
        "binary_part" => Func::BinaryPart,
        "max" => Func::Max,
        "min" => Func::Min,
        "xor" => Func::Xor,
        ">" => Func::Cmp(Cmp::Gt),
        ">=" => Func::Cmp(Cmp::Ge),
        "<" => Func::Cmp(Cmp::Lt),
        "=<" => Func::Cmp(Cmp::Le),
        "==" => Func::Cmp(Cmp::Eq),
        "/=" => Func::Cmp(Cmp::Ne),
        "=:=" => Func::Cmp(Cmp::Same),
        "=/=" => Func::Cmp(Cmp::NotSame),
        // `+` and `-` of one operand are other functions, see `unary`.
        other => return arithmetic(other).map(Func::Arith),
    })
}

fn arithmetic(name: &str) -> Option<Arith> {
    Some(match name {
        "+" => Arith::Add,
        "-" => Arith::Sub,
        "*" => Arith::Mul,
        "/" => Arith::Div,
        "div" => Arith::IntDiv,
        "rem" => Arith::Rem,
        "band" => Arith::Band,
        "bor" => Arith::Bor,
        "bxor" => Arith::Bxor,
        "bsl" => Arith::Bsl,
        "bsr" => Arith::Bsr,
        _ => return None,
    })
}

fn ternary(name: &str) -> Option<Func> {
    match name {
        "is_record" => Some(Func::IsRecord),
        "binary_part" => Some(Func::BinaryPartFromTo),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_arguments_is_part_of_the_name() {
        assert_eq!(Func::find("+", 1), Some(Func::Unary(Unary::Plus)));
        assert_eq!(Func::find("+", 2), Some(Func::Arith(Arith::Add)));
        assert_eq!(Func::find("+", 3), None);
        assert_eq!(Func::find("node", 0), Some(Func::NodeName));
        assert_eq!(Func::find("node", 1), Some(Func::NodeOf));
        assert_eq!(Func::find("is_record", 2), None);
    }

    #[test]
    fn what_only_tracing_may_call_is_unknown() {
        for name in [
            "return_trace",
            "process_dump",
            "caller",
            "silent",
            "display",
            "message",
            "get_tcw",
        ] {
            assert!(
                (0..4).all(|arity| Func::find(name, arity).is_none()),
                "{name}"
            );
        }
    }
}
