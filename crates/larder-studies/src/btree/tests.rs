use super::*;
use larder_index::{Direction, Start};

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

fn position(n: u64) -> Position {
    // Some too long to stand in the node.
    let mut bytes = (n as u32).to_be_bytes().to_vec();
    bytes.resize(4 + (n % 3 * 10) as usize, 7);
    Position::from_slice(&bytes)
}

/// BT2 and BT3 below the node; its height.
fn check_node(node: &BtreeNode<u64>, most: usize, root: bool) -> usize {
    let least = if root { 1 } else { most / 2 };
    assert!(
        (least..=most).contains(&node.entries.len()),
        "{}",
        node.entries.len()
    );
    assert_eq!(node.entries.capacity(), most + 1);
    if node.is_leaf() {
        assert_eq!(node.children.capacity(), 0);
        return 1;
    }
    assert_eq!(node.children.capacity(), most + 2);
    assert_eq!(node.children.len(), node.entries.len() + 1);
    let heights = node.children.iter().map(|c| check_node(c, most, false));
    let heights: Vec<_> = heights.collect();
    assert!(heights.windows(2).all(|w| w[0] == w[1]));
    heights[0] + 1
}

fn check(tree: &Btree<u64>) {
    if let Some(root) = &tree.root {
        check_node(root, tree.most, true);
        assert_eq!(root.tally(), tree.counted());
    } else {
        assert_eq!(tree.counted(), Tally::default());
    }
    let all = entries(tree, Direction::Forward);
    assert!(all.windows(2).all(|w| w[0].0 < w[1].0));
    let mut back = entries(tree, Direction::Backward);
    back.reverse();
    assert_eq!((all.len(), &all), (tree.len(), &back));
}

fn entries(tree: &Btree<u64>, direction: Direction) -> Vec<(Position, u64)> {
    let mut all = Vec::new();
    tree.walk(Cut::new(Start::Edge, direction), &mut |p, w| {
        all.push((Position::from_slice(p), *w));
        true
    });
    all
}

fn tree_of(m: usize, numbers: impl Iterator<Item = u64>) -> Btree<u64> {
    let mut tree = Btree::new(m);
    numbers.for_each(|n| {
        tree.insert(&position(n), n);
    });
    tree
}

#[test]
fn stays_in_shape_in_every_order() {
    let n = 600;
    let orders: [fn(u64) -> u64; 3] = [|i| i, |i| 10_000 - i, |i| mix(i) >> 40];
    for (order, m) in orders
        .into_iter()
        .flat_map(|o| [3, 4, 5, 16].map(|m| (o, m)))
    {
        let mut tree = tree_of(m, (0..n).map(order));
        check(&tree);
        for i in 0..n {
            assert!(tree.remove(&position(order(i * 7 % n))));
            if i % 20 == 0 {
                check(&tree);
            }
        }
        assert_eq!((tree.len(), tree.memory()), (0, 0));
    }
}

#[test]
fn divides_and_joins() {
    let sizes = [
        (0, 0),
        (0, 5),
        (1, 1),
        (3, 500),
        (40, 41),
        (600, 2),
        (17, 300),
    ];
    for ((few, many), m) in sizes
        .into_iter()
        .flat_map(|s| [3, 4, 5, 16].map(|m| (s, m)))
    {
        for (left, right) in [(few, many), (many, few)] {
            let mut tree = tree_of(m, 0..left);
            tree.join(tree_of(m, left..left + right));
            check(&tree);
            let all = entries(&tree, Direction::Forward);
            assert!(all.iter().map(|e| e.1).eq(0..left + right));
            let Some((at, upper)) = tree.divide() else {
                assert!(left + right < 2);
                continue;
            };
            check(&tree);
            check(&upper);
            // What a division counts is the one entry that has moved.
            assert_eq!(upper.tally.entries, 1);
            let (mut told, mut there) = (tree.tally, tree.counted());
            told.add(&upper.tally);
            there.add(&upper.counted());
            assert_eq!(told, there);
            assert_eq!((tree.len() + upper.len()) as u64, left + right);
            assert!(!tree.is_empty() && !upper.is_empty());
            assert!(entries(&tree, Direction::Forward).iter().all(|e| e.0 < at));
            assert_eq!(entries(&upper, Direction::Forward)[0].0, at);
            // Joined again, it counts what is there, until nothing is.
            tree.join(upper);
            check(&tree);
            assert_eq!((tree.tally, tree.is_exact), (tree.counted(), false));
            while tree.pop().is_some() {}
            assert_eq!((tree.memory(), tree.is_empty()), (0, true));
        }
    }
}

#[test]
fn pops_until_none_is_left() {
    let mut tree = tree_of(4, 0..500);
    for left in (0..500).rev() {
        assert!(tree.pop().is_some());
        assert_eq!(tree.len(), left);
        check(&tree);
    }
    assert!(tree.pop().is_none());
}
