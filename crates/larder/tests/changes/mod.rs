//! Changes of a table by chance, by every function that writes.

use larder::api::Table;
use larder_term::Term;
use larder_testing::random::Random;

/// A random change of the table.
pub fn change(t: &Table, random: &mut Random, keys: u64) {
    let key = Term::from(random.below(keys) as i64);
    let n = random.below(50) as i64;
    let row = |value: Term| Term::tuple([key.clone(), value]);
    // Long enough to lie outside of the row.
    let long = || Term::binary(&[n as u8; 300]);
    match random.below(22) {
        0..=5 => t.insert(&row(n.into())).unwrap(),
        6 => t.insert(&row(long())).unwrap(),
        7..=9 => drop(t.delete(&key).unwrap()),
        10 => drop(t.take(&key).unwrap()),
        11..=12 => {
            let rows = (0..random.below(150))
                .map(|i| row((n + i as i64).into()))
                .collect::<Vec<_>>();
            t.insert_all(&rows).unwrap();
        }
        13 => drop(t.insert_new(&row(n.into())).unwrap()),
        14 => drop(t.delete_object(&row(n.into())).unwrap()),
        15 => drop(
            t.select_delete("[{{'_','$1'},[{'<','$1',5}],[true]}]")
                .unwrap(),
        ),
        16 => {
            let rows = (0..random.below(700))
                .map(|i| Term::tuple([Term::from(i as i64 * 7 % keys as i64), n.into()]))
                .collect::<Vec<_>>();
            t.insert_all(&rows).unwrap();
        }
        17 if random.below(10) == 0 => drop(t.clear().unwrap()),
        18 => drop(t.add(&key, 2, 3)),
        19 => drop(t.select_replace("[{{'$1',7},[],[{{'$1',8}}]}]")),
        _ => drop(t.update(&key, 2, &Term::from(n))),
    }
}
