//! Pids and ports of this node: how a word contains their numbers.
//!
//! ```text
//!  …………  …serial…  …………id…………  0011   pid        …………  …number…  0111   port
//!                  │ high │ ring │
//!                          low bits of the id, turned left by some places
//! ```
//!
//! How many bits each number has, and what the highest bits of a word are, depends on the
//! emulator's release and settings. In OTP 27 the lowest bits of the id, as many as number the
//! places in the table of processes, are turned by three places. So a formula is searched for when
//! the library is loaded, with pids that are made through the external term format. If none fits,
//! all pids go through that format, which is slower but correct.

use super::is_wanted;
use super::node::{make_local_pid, make_local_port};
use crate::sys::*;
use std::sync::OnceLock;

/// How the word of a local pid contains its id and serial, or that of a local port its number.
pub struct Pids {
    /// The bits of the id, in the lowest part of the pid's data.
    id_bits: u32,
    /// The bits of the serial, above the id.
    serial_bits: u32,
    /// The number of low bits of the id that are turned, and by how many places; both 0 if none is.
    ring_bits: u32,
    turn: u32,
    /// The word of the pid whose id and serial are 0, and what each byte of id and serial adds to
    /// it.
    zero: Word,
    bytes: Box<[[Word; 256]; 8]>,
}

impl Pids {
    /// The id and the serial of a local pid's word.
    #[inline]
    pub fn parts(&self, word: Word) -> (u32, u32) {
        let mask = |bits: u32| (1u64 << bits) - 1;
        let data = word as u64 >> 4;
        let (id, ring) = (data & mask(self.id_bits), data & mask(self.ring_bits));
        // Turn the ring back.
        let turned = ring >> self.turn | ring << (self.ring_bits - self.turn);
        let id = id ^ ring ^ turned & mask(self.ring_bits);
        let serial = data >> self.id_bits & mask(self.serial_bits);
        (id as u32, serial as u32)
    }

    /// The word of the local pid with this id and serial. `None` if the emulator has no such pid.
    #[inline]
    pub fn word(&self, id: u32, serial: u32) -> Option<Word> {
        // The emulator has no pids with so large numbers.
        if u64::from(id) >> self.id_bits != 0 || u64::from(serial) >> self.serial_bits != 0 {
            return None;
        }
        let (of_id, of_serial) = self.bytes.split_at(4);
        Some(self.zero ^ changed_bits(of_id, id) ^ changed_bits(of_serial, serial))
    }

    /// Searches for the formula among those with these numbers of bits of id and serial. `make`
    /// returns the word of the local pid with an id and serial, through the external format.
    fn find(sizes: &[(u32, u32)], make: &dyn Fn(u32, u32) -> Option<Word>) -> Option<Pids> {
        let zero = make(0, 0)?;
        sizes
            .iter()
            .filter_map(|&(id_bits, serial_bits)| Pids::with(zero, id_bits, serial_bits, make))
            .find(|pids| pids.holds(make))
    }

    fn with(
        zero: Word,
        id_bits: u32,
        serial_bits: u32,
        make: &dyn Fn(u32, u32) -> Option<Word>,
    ) -> Option<Pids> {
        // What each bit of id and serial adds to the word of the pid whose id and serial are 0.
        // A formula exists if each bit of the numbers moves to a fixed bit of the word.
        let mut bits = [0; 64];
        for bit in 0..id_bits {
            bits[bit as usize] = make(1 << bit, 0)? ^ zero;
        }
        for bit in 0..serial_bits {
            bits[32 + bit as usize] = make(0, 1 << bit)? ^ zero;
        }
        // Where the first bit of the id comes to lie, and how many bits later the one that takes
        // its place is.
        let place = |bits: Word| (bits >> 4).trailing_zeros();
        let turn = place(bits[0]);
        let ring_bits = match turn {
            0 => 0,
            _ => {
                turn + bits[..id_bits as usize]
                    .iter()
                    .position(|&bits| place(bits) == 0)? as u32
            }
        };
        // The same for whole bytes, so that eight look-ups make a word.
        let mut bytes = Box::new([[0; 256]; 8]);
        for (table, bits) in bytes.iter_mut().zip(bits.chunks(8)) {
            for (byte, sum) in table.iter_mut().enumerate() {
                let set = bits.iter().enumerate().filter(|(i, _)| byte >> i & 1 == 1);
                *sum = set.fold(0, |sum, (_, bit)| sum ^ bit);
            }
        }
        Some(Pids {
            id_bits,
            serial_bits,
            ring_bits,
            turn,
            zero,
            bytes,
        })
    }

    /// Tests the formula in both directions on a variety of pids.
    fn holds(&self, make: &dyn Fn(u32, u32) -> Option<Word>) -> bool {
        // A fixed sequence of pseudorandom numbers: a proof must not depend on chance.
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        (0..64).all(|_| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let id = (x >> 33) as u32 & (((1u64 << self.id_bits) - 1) as u32);
            let serial = (x >> 11) as u32 & (((1u64 << self.serial_bits) - 1) as u32);
            let word = make(id, serial);
            // Both directions must hold, for every sample. One that fails makes the formula
            // unknown.
            word.is_some()
                && word == self.word(id, serial)
                && self.parts(word.unwrap_or(0)) == (id, serial)
        })
    }
}

/// The bits of a word that a number changes. Each byte of it changes certain ones, and a table says
/// which. A byte that is 0 changes none, so the high bytes, which are mostly 0, aren't looked up.
#[inline]
fn changed_bits(tables: &[[Word; 256]], number: u32) -> Word {
    let (mut word, mut left) = (0, number);
    for table in tables {
        if left == 0 {
            break;
        }
        word ^= table[left as usize & 0xFF];
        left >>= 8;
    }
    word
}

static PIDS: OnceLock<Option<Pids>> = OnceLock::new();

/// The formula for local pids, if one was found.
#[inline]
pub fn pids() -> Option<&'static Pids> {
    PIDS.get().and_then(Option::as_ref)
}

static PORTS: OnceLock<Option<Pids>> = OnceLock::new();

/// The formula for local ports, if one was found. The lowest `PORT_LOW` bits of a port's number are
/// the id, and the others, of which older releases have none, the serial.
#[inline]
fn ports() -> Option<&'static Pids> {
    PORTS.get().and_then(Option::as_ref)
}

/// The number of bits of a port's number that are its id.
const PORT_LOW: u32 = 28;

/// The number of a local port. `None` if the formula isn't known.
#[inline]
pub fn port_number(word: Word) -> Option<u64> {
    let (low, high) = ports()?.parts(word);
    Some(u64::from(low) | u64::from(high) << PORT_LOW)
}

/// The word of the local port with this number. `None` if the formula isn't known, or the emulator
/// has no such port.
#[inline]
pub fn port_word(number: u64) -> Option<Word> {
    let high = u32::try_from(number >> PORT_LOW).ok()?;
    ports()?.word(number as u32 & ((1 << PORT_LOW) - 1), high)
}

/// The word of a local pid.
pub fn local_pid_word(env: *mut Env, id: u32, serial: u32) -> Option<Word> {
    match pids() {
        Some(pids) => pids.word(id, serial),
        None => make_local_pid(env, id, serial),
    }
}

/// Searches for the formulas. Called when the library is loaded.
pub fn prove_pids(env: *mut Env) {
    PIDS.get_or_init(|| {
        let make = |id, serial| make_local_pid(env, id, serial);
        Pids::find(&[(15, 13), (28, 32), (28, 13)], &make)
    });
    PORTS.get_or_init(|| {
        let make = |id: u32, serial: u32| {
            make_local_port(env, u64::from(id) | u64::from(serial) << PORT_LOW)
        };
        let is_wanted = is_wanted("port");
        let sizes = [(PORT_LOW, 32), (PORT_LOW, 0)];
        is_wanted.then(|| Pids::find(&sizes, &make)).flatten()
    });
}
