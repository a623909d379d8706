//! Redis, pipelined: the commands of a call are sent together, and then their replies are read.
//! Keys and values have eight bytes.
//!
//! The protocol: a command is `*PARTS`, and for each part `$LENGTH` and the bytes. A reply is
//! `+OK`, `:NUMBER`, or `$LENGTH` (-1 if there is nothing) and the bytes. Each of these ends with
//! CR LF.

use super::{unexpected, Server};
use crate::result::Outcome;
use crate::stores::peer::Peer;
use std::io::Write;

/// A server that keeps nothing on disk.
pub struct Redis(Server);

impl Redis {
    pub fn start() -> Outcome<Self> {
        // The value of `--save` is empty.
        let options = "--bind 127.0.0.1 --appendonly no --save  --port";
        Ok(Redis(Server::start("Redis", "redis-server", options)?))
    }

    fn command(&mut self, parts: &[&[u8]]) {
        // Writing to a vector doesn't fail.
        let _ = write!(self.0.request, "*{}\r\n", parts.len());
        for part in parts {
            let _ = write!(self.0.request, "${}\r\n", part.len());
            self.0.request.extend_from_slice(part);
            self.0.request.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the value of the reply to `out`. Returns false if there is none.
    fn value(&mut self, out: &mut Vec<u8>) -> Outcome<bool> {
        let line = self.0.reply()?;
        let text = line.strip_prefix(b"$").map(String::from_utf8_lossy);
        match text.and_then(|text| text.parse::<i64>().ok()) {
            Some(-1) => Ok(false),
            Some(length @ 0..) => self.0.bytes(length as usize, out).map(|()| true),
            _ => Err(unexpected("Redis", line)),
        }
    }
}

impl Peer for Redis {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Outcome {
        for (key, value) in keys.iter().zip(values) {
            self.command(&[b"SET", &key.to_be_bytes(), &value.to_le_bytes()]);
        }
        self.0.send()?;
        for _ in keys {
            match self.0.reply()? {
                b"+OK" => {}
                other => return Err(unexpected("Redis", other)),
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Outcome<usize> {
        for key in keys {
            self.command(&[b"GET", &key.to_be_bytes()]);
        }
        self.0.send()?;
        let (mut found, mut value) = (0, Vec::new());
        for place in values.iter_mut().take(keys.len()) {
            value.clear();
            if self.value(&mut value)? {
                *place = self.0.number(&value)?;
                found += 1;
            }
        }
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Outcome<bool> {
        for key in keys {
            self.command(&[b"APPEND", &bytes_key(*key), piece]);
        }
        self.0.send()?;
        for _ in keys {
            // The reply to APPEND is the new length.
            let line = self.0.reply()?;
            if !line.starts_with(b":") {
                return Err(unexpected("Redis", line));
            }
        }
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Outcome<bool> {
        self.command(&[b"GET", &bytes_key(key)]);
        self.0.send()?;
        self.value(out)
    }

    fn process(&self) -> u32 {
        self.0.process.0.id()
    }
}

/// The key of a value that grows. It is a byte longer than the key of a number.
fn bytes_key(key: u64) -> [u8; 9] {
    let mut out = [b'b'; 9];
    out[1..].copy_from_slice(&key.to_be_bytes());
    out
}
