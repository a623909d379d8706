//! Pids and ports of this node: how a word contains their numbers.
//!
//! ```text
//!  ……serial……  ………id………  0011   pid        ……number……  0111   port
//!               │ high │ ring │
//!                       low bits of the id, turned left by some places
//! ```
//!
//! How many bits each number has depends on the emulator's release. Since OTP 26 the lowest bits of
//! the id, as many as number the places in the table of processes, are turned by three places. So a
//! formula is searched for when the library is loaded, with pids that are made through the external
//! term format. If none fits, all pids go through that format, which is slower but correct.

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
    /// The word of the pid whose id and serial are 0.
    zero: Word,
}

/// The lowest bits, as many as this.
#[inline]
fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Pids {
    /// The id and the serial of a local pid's word.
    #[inline]
    pub fn parts(&self, word: Word) -> (u32, u32) {
        let data = word as u64 >> 4;
        let serial = data >> self.id_bits & mask(self.serial_bits);
        let id = self.turned(data & mask(self.id_bits), self.ring_bits - self.turn);
        (id as u32, serial as u32)
    }

    /// The word of the local pid with this id and serial. `None` if the emulator has no such pid.
    #[inline]
    pub fn word(&self, id: u32, serial: u32) -> Option<Word> {
        let (id, serial) = (u64::from(id), u64::from(serial));
        // The emulator has no pids with so large numbers.
        if id >> self.id_bits != 0 || serial >> self.serial_bits != 0 {
            return None;
        }
        let data = serial << self.id_bits | self.turned(id, self.turn);
        Some((data << 4) as Word | self.zero)
    }

    /// An id whose ring is turned left by this number of places.
    #[inline]
    fn turned(&self, id: u64, places: u32) -> u64 {
        let ring = id & mask(self.ring_bits);
        let turned = ring << places | ring >> (self.ring_bits - places);
        id ^ ring ^ turned & mask(self.ring_bits)
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
        // Where the bits of the id come to lie: the first one, and the one that becomes the first.
        let mut places = (0..id_bits).map(|bit| {
            let word = make(1 << bit, 0)?;
            Some(((word ^ zero) >> 4).trailing_zeros())
        });
        let turn = places.next()??;
        let ring_bits = match turn {
            0 => 0,
            _ => turn + 1 + places.position(|place| place == Some(0))? as u32,
        };
        Some(Pids {
            id_bits,
            serial_bits,
            ring_bits,
            turn,
            zero,
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
