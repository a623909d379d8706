//! The operations of every store from elsewhere. A call has many keys, so that a server gets many
//! commands at once, and the loops of C++ stores are in C++.

/// Why a peer can't be measured.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It isn't installed, or can't be started. The result says that it wasn't measured.
    #[error("{0}")]
    Absent(String),
    /// It gave a wrong answer. The run fails.
    #[error("{0}")]
    Wrong(String),
    /// A server's connection broke.
    #[error("connection: {0}")]
    Connection(#[from] std::io::Error),
}

/// A store that one thread uses. Every call fails if the peer can't do it.
pub trait Peer {
    /// Inserts values under keys, or replaces those that are present.
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<(), PeerError>;

    /// Writes the value of each key that is present to the same index of `values`. Returns how many
    /// are present.
    fn get(&mut self, keys: &[u64], values: &mut [u64]) -> Result<usize, PeerError>;

    /// Appends the piece to the bytes under each key. Returns false, and does nothing, if this peer
    /// has no appends.
    fn append(&mut self, keys: &[u64], piece: &[u8]) -> Result<bool, PeerError>;

    /// Appends the bytes under a key to `out`. Returns false if there are none.
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<bool, PeerError>;

    /// The process whose memory holds the entries.
    fn process(&self) -> u32 {
        std::process::id()
    }
}

/// A peer's name, and the function that starts an empty one.
pub type Listed = (
    &'static str,
    Box<dyn Fn() -> Result<Box<dyn Peer>, PeerError>>,
);
