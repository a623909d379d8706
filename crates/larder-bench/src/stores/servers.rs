//! Servers in processes of their own, on loopback. Each is started for one measurement, and stopped
//! after it.
//!
//! The commands of a call are sent together, and then their replies are read. Lines end with CR LF,
//! and so do the bytes of a value.
//!
//! | | Redis | memcached (its meta commands) |
//! |---|---|---|
//! | a command | `*PARTS`; for each part `$LENGTH`, its bytes | a line; the bytes that it stores |
//! | keys | eight bytes; `b` and eight bytes | `n` or `b`, and hexadecimal digits |
//! | put | `SET`: `+OK` | `ms KEY LENGTH`: `HD` |
//! | append | `APPEND`: `:LENGTH` | `ms KEY LENGTH MA`: `HD`, or `NS` if the key is missing |
//! | add | | `ms KEY LENGTH ME`: `HD`, or `NS` if the key is there |
//! | get | `$LENGTH` and the bytes, or `$-1` | `VA LENGTH` and the bytes, or `EN` |

use crate::result::{Failure, Outcome};
use crate::stores::peer::Peer;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server: how it is started, and what it is told.
pub struct Server {
    pub name: &'static str,
    pub program: &'static str,
    /// Its arguments, a blank between each. A free port follows.
    options: &'static str,
    write: fn(&mut Vec<u8>, Call, &[u8]) -> io::Result<()>,
    /// The beginnings of replies that say that something was stored, and that nothing was.
    stored: &'static [&'static str],
    refused: Option<&'static str>,
    /// The reply of a `get`, before the length of the value.
    value: &'static str,
    /// The reply of a `get` without a value.
    absent: &'static str,
}

/// A command and the number of its key. Values that grow have keys of their own.
#[derive(Clone, Copy)]
enum Call {
    Put(u64),
    Get(u64),
    Append(u64),
    /// Stores the bytes if the key is missing.
    Add(u64),
    Read(u64),
}
use Call::{Add, Append, Get, Put, Read as ReadAll};

pub const SERVERS: [Server; 2] = [
    Server {
        name: "Redis",
        program: "redis-server",
        // It keeps nothing on disk: the value of `--save` is empty.
        options: "--bind 127.0.0.1 --appendonly no --save  --port",
        write: redis,
        stored: &["+OK", ":"],
        refused: None,
        value: "$",
        absent: "$-1",
    },
    Server {
        name: "memcached",
        program: "memcached",
        // As much memory as it asks for, up to 8 GiB: it must not throw entries away.
        options: "-U 0 -l 127.0.0.1 -m 8192 -t 1 -u nobody -p",
        write: memcached,
        stored: &["HD"],
        refused: Some("NS"),
        value: "VA ",
        absent: "EN",
    },
];

fn redis(request: &mut Vec<u8>, call: Call, bytes: &[u8]) -> io::Result<()> {
    let (name, key): (&[u8], _) = match call {
        Put(key) => (b"SET", key.to_be_bytes().to_vec()),
        Get(key) => (b"GET", key.to_be_bytes().to_vec()),
        // An append doesn't need the key to be there.
        Append(key) | Add(key) => (b"APPEND", [b"b", &key.to_be_bytes()[..]].concat()),
        ReadAll(key) => (b"GET", [b"b", &key.to_be_bytes()[..]].concat()),
    };
    let parts = [name, &key, bytes];
    // A get has no bytes.
    let parts = &parts[..if name == b"GET" { 2 } else { 3 }];
    write!(request, "*{}\r\n", parts.len())?;
    for part in parts {
        write!(request, "${}\r\n", part.len())?;
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    Ok(())
}

fn memcached(request: &mut Vec<u8>, call: Call, bytes: &[u8]) -> io::Result<()> {
    let len = bytes.len();
    match call {
        Get(key) => return write!(request, "mg n{key:016x} v\r\n"),
        ReadAll(key) => return write!(request, "mg b{key:016x} v\r\n"),
        Put(key) => write!(request, "ms n{key:016x} {len}\r\n")?,
        Append(key) => write!(request, "ms b{key:016x} {len} MA\r\n")?,
        Add(key) => write!(request, "ms b{key:016x} {len} ME\r\n")?,
    }
    request.extend_from_slice(bytes);
    request.extend_from_slice(b"\r\n");
    Ok(())
}

/// A server that runs, and a connection to it.
struct Connection {
    server: &'static Server,
    process: Process,
    to: TcpStream,
    from: BufReader<TcpStream>,
    request: Vec<u8>,
    line: Vec<u8>,
}

/// The process of a server, which ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both only fail if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts the server, and connects to it once it listens.
    ///
    /// # Errors
    /// If the program is missing, or doesn't listen within ten seconds.
    pub fn start(&'static self) -> Outcome<Box<dyn Peer>> {
        let absent = |why| Failure::Impossible(format!("{}: {why}", self.program));
        Ok(Box::new(self.connect().map_err(absent)?))
    }

    fn connect(&'static self) -> io::Result<Connection> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        // Some servers write files in spite of their options.
        let child = Command::new(self.program)
            .args(self.options.split(' '))
            .arg(port.to_string())
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut process = Process(child);
        let to = stream(port, &mut process.0)?;
        Ok(Connection {
            server: self,
            process,
            from: BufReader::with_capacity(1 << 16, to.try_clone()?),
            to,
            request: Vec::new(),
            line: Vec::new(),
        })
    }
}

/// Connects to a server, which may need a moment before it listens.
fn stream(port: u16, child: &mut Child) -> io::Result<TcpStream> {
    let begin = Instant::now();
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            // Requests are sent as a whole, so there is no reason to delay them.
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            return Ok(stream);
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(io::Error::other(format!("it ended at once: {status}")));
        }
        if begin.elapsed() > Duration::from_secs(10) {
            return Err(io::Error::other("it does not listen"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Connection {
    /// Sends commands, each with the bytes that it stores.
    fn send<'b>(&mut self, calls: impl Iterator<Item = (Call, &'b [u8])>) -> Outcome {
        self.request.clear();
        for (call, bytes) in calls {
            (self.server.write)(&mut self.request, call, bytes)?;
        }
        self.to.write_all(&self.request)?;
        Ok(())
    }

    /// Reads a line of a reply, without its end, to `line`.
    fn reply(&mut self) -> Outcome {
        self.line.clear();
        self.from.read_until(b'\n', &mut self.line)?;
        if !self.line.ends_with(b"\r\n") {
            return Err(self.unexpected(&self.line));
        }
        self.line.truncate(self.line.len() - 2);
        Ok(())
    }

    /// Reads the reply of a command that stores something. Returns whether it has.
    fn stored(&mut self) -> Outcome<bool> {
        self.reply()?;
        let begins = |with: &&str| self.line.starts_with(with.as_bytes());
        match self.server.stored.iter().any(begins) {
            true => Ok(true),
            false if self.server.refused.iter().any(begins) => Ok(false),
            false => Err(self.unexpected(&self.line)),
        }
    }

    /// Reads the reply of a get. Appends the value to `out`, or returns false if there is none.
    fn value(&mut self, out: &mut Vec<u8>) -> Outcome<bool> {
        self.reply()?;
        if self.line == self.server.absent.as_bytes() {
            return Ok(false);
        }
        let length = self.line.strip_prefix(self.server.value.as_bytes());
        let length = length.and_then(|text| str::from_utf8(text).ok()?.parse::<usize>().ok());
        let length = length.ok_or_else(|| self.unexpected(&self.line))?;
        let end = out.len() + length;
        out.resize(end + 2, 0);
        self.from.read_exact(&mut out[end - length..])?;
        if !out.ends_with(b"\r\n") {
            return Err(self.unexpected(out));
        }
        out.truncate(end);
        Ok(true)
    }

    fn unexpected(&self, reply: &[u8]) -> Failure {
        Failure::wrong(self.server.name, String::from_utf8_lossy(reply))
    }
}

impl Peer for Connection {
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Outcome {
        let values: Vec<_> = values.iter().map(|value| value.to_le_bytes()).collect();
        let calls = keys.iter().zip(&values);
        self.send(calls.map(|(key, value)| (Put(*key), &value[..])))?;
        for _ in keys {
            if !self.stored()? {
                return Err(self.unexpected(&self.line));
            }
        }
        Ok(())
    }

    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Outcome<usize> {
        self.send(keys.iter().map(|key| (Get(*key), &[][..])))?;
        let (mut found, mut bytes) = (0, Vec::new());
        for place in values.iter_mut().take(keys.len()) {
            bytes.clear();
            if self.value(&mut bytes)? {
                let value = bytes.first_chunk().filter(|_| bytes.len() == 8);
                let value = value.ok_or_else(|| self.unexpected(&bytes))?;
                *place = u64::from_le_bytes(*value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Outcome<bool> {
        self.send(keys.iter().map(|key| (Append(*key), piece)))?;
        let stored: Vec<bool> = keys.iter().map(|_| self.stored()).collect::<Outcome<_>>()?;
        let missing = keys.iter().zip(stored).filter(|(_, stored)| !stored);
        // A missing key may be among them twice, so each waits for the one before.
        for (&key, _) in missing {
            self.send([(Add(key), piece)].into_iter())?;
            if !self.stored()? {
                self.send([(Append(key), piece)].into_iter())?;
                self.stored()?;
            }
        }
        Ok(true)
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Outcome<bool> {
        self.send([(ReadAll(key), &[][..])].into_iter())?;
        self.value(out)
    }

    fn process(&self) -> u32 {
        self.process.0.id()
    }
}
