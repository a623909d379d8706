//! Servers in processes of their own, on loopback. Each is started for one measurement, and stopped
//! after it.

mod memcached;
mod redis;

use crate::result::{Failure, Outcome};
use crate::stores::peer::Peer;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Start = fn() -> Outcome<Box<dyn Peer>>;

/// The servers: name, program, start.
pub const SERVERS: [(&str, &str, Start); 2] = [
    ("Redis", "redis-server", || {
        Ok(Box::new(redis::Redis::start()?))
    }),
    ("memcached", "memcached", || {
        Ok(Box::new(memcached::Memcached::start()?))
    }),
];

/// The process of a server, which ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both only fail if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server and a connection to it.
struct Server {
    name: &'static str,
    process: Process,
    to: TcpStream,
    from: BufReader<TcpStream>,
    /// The commands that [`send`](Server::send) sends.
    request: Vec<u8>,
    line: Vec<u8>,
}

impl Server {
    /// Starts a program with these arguments, a blank between each, and a free port as the last
    /// one. Connects once it listens.
    ///
    /// # Errors
    /// If the program is missing, or doesn't listen within ten seconds.
    fn start(name: &'static str, program: &str, arguments: &str) -> Outcome<Server> {
        let start = || -> io::Result<Server> {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            // Some servers write files in spite of their options.
            let child = Command::new(program)
                .args(arguments.split(' '))
                .arg(port.to_string())
                .current_dir(std::env::temp_dir())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            let mut process = Process(child);
            let to = connect(port, &mut process.0)?;
            let from = BufReader::with_capacity(1 << 16, to.try_clone()?);
            let (request, line) = (Vec::new(), Vec::new());
            Ok(Server {
                name,
                process,
                to,
                from,
                request,
                line,
            })
        };
        start().map_err(|why| Failure::Impossible(format!("{program}: {why}")))
    }

    fn send(&mut self) -> Outcome {
        self.to.write_all(&self.request)?;
        self.request.clear();
        Ok(())
    }

    /// Reads a line of the reply. Returns it without its end.
    fn reply(&mut self) -> Outcome<&[u8]> {
        self.line.clear();
        self.from.read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line),
            None => Err(unexpected(self.name, &self.line)),
        }
    }

    /// Appends `length` bytes of the reply to `out`. The end of a line must follow them.
    fn bytes(&mut self, length: usize, out: &mut Vec<u8>) -> Outcome {
        let end = out.len() + length;
        out.resize(end + 2, 0);
        self.from.read_exact(&mut out[end - length..])?;
        if !out.ends_with(b"\r\n") {
            return Err(unexpected(self.name, out));
        }
        out.truncate(end);
        Ok(())
    }

    /// The number in the eight bytes of a value.
    fn number(&self, value: &[u8]) -> Outcome<u64> {
        let bytes = value.try_into().map_err(|_| unexpected(self.name, value))?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Connects to a server, which may need a moment before it listens.
fn connect(port: u16, child: &mut Child) -> io::Result<TcpStream> {
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

fn unexpected(server: &str, reply: &[u8]) -> Failure {
    let reply = String::from_utf8_lossy(reply);
    Failure::wrong(server, reply)
}
