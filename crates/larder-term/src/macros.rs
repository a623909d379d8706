//! The `term!` macro.

use crate::Term;

/// Makes a term of a literal in Erlang's syntax, as far as Rust's tokens permit.
///
/// A lower-case name is an atom, and a literal is a number or a binary. `{…}` is a tuple, `[…]` and
/// `[…|tail]` are lists, and `#{k => v}` is a map. `(expression)` is a Rust expression of any type
/// for which [`Term`] implements `From`. An atom that isn't a name in Rust is written as
/// `(Atom::new("such as this"))`.
///
/// ```
/// use larder_term::{term, Atom, Term};
/// let n = 7i64;
/// let t = term!({user, -1, [1, 2 | rest], #{name => "Ann", (n) => (Atom::new("$1"))}});
/// assert_eq!(t.to_string(), "{user,-1,[1,2|rest],#{7 => '$1',name => <<\"Ann\">>}}");
/// ```
///
/// # Panics
/// Panics if a map has two identical keys, or an atom has more than 255 characters.
#[macro_export]
macro_rules! term {
    ({ $($items:tt)* }) => { $crate::__term_items!(tuple [] $($items)*) };
    ([ $($items:tt)* ]) => { $crate::__term_items!(list [] $($items)*) };
    (# { $($pairs:tt)* }) => { $crate::__term_pairs!([] $($pairs)*) };
    ($name:ident) => { $crate::Term::atom(stringify!($name)) };
    (- $literal:literal) => { $crate::Literal::term(-$literal) };
    ($literal:literal) => { $crate::Literal::term($literal) };
    (($value:expr)) => { $crate::Term::from($value) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __term_items {
    (tuple [$($done:expr),*]) => {{
        let elements: ::std::vec::Vec<$crate::Term> = ::std::vec![$($done),*];
        $crate::Term::tuple(elements)
    }};
    (list [$($done:expr),*]) => {{
        let elements: ::std::vec::Vec<$crate::Term> = ::std::vec![$($done),*];
        $crate::Term::list(elements)
    }};
    (list [$($done:expr),*] | $($tail:tt)*) => {{
        let elements: ::std::vec::Vec<$crate::Term> = ::std::vec![$($done),*];
        $crate::Term::improper(elements, $crate::term!($($tail)*).as_ref())
    }};
    ($kind:ident [$($done:expr),*] , $($rest:tt)*) => { $crate::__term_items!($kind [$($done),*] $($rest)*) };
    ($kind:ident [$($done:expr),*] - $n:literal $($rest:tt)*) => {
        $crate::__term_items!($kind [$($done,)* $crate::term!(- $n)] $($rest)*)
    };
    ($kind:ident [$($done:expr),*] # $map:tt $($rest:tt)*) => {
        $crate::__term_items!($kind [$($done,)* $crate::term!(# $map)] $($rest)*)
    };
    ($kind:ident [$($done:expr),*] $item:tt $($rest:tt)*) => {
        $crate::__term_items!($kind [$($done,)* $crate::term!($item)] $($rest)*)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __term_pairs {
    ([$($done:expr),*]) => {{
        let pairs: ::std::vec::Vec<($crate::Term, $crate::Term)> = ::std::vec![$($done),*];
        $crate::Term::map(pairs).expect("different keys")
    }};
    ([$($done:expr),*] , $($rest:tt)*) => { $crate::__term_pairs!([$($done),*] $($rest)*) };
    ([$($done:expr),*] - $key:literal => $($rest:tt)*) => { $crate::__term_pairs!(@value [$($done),*] ($crate::term!(- $key)) $($rest)*) };
    ([$($done:expr),*] # $key:tt => $($rest:tt)*) => { $crate::__term_pairs!(@value [$($done),*] ($crate::term!(# $key)) $($rest)*) };
    ([$($done:expr),*] $key:tt => $($rest:tt)*) => { $crate::__term_pairs!(@value [$($done),*] ($crate::term!($key)) $($rest)*) };
    (@value [$($done:expr),*] $key:tt - $value:literal $($rest:tt)*) => {
        $crate::__term_pairs!([$($done,)* ($key, $crate::term!(- $value))] $($rest)*)
    };
    (@value [$($done:expr),*] $key:tt # $value:tt $($rest:tt)*) => {
        $crate::__term_pairs!([$($done,)* ($key, $crate::term!(# $value))] $($rest)*)
    };
    (@value [$($done:expr),*] $key:tt $value:tt $($rest:tt)*) => {
        $crate::__term_pairs!([$($done,)* ($key, $crate::term!($value))] $($rest)*)
    };
}

/// Conversion of a Rust literal to a term.
#[doc(hidden)]
pub trait Literal {
    fn term(self) -> Term;
}

macro_rules! literals {
    ($($type:ty),*) => {
        $(impl Literal for $type {
            fn term(self) -> Term {
                Term::from(self)
            }
        })*
    };
}

literals!(i8, i16, i32, i64, u8, u16, u32, u64, usize, bool, &str);

impl Literal for f64 {
    fn term(self) -> Term {
        Term::float(self).expect("a finite float")
    }
}

impl<const N: usize> Literal for &[u8; N] {
    fn term(self) -> Term {
        Term::binary(self)
    }
}
