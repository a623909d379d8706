//! A plain reader of the external term format, for the records of the oracle: recursive and trusting, and independent of the one that it
//! helps to test.

use larder_term::{Atom, Encoder, Node, NodeName};

/// Pushes the first term of `bytes` and gives what follows it.
pub fn read<'b>(bytes: &'b [u8], enc: &mut Encoder<'_>) -> &'b [u8] {
    let (tag, rest) = (bytes[0], &bytes[1..]);
    match tag {
        97 => {
            enc.int(i64::from(rest[0]));
            &rest[1..]
        }
        98 => {
            enc.int(i64::from(u32_at(rest) as i32));
            &rest[4..]
        }
        70 => {
            enc.float(f64::from_bits(u64::from_be_bytes(rest[..8].try_into().unwrap())));
            &rest[8..]
        }
        110 | 111 => {
            let (n, rest) = if tag == 110 { (usize::from(rest[0]), &rest[1..]) } else { count(rest) };
            enc.big(rest[0] == 1, &rest[1..=n]);
            &rest[1 + n..]
        }
        100 | 118 | 115 | 119 => {
            let (atom, rest) = atom(bytes);
            enc.atom(atom);
            rest
        }
        106 => {
            enc.nil();
            rest
        }
        107 => {
            let n = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
            enc.begin_list(n);
            rest[2..2 + n].iter().for_each(|&c| enc.int(i64::from(c)));
            &rest[2 + n..]
        }
        104 | 105 => {
            let (n, rest) = if tag == 104 { (usize::from(rest[0]), &rest[1..]) } else { count(rest) };
            enc.begin_tuple(n);
            terms(rest, n, enc)
        }
        108 => list(rest, enc),
        116 => {
            let (n, rest) = count(rest);
            let map = enc.begin_map(n);
            let rest = terms(rest, 2 * n, enc);
            enc.end_map(map).unwrap();
            rest
        }
        109 => {
            let (n, rest) = count(rest);
            enc.binary(&rest[..n]);
            &rest[n..]
        }
        77 => {
            let (n, rest) = count(rest);
            enc.bits(&rest[1..=n], 8 * (n - 1) + usize::from(rest[0]));
            &rest[1 + n..]
        }
        _ => identifier(tag, rest, enc),
    }
}

fn identifier<'b>(tag: u8, rest: &'b [u8], enc: &mut Encoder<'_>) -> &'b [u8] {
    match tag {
        88 => {
            let (name, rest) = atom(rest);
            enc.pid(node(name, u32_at(&rest[8..])), u32_at(rest), u32_at(&rest[4..]));
            &rest[12..]
        }
        89 => {
            let (name, rest) = atom(rest);
            enc.port(node(name, u32_at(&rest[4..])), u64::from(u32_at(rest)));
            &rest[8..]
        }
        90 => {
            let n = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
            let (name, rest) = atom(&rest[2..]);
            let words: Vec<u32> = (1..=n).map(|i| u32_at(&rest[4 * i..])).collect();
            enc.reference(node(name, u32_at(rest)), &words);
            &rest[4 + 4 * n..]
        }
        113 => {
            let (module, rest) = atom(rest);
            let (function, rest) = atom(rest);
            enc.export(module, function, rest[1]);
            &rest[2..]
        }
        112 => fun(rest, enc),
        _ => panic!("tag {tag} of the external format"),
    }
}

fn fun<'b>(rest: &'b [u8], enc: &mut Encoder<'_>) -> &'b [u8] {
    let arity = rest[4];
    let uniq: [u8; 16] = rest[5..21].try_into().unwrap();
    let (index, free) = (u32_at(&rest[21..]), u32_at(&rest[25..]) as usize);
    let (module, rest) = atom(&rest[29..]);
    let (old_index, rest) = small(rest);
    let (old_uniq, rest) = small(rest);
    let mut creator = Vec::new();
    let rest = read(rest, &mut Encoder::new(&mut creator, enc.mode()));
    enc.begin_fun(module, arity, &uniq, index, old_index, old_uniq, free);
    terms(rest, free, enc)
}

fn small(bytes: &[u8]) -> (i64, &[u8]) {
    match bytes[0] {
        97 => (i64::from(bytes[1]), &bytes[2..]),
        98 => (i64::from(u32_at(&bytes[1..]) as i32), &bytes[5..]),
        tag => panic!("a fun's number has tag {tag}"),
    }
}

/// A list: if its tail is a list again (the format allows it), their elements are one run.
fn list<'b>(rest: &'b [u8], enc: &mut Encoder<'_>) -> &'b [u8] {
    let (n, body) = count(rest);
    let mut nowhere = Vec::new();
    let tail = terms(body, n, &mut Encoder::new(&mut nowhere, enc.mode()));
    match tail[0] {
        106 => {
            enc.begin_list(n);
            terms(body, n, enc);
            &tail[1..]
        }
        107 | 108 => panic!("a list whose tail is a list"),
        _ => {
            enc.begin_improper(n);
            terms(body, n + 1, enc)
        }
    }
}

fn terms<'b>(mut rest: &'b [u8], n: usize, enc: &mut Encoder<'_>) -> &'b [u8] {
    for _ in 0..n {
        rest = read(rest, enc);
    }
    rest
}

fn atom(bytes: &[u8]) -> (Atom, &[u8]) {
    let (n, rest) = match bytes[0] {
        100 | 118 => (usize::from(u16::from_be_bytes([bytes[1], bytes[2]])), &bytes[3..]),
        115 | 119 => (usize::from(bytes[1]), &bytes[2..]),
        tag => panic!("no atom: tag {tag}"),
    };
    let text: String = match bytes[0] {
        100 | 115 => rest[..n].iter().map(|&b| char::from(b)).collect(),
        _ => String::from_utf8(rest[..n].to_vec()).unwrap(),
    };
    (Atom::new(&text), &rest[n..])
}

fn node(name: Atom, creation: u32) -> Node {
    match name.text() {
        "nonode@nohost" => Node::Local,
        _ => Node::External(NodeName { name, creation }),
    }
}

fn count(bytes: &[u8]) -> (usize, &[u8]) {
    (u32_at(bytes) as usize, &bytes[4..])
}

fn u32_at(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}
