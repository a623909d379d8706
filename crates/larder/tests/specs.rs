//! Prepared match specifications, in every function that takes a specification.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Index, Larder, MatchSpec, Spec, Table};
use larder::{Direction, Error, PlanKind, TableKind};
use larder_term::{term, Term};

fn tables() -> [Table; 4] {
    KINDS.map(|kind| {
        let builder = Larder::new().table("t");
        let table = table(builder.index(Index::element("group", 2)), kind);
        let key = |n: i64| Term::tuple([Term::atom("user"), Term::from(n)]);
        let row = |n: i64| Term::tuple([key(n), Term::from(n % 3), Term::from(n)]);
        let rows: Vec<Term> = (1..=30).map(row).collect();
        table.insert_all(&rows).unwrap();
        table
    })
}

fn ints(found: &[Term]) -> Vec<i64> {
    let mut ints: Vec<i64> = found.iter().map(|n| n.as_ref().as_int().unwrap()).collect();
    ints.sort_unstable();
    ints
}

#[test]
fn every_function_takes_a_bound_specification() {
    let by_group = Spec::new("[{{'_',{bind,1},'$1'},[{'<','$1',{bind,2}}],['$1']}]").unwrap();
    let by_key = Spec::new("[{{{user,{bind,1}},'_','_'},[],[true]}]").unwrap();
    for table in tables() {
        let some = by_group.bind(&[term!(0), term!(10)]).unwrap();
        assert_eq!(ints(&table.select(&some).unwrap()), [3, 6, 9]);
        assert_eq!(ints(&table.select_reverse(&some).unwrap()), [3, 6, 9]);
        let mut rows = table.rows(some.clone(), Direction::Forward).unwrap();
        assert_eq!(rows.page(2).unwrap().len(), 2);
        assert_eq!(rows.page(2).unwrap().len(), 1);
        assert_eq!(
            ints(&table.index_select("group", &some).unwrap()),
            [3, 6, 9]
        );
        let plan = table.explain(&some).unwrap().plan;
        assert!(matches!(plan, PlanKind::Index(name) if name.text() == "group"));

        let key = by_key.bind(&[term!(7)]).unwrap();
        assert!(matches!(
            table.explain(&key).unwrap().plan,
            PlanKind::Keys(1)
        ));
        assert_eq!(table.select_count(&key).unwrap(), 1);
        assert_eq!(table.select_delete(&key).unwrap(), 1);
        assert_eq!(table.select_delete(&key).unwrap(), 0);
        assert_eq!(ints(&table.select_take(some).unwrap()), [3, 6, 9]);
        assert_eq!(table.len(), 26);

        let replace = Spec::new("[{{'$1',1,'_'},[],[{{'$1',1,{bind,1}}}]}]").unwrap();
        let replaced = table.select_replace(replace.bind(&[term!({new, 1})]).unwrap());
        match table.engine_table().kind() {
            TableKind::Bag => assert_eq!(replaced, Err(Error::TableType)),
            _ => assert_eq!(replaced, Ok(9)),
        }
    }
}

#[test]
fn text_and_specifications_without_parameters_are_taken_as_they_are() {
    let [table, ..] = tables();
    let text = "[{{'_',2,'$1'},[{'<','$1',6}],['$1']}]";
    let spec = Spec::new(text).unwrap();
    assert_eq!(spec.parameters(), 0);
    assert_eq!(ints(&table.select(text).unwrap()), [2, 5]);
    assert_eq!(ints(&table.select(text.to_owned()).unwrap()), [2, 5]);
    assert_eq!(ints(&table.select(&spec).unwrap()), [2, 5]);
    // In text, `{bind,1}` is a tuple.
    table.insert(&term!({{bind, 1}, 2, 3})).unwrap();
    assert_eq!(
        table.select("[{{{bind,1},'_','$1'},[],['$1']}]").unwrap(),
        [term!(3)]
    );
}

#[test]
fn errors_are_described() {
    let [table, ..] = tables();
    let told = |result: Result<Vec<Term>, Error>| match result {
        Err(Error::BadSpec(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let spec = Spec::new("[{{{bind,2},'_','_'},[],[{bind,1}]}]").unwrap();
    assert!(told(table.select(&spec)).contains("{bind, 1} has no value"));
    let bound = spec.bind(&[term!(1)]).map(|_| Vec::new());
    assert!(told(bound).contains("{bind, 2} has no value"));
    let bound = spec
        .bind(&[term!(1), term!(2), term!(3)])
        .map(|_| Vec::new());
    assert!(told(bound).contains("2 parameters, and 3 values are given"));
    let new = |text| told(Spec::new(text).map(|_| Vec::new()));
    assert!(new("[{{{bind,0}},[],[a]}]").contains("{bind, 0} is no parameter"));
    assert!(new("[{{bind,1},[],[a]}]").contains("whole head"));
    assert!(!new("[{{").is_empty());
    assert!(new("[{{{bind,1}},[],['$1']}]").contains("$1 is not bound"));
    assert!(matches!("[]".program(), Err(Error::BadSpec(_))));
    assert!(format!("{spec:?}").contains("{bind,2}"));
}

#[test]
fn threads_share_one() {
    let [table, ..] = tables();
    let spec = Spec::new("[{{{user,{bind,1}},'_','$1'},[],['$1']}]").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 1..=30i64 {
                    let bound = spec.bind(&[Term::from(n)]).unwrap();
                    assert_eq!(table.select(bound).unwrap(), [Term::from(n)]);
                }
            });
        }
    });
}
