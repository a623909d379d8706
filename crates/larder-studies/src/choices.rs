//! The options of structures, and the errors of invalid options.

pub use larder_index::{Choice, ChoiceRange as Range, ChoiceValue as Value};
use std::fmt;

/// The reason why an index can't be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// There is no structure of this name.
    Unknown {
        /// The requested value.
        name: String,
        /// The names of all.
        there: String,
    },
    /// The structure has no order of keys.
    Order {
        /// The requested value.
        name: String,
        /// The names of those that do.
        there: String,
    },
    /// The structure has no such option.
    Option {
        /// The structure.
        name: String,
        /// The requested value.
        option: String,
        /// The structure's options.
        there: String,
    },
    /// The value isn't one of the option's.
    Value {
        /// The structure.
        name: String,
        /// The option.
        option: String,
        /// The values that it takes.
        range: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Unknown { name, there } => {
                write!(f, "there is no structure '{name}'; there are: {there}")
            }
            BuildError::Order { name, there } => write!(
                f,
                "the structure '{name}' has no order of keys, which ordered_set needs; \
                 those that have are: {there}"
            ),
            BuildError::Option {
                name,
                option,
                there,
            } => write!(
                f,
                "the structure '{name}' has no option '{option}'; it has: {there}"
            ),
            BuildError::Value {
                name,
                option,
                range,
            } => write!(
                f,
                "the option '{option}' of the structure '{name}' takes {range}"
            ),
        }
    }
}

impl std::error::Error for BuildError {}

/// The values of all options of a structure: given ones, and the defaults of the others.
#[derive(Clone, Debug)]
pub(crate) struct Chosen(Vec<(&'static str, Value)>);

impl Chosen {
    /// Combines the options in `said` with the defaults. If an option is given twice, the last
    /// value counts.
    pub(crate) fn new(
        name: &str,
        choices: &'static [Choice],
        said: &[(String, Value)],
    ) -> Result<Self, BuildError> {
        // Begin with the defaults, so that options which aren't given keep theirs.
        let mut all: Vec<_> = choices
            .iter()
            .map(|c| (c.name, c.range.default()))
            .collect();
        // Each given option replaces a default, if it exists and takes the value.
        for (option, value) in said {
            let Some(at) = choices.iter().position(|c| c.name == option) else {
                // A wrong name is answered with the names that exist.
                let names: Vec<_> = choices.iter().map(|c| c.name).collect();
                return Err(BuildError::Option {
                    name: name.to_owned(),
                    option: option.clone(),
                    there: match names.is_empty() {
                        true => "none".to_owned(),
                        false => names.join(", "),
                    },
                });
            };
            if !choices[at].range.takes(value) {
                return Err(BuildError::Value {
                    name: name.to_owned(),
                    option: option.clone(),
                    range: choices[at].range.to_string(),
                });
            }
            all[at].1 = value.clone();
        }
        Ok(Chosen(all))
    }

    fn get(&self, option: &str) -> &Value {
        let found = self.0.iter().find(|(name, _)| *name == option);
        &found.expect("a structure asks for its own options").1
    }

    /// A number, if the option is one and not `auto`.
    pub(crate) fn number(&self, option: &str) -> Option<i64> {
        match self.get(option) {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// A number that is not negative.
    pub(crate) fn size(&self, option: &str) -> usize {
        self.number(option).map_or(0, |n| n.max(0) as usize)
    }

    /// A flag.
    pub(crate) fn flag(&self, option: &str) -> bool {
        self.get(option) == &Value::Flag(true)
    }

    /// A name; empty if the option is none.
    pub(crate) fn name(&self, option: &str) -> &str {
        match self.get(option) {
            Value::Name(name) => name,
            _ => "",
        }
    }
}
