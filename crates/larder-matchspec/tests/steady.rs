//! Runs allocate nothing once the scratch memory has grown.

mod common;

use common::{program, term};
use larder_matchspec::{Context, Scratch};
use larder_term::{
    atoms,
    object::{self, KeyForm, ObjectBuf},
    Node, Term,
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed; a count, read by the thread that made it.
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the system allocator's precondition.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; `at` came from `System.alloc` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn runs_allocate_nothing_in_the_long_run() {
    let specs = [
        "[{{'$1','$2','_'},[{'>','$1',10},{'=<','$1',20},{is_atom,'$2'}],['$_']}]",
        "[{{'$1','$2','$3'},[{'>=',{'+','$1',1},3}],[{{'$2',[{'*','$1',2},a|'$3'],#{k=>'$1'}}}]}]",
        "[{{'$1','_',['$2'|'$3']},[{'orelse',{'==','$2',x},{is_list,'$3'}}],['$$']},{'_',[],[false]}]",
        "[{{'_','$1','_'},[{'=:=',{element,1,'$_'},15}],[{{'$_',{'/','$1',0},{tl,{element,3,'$_'}}}}]}]",
    ];
    let me = Term::pid(Node::Local, 1, 0);
    let context = Context {
        self_pid: me.as_ref(),
        node: atoms::NONODE,
    };
    let mut stored = ObjectBuf::new();
    object::encode(
        term("{15,name,[1,2,{3}]}").as_ref(),
        1,
        KeyForm::Ordered,
        false,
        &mut stored,
    )
    .unwrap();
    let mut plain = Vec::new();
    let view = stored.view(1, &mut plain);
    let mut scratch = Scratch::new();
    for spec in specs {
        let program = program(spec);
        assert!(
            program.run(&view, &context, &mut scratch).is_some(),
            "{spec}"
        );
        // Ordering: Relaxed; see `alloc`.
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..100 {
            assert!(program.run(&view, &context, &mut scratch).is_some());
        }
        // Ordering: Relaxed; see `alloc`.
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{spec}");
    }
}
