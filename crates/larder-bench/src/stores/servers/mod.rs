//! Servers in processes of their own, on loopback. Each is started for one measurement, and stopped
//! after it.

mod memcached;
mod redis;

use crate::stores::peer::{Peer, PeerError};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How a server is started. It fails if it is not installed or does not come up.
type Start = fn() -> Result<Box<dyn Peer>, PeerError>;

/// The servers' names, and the program of each.
pub const SERVERS: [(&str, &str, Start); 2] = [
    ("Redis", "redis-server", || {
        Ok(Box::new(redis::Redis::start()?))
    }),
    ("memcached", "memcached", || {
        Ok(Box::new(memcached::Memcached::start()?))
    }),
];

/// A server and the way to it. It ends with this value.
pub struct Server {
    name: &'static str,
    child: Child,
    to: TcpStream,
    /// What comes back.
    from: BufReader<TcpStream>,
    /// What [`send`](Server::send) sends.
    pub request: Vec<u8>,
    line: Vec<u8>,
}

impl Server {
    /// Starts the program with these arguments, a blank after each, and a free port for the last
    /// one; connects once it listens.
    ///
    /// # Errors
    /// If the program is not there, or does not listen within ten seconds.
    pub fn start(name: &'static str, program: &str, arguments: &str) -> Result<Server, PeerError> {
        let absent = |why: String| PeerError::Absent(format!("{program}: {why}"));
        // The listener is gone when the server comes.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.map_err(|error| absent(error.to_string()))?.port();
        // Files that a server writes in spite of its options go to the temporary folder.
        let mut child = Command::new(program)
            .args(arguments.split(' '))
            .arg(port.to_string())
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| absent(error.to_string()))?;
        let ways = connect(port, &mut child).and_then(|to| {
            let from = to.try_clone().map_err(|error| error.to_string())?;
            Ok((to, BufReader::with_capacity(1 << 16, from)))
        });
        // The program runs, but doesn't listen. Don't leave it behind.
        let (to, from) = ways.map_err(|why| {
            stop(&mut child);
            absent(why)
        })?;
        Ok(Server {
            name,
            child,
            to,
            from,
            request: Vec::new(),
            line: Vec::new(),
        })
    }

    /// Sends what was put into `request`, and empties it.
    pub fn send(&mut self) -> Result<(), PeerError> {
        self.to.write_all(&self.request)?;
        self.request.clear();
        Ok(())
    }

    /// The next line of what comes back, without its end.
    ///
    /// # Errors
    /// The way's, and a line that has no end.
    pub fn reply(&mut self) -> Result<&[u8], PeerError> {
        self.line.clear();
        self.from.read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line),
            None => Err(strange(self.name, &self.line)),
        }
    }

    /// Appends `length` bytes of the reply to `out`. The end of a line must follow them.
    pub fn bytes(&mut self, length: usize, out: &mut Vec<u8>) -> Result<(), PeerError> {
        let end = out.len() + length;
        out.resize(end + 2, 0);
        self.from.read_exact(&mut out[end - length..])?;
        if !out.ends_with(b"\r\n") {
            return Err(strange(self.name, out));
        }
        out.truncate(end);
        Ok(())
    }

    /// The number in the eight bytes of a value.
    pub fn number(&self, value: &[u8]) -> Result<u64, PeerError> {
        let bytes = value.try_into().map_err(|_| strange(self.name, value))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

fn connect(port: u16, child: &mut Child) -> Result<TcpStream, String> {
    // A server needs a moment before it listens. Try again until then.
    let begin = Instant::now();
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            let limit = Some(Duration::from_secs(60));
            // Without delay: each request is sent as a whole, and the answer is waited for.
            let set = stream
                .set_nodelay(true)
                .and_then(|()| stream.set_read_timeout(limit));
            return set.map(|()| stream).map_err(|error| error.to_string());
        }
        // Say that the program ended, and don't wait for the time to be over.
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("it ended at once: {status}"));
        }
        if begin.elapsed() > Duration::from_secs(10) {
            return Err("it does not listen".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn stop(child: &mut Child) {
    // Both fail only if it has ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// A reply that nobody expected.
pub fn strange(server: &str, reply: &[u8]) -> PeerError {
    PeerError::Wrong(format!(
        "{server} answers {:?}",
        String::from_utf8_lossy(reply)
    ))
}
