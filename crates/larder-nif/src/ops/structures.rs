//! The structures of tables, and errors in a table's options.

use super::options;
use crate::call::{boolean, Call, Reply, BADARG};
use crate::sys::Word;
use crate::terms::atoms;
use larder::{Structure, StructureValue};
use larder_term::Atom;

/// structures() -> [{Name, [Type], [{Option, Takes, Default, About}], About}].
pub fn structures(call: &Call<'_>) -> Reply {
    let all: Option<Vec<_>> = larder::structures().map(|s| described(call, &s)).collect();
    Ok(call.list(&all.ok_or(BADARG)?))
}

fn described(call: &Call<'_>, structure: &Structure) -> Option<Word> {
    // A name that is too long for an atom doesn't occur. It would make the whole description
    // absent.
    let types: Option<Vec<_>> = structure.types.iter().map(|t| atom(call, t)).collect();
    let options = structure.options.iter().map(|choice| {
        let default = match choice.range.default() {
            StructureValue::Int(n) => call.int(n),
            StructureValue::Flag(flag) => boolean(flag),
            StructureValue::Name(name) => atom(call, &name)?,
        };
        Some(call.tuple(&[
            atom(call, choice.name)?,
            call.binary(choice.range.to_string().as_bytes()),
            default,
            call.binary(choice.about.as_bytes()),
        ]))
    });
    let options: Option<Vec<_>> = options.collect();
    Some(call.tuple(&[
        atom(call, structure.name)?,
        call.list(&types?),
        call.list(&options?),
        call.binary(structure.about.as_bytes()),
    ]))
}

fn atom(call: &Call<'_>, text: &str) -> Option<Word> {
    let atom = Atom::try_new(text).ok()?;
    Some(atoms::to_word(call.env, atom))
}

/// fault(Options) -> binary() | none: what is wrong with options of new/2 that are well formed.
pub fn fault(call: &Call<'_>) -> Reply {
    let options = options::parse(call, atoms::NONE.word(), call.args[0])?;
    Ok(match options.check() {
        Ok(()) => atoms::NONE.word(),
        Err(error) => call.binary(error.to_string().as_bytes()),
    })
}
