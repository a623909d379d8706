//! Making identifiers of other nodes.
//!
//! Such a term holds an entry in the emulator's table of nodes. To make one, copy a *template*: an
//! identifier of the same kind and node, which is kept in an environment of its own and so keeps
//! the entry. Then fill in the data of the wanted one.

use super::kept::KeptTerm;
use super::official;
use super::recent::Recent;
use crate::layout::{self, Kind};
use crate::sys::external::ReferenceNumbers;
use crate::sys::*;
use larder_term::{Node, NodeName, TermRef, View};
use std::cell::RefCell;

/// What identifiers have in common that are made from one template.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Family {
    kind: Kind,
    node: NodeName,
    /// The number of words of data.
    len: usize,
}

impl Family {
    /// The number under which its template is in the cache.
    fn number(&self) -> u64 {
        let node = u64::from(self.node.name.id()) << 32 | u64::from(self.node.creation);
        node.wrapping_mul(31) + self.kind as u64 * 8 + self.len as u64
    }
}

thread_local! {
    static TEMPLATES: RefCell<Recent<(Family, KeptTerm)>> = RefCell::default();
}

/// Makes the identifier of another node that a stored term is. `None` if it must be made through
/// the external term format.
pub fn make(env: *mut Env, term: TermRef<'_>) -> Option<Word> {
    let (kind, node, data) = match term.view() {
        View::Pid(pid) => (
            Kind::ForeignPid,
            pid.node,
            layout::pid_data(pid.id, pid.serial),
        ),
        View::Port(port) => {
            let number = usize::try_from(port.id).ok()?;
            let data = layout::Data::from_slice(&[number]);
            (Kind::ForeignPort, port.node, data)
        }
        View::Ref(reference) => {
            let numbers: ReferenceNumbers = reference.words().collect();
            let data = layout::reference_data(numbers.into_iter());
            (Kind::ForeignReference, reference.node, data)
        }
        _ => return None,
    };
    let Node::External(node) = node else {
        return None;
    };
    let family = Family {
        kind,
        node,
        len: data.len(),
    };
    let copied = TEMPLATES.with_borrow(|templates| {
        let found = templates.find(family.number(), |(of, _)| *of == family);
        found.map(|(_, template)| template.copy(env))
    });
    let Some(word) = copied else {
        return make_template(env, family, term, &data);
    };
    // SAFETY: the copy was just made, and has as many words of data as the template.
    unsafe { layout::set_foreign_data(word, &data) };
    Some(word)
}

/// Makes the term through the external format, and keeps a copy of it as a template if it has the
/// layout that is known.
#[cold]
fn make_template(env: *mut Env, family: Family, term: TermRef<'_>, data: &[Word]) -> Option<Word> {
    let word = official::decode(env, term)?;
    // If the node has this name meanwhile, it is an identifier of this node.
    let fits = layout::is_boxed(word)
        && layout::kind(word) == family.kind
        && layout::foreign_data(word) == data;
    if fits {
        let template = (family, KeptTerm::new(word, false));
        TEMPLATES.with_borrow_mut(|templates| templates.add(family.number(), template));
    }
    Some(word)
}
