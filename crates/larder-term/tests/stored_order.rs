//! The keys of maps on a host that orders atoms by their numbers. The settings are those of a
//! process, so this test is a program of its own.

use larder_term::{key_order, Term, View};

fn map(pairs: [(&Term, i64); 2]) -> Term {
    Term::map(pairs.map(|(key, value)| (key.as_ref(), Term::int(value)))).expect("two keys")
}

#[test]
fn maps_in_keys_are_compared_as_they_lie() {
    larder_term::set_atom_order(|a, b| a.id().cmp(&b.id()));
    larder_term::set_maps_as_stored();
    let is_less = |a: &Term, b: &Term| key_order(a.as_ref(), b.as_ref()).is_lt();
    // The atom with the greater text has the lesser number.
    let z = Term::atom("stored_z");
    let a = Term::atom("stored_a");
    let (one, other) = (map([(&a, 2), (&z, 1)]), map([(&a, 1), (&z, 2)]));
    assert!(is_less(&one, &other));
    assert!(one.as_ref().cmp_exact(other.as_ref()).is_gt());
    // Within other containers.
    let within = |map: &Term| Term::tuple([Term::list([map.as_ref()])]);
    assert!(is_less(&within(&one), &within(&other)));
    // Maps of maps, whose pairs are in this order.
    let maps = [[1, 2], [2, 1]].map(|[x, y]| map([(&other, y), (&one, x)]));
    assert!(is_less(&maps[0], &maps[1]));
    let View::Map(pairs) = maps[0].as_ref().view() else {
        panic!("it is a map");
    };
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key.bytes()).collect();
    assert_eq!(keys, [one.bytes(), other.bytes()]);
}
