//! Typed tables: keys, values, operations beside a `BTreeMap`, threads; and the example.

mod keys;
mod oracle;
#[allow(dead_code, reason = "its main is not called")]
#[path = "../../examples/order_book.rs"]
mod order_book;
mod pages;
mod threads;
mod values;
mod wrong;

#[test]
fn the_order_book_balances() {
    let trades = order_book::run(1_500, 3).expect("all is well");
    assert!(trades > 300, "{trades}");
}
