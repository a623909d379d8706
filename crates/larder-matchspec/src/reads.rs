//! The elements of a tuple that a program looks at. A host that runs a program on terms of its own
//! need not encode the others.

use crate::{
    clause::Clause,
    gen::{Op, Operand},
    head::{HeadForm, Step},
};
use smallvec::SmallVec;

/// The positions of elements, in ascending order, or all positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reads {
    All,
    Some(SmallVec<[usize; 4]>),
}

impl Reads {
    /// Those of some clauses.
    pub(crate) fn of(clauses: &[Clause]) -> Reads {
        let mut positions = SmallVec::new();
        for clause in clauses {
            if !of_clause(clause, &mut positions) {
                return Reads::All;
            }
        }
        positions.sort_unstable();
        positions.dedup();
        Reads::Some(positions)
    }
}

/// Adds the positions that a clause reads. `false`: it may read all of them.
fn of_clause(clause: &Clause, positions: &mut SmallVec<[usize; 4]>) -> bool {
    // What the tests look at.
    for test in &clause.tests {
        positions.extend(test.reads());
    }
    // What the head looks at, beside its tests.
    match &clause.head.form {
        HeadForm::Any => {}
        // It is no tuple, so it matches no object. Nothing is gained by a proof of that.
        HeadForm::Other => return false,
        HeadForm::Tuple { elements, .. } => {
            for element in elements {
                positions.push(element.position);
                // A part of an element may have to be the same as another element.
                for step in &clause.head.steps[element.steps.clone()] {
                    if let Step::Same(slot) | Step::RestSame(slot) = *step {
                        positions.extend(clause.head.places[slot as usize]);
                    }
                }
            }
        }
    }
    // An object that is the result as a whole isn't read.
    let result = match clause.result[..] {
        [Op::Push(Operand::Object)] => &[],
        ref result => result,
    };
    // Adds what an operand reads. `false`: that may be all of the row.
    let mut operand = |operand| match operand {
        Operand::Field(position) => {
            positions.push(position);
            true
        }
        Operand::Object => false,
        Operand::Bindings => {
            positions.extend(clause.head.places.iter().copied().flatten());
            clause.head.whole.is_none()
        }
        // What steps have bound is a part of the elements that the head looks at.
        Operand::Const(_) | Operand::Int(_) | Operand::Var(_) | Operand::Stack(_) => true,
    };
    // What the guards that aren't tests and the body read.
    clause.checks.iter().chain(result).all(|op| match *op {
        Op::Push(a)
        | Op::CallOne(_, a)
        | Op::CallTop(_, a)
        | Op::CheckTop(_, a)
        | Op::Put(a)
        | Op::ListHead(_, a)
        | Op::ListTail(a) => operand(a),
        Op::CallTwo(_, a, b) => operand(a) && operand(b),
        Op::Test(test) => test
            .reads()
            .all(|position| operand(Operand::Field(position))),
        Op::Call(..)
        | Op::And(_)
        | Op::Or(_)
        | Op::AndAlso(_)
        | Op::OrElse(_)
        | Op::MakeMap(_)
        | Op::Build
        | Op::Raw(_)
        | Op::Built(_)
        | Op::Check => true,
    })
}

#[cfg(test)]
mod tests {
    use crate::Program;
    use larder_term::Term;

    fn reads(spec: &str) -> Option<Vec<usize>> {
        let spec: Term = spec.parse().unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        program.positions_read().map(<[usize]>::to_vec)
    }

    #[test]
    fn positions_are_those_that_may_decide() {
        for (spec, wanted) in [
            ("[{{'$1','_','$3'},[],['$_']}]", &[][..]),
            ("[{{'$1','_','$3'},[{'<',{abs,'$3'},5}],['$_']}]", &[3]),
            ("[{{a,'_','$1',{'$2','_'},'_'},[],['$$']}]", &[1, 3, 4]),
            ("[{{'$1','_','_','$1'},[],[true]}]", &[1, 4]),
            ("[{{'_','_','$1'},[],['$1']},{{b,'_'},[],[x]}]", &[1, 3]),
            (
                "[{{'_','$1','$2'},[{'or',{is_list,'$1'},{'=:=','$2',1}}],[y]}]",
                &[2, 3],
            ),
            ("[{{'_','$1','$2','_'},[],[[a|'$2']]}]", &[3]),
            ("[{{'$1','_',['_'|'$1']},[],[true]}]", &[1, 3]),
            ("[{'_',[{'>',{element,3,'$_'},4}],['$_']}]", &[3]),
            ("[{'$1',[],[7]}]", &[]),
            ("[{{'_',#{a=>'_'},'_'},[],['$_']}]", &[2]),
        ] {
            assert_eq!(reads(spec).as_deref(), Some(wanted), "{spec}");
        }
        for spec in [
            "[{{'$1','_'},[],[{{'$_'}}]}]",
            "[{{'$1','_'},[{'=:=','$_',{{a,b}}}],[true]}]",
            "[{{'$1','_'},[],['$_']},{'$1',[],[['$1']]}]",
            "[{[a],[],[true]}]",
            "[{'$1',[],[{hd,'$$'}]}]",
        ] {
            assert_eq!(reads(spec), None, "{spec}");
        }
    }
}
