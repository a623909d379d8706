//! The operations of every store from elsewhere. A call has many keys, so that a server can be sent
//! many commands at once, and a loop in C++ is not interrupted.

/// What a peer says when it can't go on.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It is not here, or can't be started: not measured, and said so.
    #[error("{0}")]
    Absent(String),
    /// It did something wrong: the run fails.
    #[error("{0}")]
    Wrong(String),
    /// A server's connection broke.
    #[error("connection: {0}")]
    Connection(#[from] std::io::Error),
}

/// A store in the hands of one thread. Every call fails if the peer can't do it.
pub trait Peer {
    /// Puts values under keys that may be there already.
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<(), Trouble>;

    /// Writes the values of those keys that are there to their places in `values`, and counts them.
    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Result<usize, Trouble>;

    /// Appends the piece to the bytes under each key. False, and nothing done, if this peer has no
    /// such thing.
    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Result<bool, Trouble>;

    /// Puts the bytes under a key to the end of `out`; false if there are none.
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, Trouble>;

    /// The process whose memory holds the entries.
    fn process(&self) -> u32 {
        std::process::id()
    }
}

/// A peer's name, and what makes an empty one, if it can be started.
pub type Listed = (
    &'static str,
    Box<dyn Fn() -> Result<Box<dyn Peer>, Trouble>>,
);
