//! The options of a data structure: their names, and the values that they accept.

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ChoiceValue {
    /// A whole number.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Name(String),
}

/// The values that an option accepts. The last field of each variant is the default.
#[derive(Clone, Copy, Debug)]
pub enum ChoiceRange {
    /// Whole numbers from the first to the second.
    Int(i64, i64, i64),
    /// Whole numbers from the first to the second, or `auto`.
    IntOrAuto(i64, i64, i64),
    /// Yes or no.
    Flag(bool),
    /// One of the names; the first is the default.
    OneOf(&'static [&'static str]),
}

/// An option of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// The values that it accepts.
    pub range: ChoiceRange,
    /// What it does, in one line.
    pub about: &'static str,
}

impl ChoiceRange {
    /// The default value.
    pub fn default(&self) -> ChoiceValue {
        match *self {
            ChoiceRange::Int(_, _, n) | ChoiceRange::IntOrAuto(_, _, n) => ChoiceValue::Int(n),
            ChoiceRange::Flag(flag) => ChoiceValue::Flag(flag),
            ChoiceRange::OneOf(names) => ChoiceValue::Name(names[0].to_owned()),
        }
    }

    /// Whether the option accepts a value.
    pub fn takes(&self, value: &ChoiceValue) -> bool {
        // The value must be of the kind that the range has.
        match (*self, value) {
            (
                ChoiceRange::Int(least, most, _) | ChoiceRange::IntOrAuto(least, most, _),
                ChoiceValue::Int(n),
            ) => (least..=most).contains(n),
            (ChoiceRange::IntOrAuto(..), ChoiceValue::Name(name)) => name == "auto",
            (ChoiceRange::Flag(_), ChoiceValue::Flag(_)) => true,
            (ChoiceRange::OneOf(names), ChoiceValue::Name(name)) => names.contains(&name.as_str()),
            _ => false,
        }
    }
}

impl std::fmt::Display for ChoiceRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            ChoiceRange::Int(least, most, _) => write!(f, "a whole number from {least} to {most}"),
            ChoiceRange::IntOrAuto(least, most, _) => {
                write!(f, "a whole number from {least} to {most}, or auto")
            }
            ChoiceRange::Flag(_) => f.write_str("true or false"),
            ChoiceRange::OneOf(names) => write!(f, "one of {}", names.join(", ")),
        }
    }
}
