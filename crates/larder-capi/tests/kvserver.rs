//! `examples/kvserver`: compiled, started, and asked over its socket.

mod programs;

use programs::{compile, library, root};
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A running server; one that is left over is killed.
struct Server {
    child: Child,
    socket: PathBuf,
    greeting: String,
}

impl Server {
    fn start(program: &Path, place: &Path) -> Server {
        let socket = place.join("socket");
        let mut child = Command::new(program)
            .arg(&socket)
            .arg(place.join("store.larder"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut greeting = String::new();
        let out = child.stdout.take().expect("it was asked for");
        BufReader::new(out)
            .read_line(&mut greeting)
            .expect("it says where it is");
        Server {
            child,
            socket,
            greeting,
        }
    }

    fn connect(&self) -> Client {
        let stream = UnixStream::connect(&self.socket).expect("the server listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout can be set");
        Client {
            lines: BufReader::new(stream.try_clone().expect("a second handle")),
            stream,
        }
    }

    /// Asks the server to end, as an operator would.
    fn ask_to_end(&self) {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(killed.expect("there is kill").success());
    }

    fn end(mut self) -> ExitStatus {
        self.ask_to_end();
        self.child.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client {
    lines: BufReader<UnixStream>,
    stream: UnixStream,
}

impl Client {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("an answer");
        line.trim_end_matches('\n').to_owned()
    }

    fn ask(&mut self, request: &str) -> String {
        writeln!(self.stream, "{request}").expect("the server reads");
        self.line()
    }

    fn says(&mut self, request: &str, answer: &str) {
        assert_eq!(self.ask(request), answer, "{request}");
    }
}

#[test]
fn key_value_server() {
    let place = tempfile::tempdir().expect("a folder");
    let source = root().join("../../examples/kvserver/kvserver.c");
    let program = compile(&source, &library(".a"), place.path());

    let server = Server::start(&program, place.path());
    assert!(server.greeting.contains(": 0 keys"), "{}", server.greeting);
    let mut client = server.connect();
    requests_are_answered(&mut client);
    watchers_follow(&server, &mut client);
    watchers_leave_no_threads(&server);
    long_requests_are_refused(&mut client);

    // It ends with connections open, and its file has what it had.
    assert!(server.end().success());
    let server = Server::start(&program, place.path());
    assert!(server.greeting.contains(": 3 keys"), "{}", server.greeting);
    let mut client = server.connect();
    client.says("GET bank", "= 200");
    client.says("GET apple", "= red and green");
    client.says("SIZE", "= 3");

    a_second_server_gives_up(&program, &server);

    // One that was killed has left its socket, which the next one takes.
    drop(server);
    assert!(place.path().join("socket").exists());
    let server = Server::start(&program, place.path());
    server.connect().says("SIZE", "= 3");
    assert!(server.end().success());

    a_store_is_no_socket(&program, place.path());
}

fn requests_are_answered(client: &mut Client) {
    client.says("GET apple", "NONE");
    client.says("SET apple red and green", "OK");
    client.says("GET apple", "= red and green");
    client.says("NEW apple blue", "NONE");
    client.says("NEW pear yellow", "OK");
    client.says("RANGE a b", "apple red and green");
    assert_eq!(client.line(), "OK");
    client.says("DEL pear", "OK");
    client.says("DEL pear", "NONE");
    // A sum that is beyond 64 bits is an error, but it is there.
    client.says("ADD many 9223372036854775807", "= 9223372036854775807");
    assert!(client.ask("ADD many 1").starts_with("ERR "));
    client.says("GET many", "= 9223372036854775808");
    client.says("DEL many", "OK");
    for wrong in [
        "ADD apple 1",
        "ADD apple many",
        "FLY",
        "GET",
        "MOVE apple",
        "",
    ] {
        assert!(client.ask(wrong).starts_with("ERR "), "{wrong}");
    }
}

/// Two connections follow, while four add to one counter and move what is in two others.
fn watchers_follow(server: &Server, client: &mut Client) {
    let mut watchers = [server.connect(), server.connect()];
    for watcher in &mut watchers {
        watcher.says("WATCH", "OK");
    }
    client.says("ADD bank 1000", "= 1000");
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let mut client = server.connect();
            thread::spawn(move || {
                for _ in 0..100 {
                    assert!(client.ask("ADD hits 1").starts_with("= "));
                    client.says("MOVE bank till 2", "OK");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("the answers are right");
    }
    client.says("GET hits", "= 400");
    client.says("GET bank", "= 200");
    client.says("GET till", "= 800");
    client.says("MOVE bank till 201", "NONE");
    client.says("DEL hits", "OK");
    for watcher in &mut watchers {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|line| line != "DEL hits") {
            seen.push(watcher.line());
        }
        assert_eq!(seen.len(), 1 + 400 + 2 * 400 + 1);
        assert!(seen.contains(&"SET hits 400".to_owned()));
        assert!(seen.contains(&"SET till 800".to_owned()));
    }
}

/// Watchers that have said something more, and go, leave no threads behind.
fn watchers_leave_no_threads(server: &Server) {
    let threads = || {
        let tasks = format!("/proc/{}/task", server.child.id());
        std::fs::read_dir(tasks).expect("threads").count()
    };
    let few = threads() + 10;
    for _ in 0..20 {
        let mut watcher = server.connect();
        watcher.says("WATCH", "OK");
        writeln!(watcher.stream, "THANKS").expect("the server is there");
    }
    wait_until("the watchers' threads end", || threads() < few);
}

fn long_requests_are_refused(client: &mut Client) {
    let long = format!("SET long {}", "x".repeat(70_000));
    assert!(client.ask(&long).starts_with("ERR a line"));
    assert!(client.ask("SET zero a\0b").starts_with("ERR a line"));
    client.says("SIZE", "= 3");
}

/// Another server does not take the place of one that is at work.
fn a_second_server_gives_up(program: &Path, server: &Server) {
    let mut second = Command::new(program)
        .arg(&server.socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut ended = None;
    wait_until("the second one ends", || {
        ended = second.try_wait().expect("its state");
        ended.is_some() || server.connect().ask("SIZE") != "= 3"
    });
    let _ = second.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(1));
    server.connect().says("SIZE", "= 3");
}

/// A file in the place of the socket is not deleted, such as a store that was given alone.
fn a_store_is_no_socket(program: &Path, folder: &Path) {
    let store = folder.join("store.larder");
    let mut child = Command::new(program)
        .arg(&store)
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut ended = None;
    wait_until("it refuses", || {
        ended = child.try_wait().expect("its state");
        ended.is_some() || !store.is_file()
    });
    let _ = child.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(1));
    assert!(store.is_file());
}

/// A feed that nobody frees keeps what is written.
#[test]
fn watchers_that_go_before_the_first_answer() {
    let place = tempfile::tempdir().expect("a folder");
    let source = root().join("../../examples/kvserver/kvserver.c");
    let program = compile(&source, &library(".a"), place.path());
    let server = Server::start(&program, place.path());
    let mut client = server.connect();
    client.says("SIZE", "= 0");
    for _ in 0..20 {
        let mut watcher = server.connect();
        let closed = watcher.stream.shutdown(Shutdown::Read);
        closed.expect("it is connected");
        writeln!(watcher.stream, "WATCH").expect("the server is there");
    }
    let resident = || {
        let file = format!("/proc/{}/statm", server.child.id());
        let statm = std::fs::read_to_string(file).expect("its memory");
        let pages = statm.split(' ').nth(1).expect("a number");
        pages.parse::<usize>().expect("a number") * 4096
    };
    let before = resident();
    let large = format!("SET large {}", "x".repeat(60_000));
    for _ in 0..1500 {
        client.says(&large, "OK");
    }
    let grown = resident().saturating_sub(before);
    assert!(
        grown < 40_000_000,
        "{grown} bytes more after 90 MB of writes"
    );
    assert!(server.end().success());
}

/// One that starts while another one saves its table would have an older file, and write over the
/// new one when it ends.
#[test]
fn the_next_one_begins_with_what_the_last_one_saves() {
    const KEYS: usize = 20_000;
    let place = tempfile::tempdir().expect("a folder");
    let source = root().join("../../examples/kvserver/kvserver.c");
    let program = compile(&source, &library(".a"), place.path());
    let server = Server::start(&program, place.path());
    let mut client = server.connect();
    let value = "x".repeat(2_000);
    for i in 0..KEYS {
        client.says(&format!("SET {i} {value}"), "OK");
    }
    server.ask_to_end();
    let next = next_one(&program, place.path());
    let has_all = next.greeting.contains(&format!(": {KEYS} keys"));
    assert!(has_all, "{}", next.greeting);
    assert!(next.end().success());
}

/// One that ends takes its own socket away, and not that of the next one.
#[test]
fn the_next_one_keeps_its_socket() {
    let place = tempfile::tempdir().expect("a folder");
    let source = root().join("../../examples/kvserver/kvserver.c");
    let program = compile(&source, &library(".a"), place.path());
    let mut server = Server::start(&program, place.path());
    for _ in 0..60 {
        server.ask_to_end();
        let next = next_one(&program, place.path());
        assert!(server.end().success());
        next.connect().says("SIZE", "= 0");
        server = next;
    }
    assert!(server.end().success());
}

/// Starts a server as soon as the last one lets it.
fn next_one(program: &Path, place: &Path) -> Server {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let started = Server::start(program, place);
        // It says nothing if the socket is taken.
        if !started.greeting.is_empty() {
            return started;
        }
    }
    panic!("the next one doesn't start");
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..400 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("waited in vain: {what}");
}
