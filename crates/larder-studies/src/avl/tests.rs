use super::*;
use larder_index::{Direction, Start};

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

fn position(n: u64) -> Position {
    // Some too long to stand in the node.
    let mut position = Position::from_slice(&(n as u32).to_be_bytes());
    position.resize(4 + (n % 3 * 10) as usize, 7);
    position
}

/// AV1 and AV2, and what is counted.
fn check(tree: &Avl<u64>) {
    fn height(tree: &Avl<u64>, at: Link) -> i32 {
        if at == NIL {
            return 0;
        }
        let node = &tree.nodes[at];
        let [left, right] = node.kids.map(|kid| height(tree, kid));
        assert_eq!(right - left, i32::from(node.balance));
        assert!((right - left).abs() <= 1);
        left.max(right) + 1
    }
    assert_eq!(height(tree, tree.root) as usize, tree.height(tree.root));
    let all = entries(tree, Direction::Forward);
    assert!(all.windows(2).all(|w| w[0].0 < w[1].0));
    assert_eq!(all.len(), tree.len());
    let mut back = entries(tree, Direction::Backward);
    back.reverse();
    assert_eq!(all, back);
    if tree.is_exact {
        counted(&[tree]);
    }
}

/// What trees that had to do with each other count together.
fn counted(trees: &[&Avl<u64>]) {
    let sum = |f: &dyn Fn(&Avl<u64>) -> usize| {
        let each = trees.iter().map(|tree| f(tree));
        each.fold(0, usize::wrapping_add)
    };
    let all = || {
        trees
            .iter()
            .flat_map(|tree| entries(tree, Direction::Forward))
    };
    assert_eq!(sum(&|tree| tree.nodes.made()), all().count());
    assert_eq!(
        sum(&|tree| tree.spilled),
        all().map(|(p, _)| spilled(&p)).sum()
    );
}

fn entries(tree: &Avl<u64>, direction: Direction) -> Vec<(Position, u64)> {
    let mut all = Vec::new();
    let ended = tree.walk(Cut::new(Start::Edge, direction), &mut |p, w| {
        all.push((Position::from_slice(p), *w));
        true
    });
    assert!(ended);
    all
}

fn tree_of(numbers: impl Iterator<Item = u64>) -> Avl<u64> {
    let mut tree = Avl::new(true);
    numbers.for_each(|n| {
        tree.insert(&position(n), n);
    });
    tree
}

#[test]
fn stays_balanced_in_every_order() {
    let n = 600;
    let orders: [fn(u64) -> u64; 3] = [|i| i, |i| 10_000 - i, |i| mix(i) >> 40];
    for order in orders {
        let mut tree = tree_of((0..n).map(order));
        check(&tree);
        for i in 0..n {
            assert!(tree.remove(&position(order(i * 7 % n))));
            if i % 20 == 0 {
                check(&tree);
            }
        }
        assert_eq!((tree.len(), tree.nodes.made(), tree.spilled), (0, 0, 0));
    }
}

#[test]
fn divides_and_joins() {
    for (few, many) in [(0, 0), (0, 5), (1, 1), (3, 500), (40, 41), (600, 2)] {
        for (left, right) in [(few, many), (many, few)] {
            let mut tree = tree_of(0..left);
            tree.join(tree_of(left..left + right));
            check(&tree);
            assert_eq!(tree.len() as u64, left + right);
            assert!(entries(&tree, Direction::Forward)
                .iter()
                .map(|e| e.1)
                .eq(0..left + right));
            counted(&[&tree]);
            let Some((at, mut upper)) = tree.divide() else {
                assert!(left + right < 2);
                continue;
            };
            check(&tree);
            check(&upper);
            assert!(!tree.is_empty() && !upper.is_empty());
            assert!(entries(&tree, Direction::Forward).iter().all(|e| e.0 < at));
            assert_eq!(entries(&upper, Direction::Forward)[0].0, at);
            // Keys that one tree has are removed from the other, and all keys again from one.
            let first = entries(&upper, Direction::Forward)[0].1;
            assert!(upper.remove(&position(first)));
            tree.insert(&position(first), first);
            check(&tree);
            check(&upper);
            counted(&[&tree, &upper]);
            tree.join(upper);
            check(&tree);
            counted(&[&tree]);
            assert_eq!(tree.len() as u64, left + right);
            while tree.pop().is_some() {}
            assert_eq!((tree.nodes.made(), tree.spilled), (0, 0));
        }
    }
}

/// A walk that takes up where the last one stopped gives what one from the top would, whatever
/// happened between the two.
#[test]
fn the_stack_goes_on_where_it_was() {
    let mut tree = tree_of((0..500).map(|n| n * 2));
    let plain = |tree: &Avl<u64>, cut: Cut<'_>| {
        let mut stack = Stack::empty();
        let mut visited = None;
        tree.walk_with(&mut stack, cut, &mut |_, w| {
            visited = Some(*w);
            false
        });
        visited
    };
    let mut at = position(0);
    let mut went_on = 0;
    for i in 0..3000 {
        let direction =
            [Direction::Forward, Direction::Backward][usize::from(mix(i / 50).is_multiple_of(3))];
        match i % 97 {
            5 => drop(tree.remove(&position(mix(i) % 1000))),
            50 => drop(tree.insert(&position(mix(i) % 1000), mix(i) % 1000)),
            _ => {}
        }
        let mut bytes = at.clone();
        let start = if i % 5 == 0 && direction == Direction::Forward {
            bytes.push(0);
            Start::At(&bytes)
        } else {
            Start::Past(&bytes)
        };
        let cut = Cut::new(start, direction);
        let stack = tree.stack.as_ref().map(|s| s.lock().last);
        went_on += usize::from(stack != Some(NIL));
        let mut visited = None;
        tree.walk(cut, &mut |p, w| {
            visited = Some((Position::from_slice(p), *w));
            false
        });
        assert_eq!(visited.as_ref().map(|m| m.1), plain(&tree, cut));
        at = visited.map_or_else(|| position(0), |m| m.0);
    }
    assert!(went_on > 2000, "{went_on}");
}
