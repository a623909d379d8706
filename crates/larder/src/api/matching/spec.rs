//! Match specifications as arguments: as text, or prepared.

use crate::error::Error;
use crate::programs::{bad, compile, Program};
use larder_matchspec::{Prepared, Unbound};
use larder_term::{text, Term};
use std::fmt;

/// A compiled match specification with parameters, for queries that are repeated with different
/// values.
///
/// `{bind, N}` stands for the Nth value, from 1, in a head, a guard or a body. [`Spec::bind`]
/// returns a specification that all functions of [`Table`](crate::Table) accept. It compiles
/// nothing. A `Spec` doesn't belong to a table, and can be used with all of them.
///
/// A value is a constant. In a head it matches terms that are identical to it, as a literal does;
/// `'_'` and `'$1'` in it are atoms. The access path is chosen for the values: if parameters fix or
/// limit a key, the value of an index, or a range, only the tuples there are visited. Nothing
/// within `{const, X}` is a parameter.
///
/// ```
/// use larder::api::{Larder, Spec};
/// use larder::term;
///
/// # fn main() -> Result<(), larder::Error> {
/// let stock = Larder::new().table("stock").ordered_set().create()?;
/// stock.insert_all(&[term!({{fruit, 1}, 40}), term!({{fruit, 2}, 3}), term!({{tool, 1}, 1})])?;
///
/// let few = Spec::new("[{{{{bind,1},'$1'},'$2'},[{'<','$2',{bind,2}}],['$1']}]")?;
/// assert_eq!(stock.select(few.bind(&[term!(fruit), term!(10)])?)?, [term!(2)]);
/// assert_eq!(stock.select(few.bind(&[term!(tool), term!(10)])?)?, [term!(1)]);
/// let error = few.bind(&[term!(tool)]).unwrap_err();
/// assert!(error.to_string().contains("{bind, 2} has no value"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Spec {
    text: String,
    prepared: Prepared,
}

/// A [`Spec`] with the values of its parameters.
#[derive(Clone)]
pub struct BoundSpec(Program);

impl Spec {
    /// Compiles a specification, written as in Erlang.
    ///
    /// # Errors
    /// `BadSpec` with the reason.
    ///
    /// # Complexity
    /// O(n log n) in the specification.
    pub fn new(spec: &str) -> Result<Spec, Error> {
        let term = text::parse(spec).map_err(|e| bad(&e))?;
        Ok(Spec {
            text: spec.to_owned(),
            prepared: Prepared::compile(term.as_ref()).map_err(|e| bad(&e))?,
        })
    }

    /// The number of values that it takes: the greatest number of a parameter.
    pub fn parameters(&self) -> usize {
        self.prepared.parameters()
    }

    /// Binds the parameters to these values. The first value is that of `{bind, 1}`.
    ///
    /// # Errors
    /// `BadSpec` if the number of values is wrong.
    ///
    /// # Complexity
    /// Linear in the values.
    pub fn bind(&self, values: &[Term]) -> Result<BoundSpec, Error> {
        match self.prepared.bind(values.len(), &mut &*values) {
            Ok(program) => Ok(BoundSpec(program)),
            Err(Unbound::Count(wrong)) => Err(bad(&wrong)),
            Err(Unbound::Value(never)) => match never {},
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Spec").field(&self.text).finish()
    }
}

impl fmt::Debug for BoundSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundSpec").finish_non_exhaustive()
    }
}

/// The types that the functions of [`Table`](crate::Table) accept as a match specification: text as
/// in Erlang, which is compiled at each call, a [`BoundSpec`], or a [`Spec`] without parameters.
pub trait MatchSpec {
    /// Returns the compiled specification.
    ///
    /// # Errors
    /// `BadSpec` with the reason.
    fn program(&self) -> Result<Program, Error>;
}

impl MatchSpec for str {
    fn program(&self) -> Result<Program, Error> {
        compile(self)
    }
}

impl MatchSpec for String {
    fn program(&self) -> Result<Program, Error> {
        self.as_str().program()
    }
}

impl MatchSpec for BoundSpec {
    fn program(&self) -> Result<Program, Error> {
        Ok(self.0.clone())
    }
}

impl MatchSpec for Spec {
    fn program(&self) -> Result<Program, Error> {
        self.bind(&[])?.program()
    }
}

impl<S: MatchSpec + ?Sized> MatchSpec for &S {
    fn program(&self) -> Result<Program, Error> {
        (**self).program()
    }
}
