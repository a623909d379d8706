//! Two faults, for sanitizers to find: `race thread` writes one place from two threads,
//! `race address` reads what was freed.

fn main() {
    let mut place = Box::new(0u64);
    let at: *mut u64 = &mut *place;
    if std::env::args().nth(1).as_deref() == Some("thread") {
        let address = at.expose_provenance();
        // SAFETY: none: two threads write without an order between them, which is the fault. The
        // place lives until both are joined.
        let write = move || unsafe { *std::ptr::with_exposed_provenance_mut::<u64>(address) += 1 };
        let threads = [std::thread::spawn(write), std::thread::spawn(write)];
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no panic"));
    } else {
        drop(place);
        // SAFETY: none: the place was given back, which is the fault.
        println!("{}", unsafe { at.read_volatile() });
    }
}
