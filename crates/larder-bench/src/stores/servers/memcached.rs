//! memcached, with its text protocol. The commands of a call are sent together. Keys must be text,
//! so they are written in hexadecimal.
//!
//! * `set KEY FLAGS EXPIRES LENGTH` and the bytes: the reply is `STORED`.
//! * `get KEY...`: for each key that exists `VALUE KEY FLAGS LENGTH` and the bytes, and then `END`.
//! * `append` stores nothing if the key is missing. Such pieces are sent again with `add`.

use super::{unexpected, Server};
use crate::result::{Failure, Outcome};
use crate::stores::peer::Peer;
use std::io::Write;

/// A server with as much memory as it asks for, up to 8 GiB: it must not throw entries away.
pub struct Memcached(Server);

/// Keys of one `get`.
const AT_ONCE: usize = 64;

impl Memcached {
    pub fn start() -> Outcome<Self> {
        let options = "-U 0 -l 127.0.0.1 -m 8192 -t 1 -u nobody -p";
        Ok(Memcached(Server::start("memcached", "memcached", options)?))
    }

    fn store(&mut self, command: &str, kind: char, key: u64, bytes: &[u8]) {
        // Writing to a vector doesn't fail.
        let (request, len) = (&mut self.0.request, bytes.len());
        let _ = write!(request, "{command} {kind}{key:016x} 0 0 {len}\r\n");
        request.extend_from_slice(bytes);
        request.extend_from_slice(b"\r\n");
    }

    fn stored(&mut self) -> Outcome<bool> {
        match self.0.reply()? {
            b"STORED" => Ok(true),
            b"NOT_STORED" => Ok(false),
            other => Err(unexpected("memcached", other)),
        }
    }

    /// Appends the next value of a `get` to `out`. Returns its key, or `None` at the end.
    fn value(&mut self, out: &mut Vec<u8>) -> Outcome<Option<u64>> {
        let line = self.0.reply()?;
        if line == b"END" {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(line).into_owned();
        let parse = || {
            let rest = text.strip_prefix("VALUE ")?;
            let (key, rest) = rest.split_once(' ')?;
            let (_, length) = rest.split_once(' ')?;
            let key = u64::from_str_radix(key.get(1..)?, 16).ok()?;
            Some((key, length.parse().ok()?))
        };
        let parsed = parse();
        let (key, length) = parsed.ok_or_else(|| unexpected("memcached", text.as_bytes()))?;
        self.0.bytes(length, out)?;
        Ok(Some(key))
    }
}

impl Peer for Memcached {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Outcome {
        for (key, value) in keys.iter().zip(values) {
            self.store("set", 'n', *key, &value.to_le_bytes());
        }
        self.0.send()?;
        for _ in keys {
            if !self.stored()? {
                return Err(Failure::wrong("memcached", "nothing was stored"));
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Outcome<usize> {
        // Each command has many keys.
        for part in keys.chunks(AT_ONCE) {
            self.0.request.extend_from_slice(b"get");
            for key in part {
                let _ = write!(self.0.request, " n{key:016x}");
            }
            self.0.request.extend_from_slice(b"\r\n");
        }
        self.0.send()?;
        let (mut found, mut bytes) = (0, Vec::new());
        for (part, places) in keys.chunks(AT_ONCE).zip(values.chunks_mut(AT_ONCE)) {
            // Values come in the order of the keys. Missing ones are left out.
            let mut at = 0;
            bytes.clear();
            while let Some(key) = self.value(&mut bytes)? {
                let skipped = part[at..].iter().position(|wanted| *wanted == key);
                at += skipped
                    .ok_or_else(|| Failure::wrong("memcached", "a key that nobody asked for"))?;
                places[at] = self.0.number(&bytes)?;
                (at, found) = (at + 1, found + 1);
                bytes.clear();
            }
        }
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Outcome<bool> {
        // Appends to keys that are present.
        for key in keys {
            self.store("append", 'b', *key, piece);
        }
        self.0.send()?;
        let mut left = Vec::new();
        for key in keys {
            if !self.stored()? {
                left.push(*key);
            }
        }
        // A missing key may be among them twice, so each waits for the one before.
        for key in left {
            self.store("add", 'b', key, piece);
            self.0.send()?;
            if !self.stored()? {
                self.store("append", 'b', key, piece);
                self.0.send()?;
                if !self.stored()? {
                    return Err(Failure::wrong("memcached", "nothing was appended"));
                }
            }
        }
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Outcome<bool> {
        let _ = write!(self.0.request, "get b{key:016x}\r\n");
        self.0.send()?;
        let found = self.value(out)?.is_some();
        if found {
            self.value(&mut Vec::new())?;
        }
        Ok(found)
    }

    fn process(&self) -> u32 {
        self.0.process.0.id()
    }
}
