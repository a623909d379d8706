//! Redis, pipelined: the commands of a call are sent together, and then their replies are read.
//! Keys and values have eight bytes.
//!
//! The protocol: a command is `*PARTS`, and for each part `$LENGTH` and the bytes. A reply is
//! `+OK`, `:NUMBER`, or `$LENGTH` (-1 if there is nothing) and the bytes. Each of these ends with
//! CR LF.

use super::{strange, Server};
use crate::stores::peer::{Peer, PeerError};
use std::io::Write;

/// A server that keeps nothing on disk.
pub struct Redis {
    server: Server,
}

impl Redis {
    /// Starts one.
    pub fn start() -> Result<Self, PeerError> {
        // A server that keeps nothing on disk: `--save` is given an empty text.
        let options = "--bind 127.0.0.1 --appendonly no --save  --port";
        let server = Server::start("Redis", "redis-server", options)?;
        Ok(Redis { server })
    }

    fn command(&mut self, parts: &[&[u8]]) {
        // Into a Vec nothing fails to be written.
        let _ = write!(self.server.request, "*{}\r\n", parts.len());
        for part in parts {
            let _ = write!(self.server.request, "${}\r\n", part.len());
            self.server.request.extend_from_slice(part);
            self.server.request.extend_from_slice(b"\r\n");
        }
    }

    /// Puts the value that comes back to the end of `out`; false if there is none.
    fn value(&mut self, out: &mut Vec<u8>) -> Result<bool, PeerError> {
        let line = self.server.reply()?;
        let text = line.strip_prefix(b"$").map(String::from_utf8_lossy);
        match text.and_then(|text| text.parse::<i64>().ok()) {
            Some(-1) => Ok(false),
            Some(length @ 0..) => self.server.bytes(length as usize, out).map(|()| true),
            _ => Err(strange("Redis", line)),
        }
    }
}

impl Peer for Redis {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<(), PeerError> {
        for (key, value) in keys.iter().zip(values) {
            self.command(&[b"SET", &key.to_be_bytes(), &value.to_le_bytes()]);
        }
        // All commands have been written. Send them, then read a reply for each.
        self.server.send()?;
        for _ in keys {
            match self.server.reply()? {
                b"+OK" => {}
                other => return Err(strange("Redis", other)),
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Result<usize, PeerError> {
        // All commands in one write, and then all replies.
        for key in keys {
            self.command(&[b"GET", &key.to_be_bytes()]);
        }
        self.server.send()?;
        let (mut found, mut value) = (0, Vec::new());
        for place in values.iter_mut().take(keys.len()) {
            value.clear();
            if self.value(&mut value)? {
                *place = self.server.number(&value)?;
                found += 1;
            }
        }
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Result<bool, PeerError> {
        for key in keys {
            self.command(&[b"APPEND", &bytes_key(*key), piece]);
        }
        self.server.send()?;
        for _ in keys {
            // The reply to APPEND is the new length.
            let line = self.server.reply()?;
            if !line.starts_with(b":") {
                return Err(strange("Redis", line));
            }
        }
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, PeerError> {
        self.command(&[b"GET", &bytes_key(key)]);
        self.server.send()?;
        self.value(out)
    }

    fn process(&self) -> u32 {
        self.server.process()
    }
}

/// A byte more than a number's key: a value is one or the other.
fn bytes_key(key: u64) -> [u8; 9] {
    let mut out = [b'b'; 9];
    out[1..].copy_from_slice(&key.to_be_bytes());
    out
}
