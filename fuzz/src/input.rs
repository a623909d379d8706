//! Bytes as a source of choices: whatever they are, something comes of them, and similar bytes make
//! similar things.

use larder_term::{Node, Term};

/// Bytes that are used up choice by choice. When they are over, every choice is the first.
pub struct Input<'a>(&'a [u8]);

const ATOMS: [&str; 8] = ["a", "b", "true", "false", "ok", "$1", "_", "undefined"];

impl<'a> Input<'a> {
    /// All of the bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    /// Whether they are used up.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        byte
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// An integer; small ones are the most likely.
    pub fn int(&mut self) -> i64 {
        match self.below(8) {
            0..=5 => i64::from(self.byte() % 8) - 2,
            6 => i64::from(self.byte()) << self.below(56),
            _ => self.pick(&[i64::MIN, i64::MAX, i64::MAX - 1, 1 << 53, -(1 << 59)]),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = match self.below(4) {
            0 => 0,
            1 => self.below(8),
            2 => 60 + self.below(10),
            _ => self.below(256),
        };
        let byte = self.byte();
        (0..length).map(|i| byte.wrapping_add(i as u8)).collect()
    }

    /// A term without identifiers of nodes and processes, of at most so many levels.
    pub fn term(&mut self, levels: usize) -> Term {
        let several = if levels == 0 { 0 } else { self.below(5) };
        match self.below(if levels == 0 { 8 } else { 13 }) {
            0..=2 => Term::int(self.int()),
            3 => Term::float(f64::from(self.byte() as i8) / 2.0).unwrap_or_else(|_| Term::nil()),
            4 => Term::float(self.int() as f64).unwrap_or_else(|_| Term::nil()),
            5 => Term::atom(self.pick(&ATOMS)),
            6 => Term::binary(&self.bytes()),
            7 => self.rare(),
            8 | 9 => Term::tuple(self.terms(several, levels - 1)),
            10 => Term::list(self.terms(several, levels - 1)),
            11 => {
                let elements = self.terms(several + 1, levels - 1);
                Term::improper(elements, Term::int(self.int()).as_ref())
            }
            _ => {
                let keys = self.terms(several, levels - 1);
                let pairs: Vec<(Term, Term)> = keys
                    .into_iter()
                    .map(|key| (key, Term::int(self.int())))
                    .collect();
                Term::map(pairs).unwrap_or_else(|_| Term::nil())
            }
        }
    }

    fn rare(&mut self) -> Term {
        match self.below(5) {
            0 => Term::nil(),
            1 => {
                let bytes = self.bytes();
                let bits = (bytes.len() * 8).saturating_sub(self.below(8));
                Term::bits(&bytes, bits)
            }
            2 => {
                let digits = format!("{}{:020}", self.pick(&["-", ""]), self.int().unsigned_abs());
                format!("{digits}{digits}0")
                    .parse()
                    .unwrap_or_else(|_| Term::nil())
            }
            3 => Term::reference(Node::Local, &[u32::from(self.byte()), 1, 2]),
            _ => Term::pid(Node::Local, u32::from(self.byte()), 0),
        }
    }

    /// Several terms.
    pub fn terms(&mut self, n: usize, levels: usize) -> Vec<Term> {
        (0..n).map(|_| self.term(levels)).collect()
    }
}
