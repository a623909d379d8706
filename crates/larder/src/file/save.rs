//! Writing a table to a file.

use super::format::{Header, CHUNK, FOOTER};
use crate::budget::{Budget, Step};
use crate::error::{Error, FileError};
use crate::ids::OwnerId;
use crate::raw;
use crate::scan::Cursor;
use crate::table::Table;
use larder_index::{Batch, Direction};
use larder_term::{etf, NodeName};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes of objects after which a chunk is written.
const CHUNK_BYTES: usize = 1 << 15;

/// How a table is saved.
#[derive(Clone, Debug)]
pub struct SaveOptions {
    /// Whether to wait until the system has the file on its disk, file and name both.
    pub sync: bool,
    /// What "of this node" is called in the file.
    pub node: NodeName,
    /// Bytes of the host's own, which come back with the header.
    pub extra: Vec<u8>,
}

/// A save under way. Dropped before it is done, it leaves no file of its own, and what was there
/// before as it was.
pub struct SaveJob {
    /// The table, which has to live until the end.
    table: Arc<Table>,
    /// What is saved: a snapshot of the table, or itself if it can have none.
    objects_of: Arc<Table>,
    options: SaveOptions,
    cursor: Cursor,
    batch: Batch,
    output: FileWriter,
    objects: u64,
}

/// The file being written.
struct FileWriter {
    file: File,
    digest: Sha256,
    temporary: PathBuf,
    path: PathBuf,
    renamed: bool,
}

impl SaveJob {
    /// Begins to save the table to the file at `path`, as it is at this moment. A table on a
    /// structure of the studies is saved as a scan sees it.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to read is needed), `Busy` (a list is being inserted), `File`
    /// if the file can't be made.
    pub fn begin(
        table: &Arc<Table>,
        who: OwnerId,
        path: &Path,
        options: SaveOptions,
    ) -> Result<SaveJob, Error> {
        // The right is asked for once: a save that has begun goes on if it is taken back.
        table.check_read(who)?;
        let objects_of = if table.check_watchable().is_ok() {
            table.unlisted_snapshot()?
        } else {
            Arc::clone(table)
        };
        // Name and rights may have changed since the table was made. The file has those of now.
        let mut kept = table.options().clone();
        kept.access = table.access();
        kept.name = table.name();
        let header = Header {
            version: super::format::VERSION,
            options: kept,
            objects: table.size() as u64,
            extra: options.extra.clone(),
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        // A refusal up to here leaves no file.
        let mut output = FileWriter::create(path)?;
        output.write(&bytes)?;
        Ok(SaveJob {
            cursor: Cursor::new(&objects_of, None, Direction::Forward, None),
            table: Arc::clone(table),
            objects_of,
            options,
            batch: Batch::default(),
            output,
            objects: 0,
        })
    }

    /// One slice: about a chunk, or the end.
    ///
    /// # Errors
    /// `NoTable` if the table was dropped meanwhile, `Busy` (help and step again), `File`.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        if self.output.renamed {
            return Ok(Step::Done);
        }
        if !self.table.is_alive() {
            return Err(Error::NoTable);
        }
        loop {
            if !self.chunk(budget)? {
                self.output.finish(self.objects, self.options.sync)?;
                return Ok(Step::Done);
            }
            if budget.is_exhausted() {
                return Ok(Step::More);
            }
        }
    }

    /// Writes a chunk, or what lies together in more of them; false if there are no more objects.
    fn chunk(&mut self, budget: &mut Budget) -> Result<bool, Error> {
        // Chunks end between leaves, mostly. One that is full in the middle of a leaf's objects has
        // another behind it, and all of them are written at once.
        let mut chunks = vec![FileChunk::new()];
        loop {
            match self.some(&mut chunks, budget) {
                Ok(0) => break,
                Ok(_) => {}
                // What was gathered stands, or lists that come one after another would have it
                // begun again and again.
                Err(Error::Busy) if chunks.iter().any(|chunk| chunk.objects > 0) => break,
                Err(error) => return Err(error),
            }
            let enough = chunks.len() > 1 || chunks.iter().any(FileChunk::is_full);
            if enough || budget.is_exhausted() {
                break;
            }
        }
        // What was read is written, whatever ended the loop: the cursor has passed it, and the next
        // step begins behind it.
        let before = self.objects;
        for chunk in chunks.into_iter().filter(|chunk| chunk.objects > 0) {
            self.objects += u64::from(chunk.objects);
            self.output.write(&chunk.close()?)?;
        }
        Ok(self.objects > before)
    }

    /// Appends a leaf's worth of objects: to another chunk as soon as one is full, for an object's
    /// binaries lie in no leaf. An error leaves the place as it was.
    fn some(&mut self, chunks: &mut Vec<FileChunk>, budget: &mut Budget) -> Result<usize, Error> {
        // Pinned for one leaf's objects only: a save may take minutes, and nothing that others
        // delete meanwhile is kept for it.
        let guard = larder_index::pin();
        let table = &self.objects_of;
        let op = table.begin(&guard)?;
        let usable = self.cursor.fill(table, &op, (0, false), &mut self.batch);
        let (mut plain, mut tuple) = (Vec::new(), Vec::new());
        for i in 0..usable {
            let (key, value) = (self.batch.key(i), self.batch.value(i));
            // The batch is a copy: its values' handles are good as long as the guard is, so their
            // bytes are written before it goes.
            let object = raw::view(key, value, table.keypos(), &mut plain);
            tuple.clear();
            object.to_tuple(&mut tuple);
            if chunks.last().is_none_or(FileChunk::is_full) {
                chunks.push(FileChunk::new());
            }
            if let Some(chunk) = chunks.last_mut() {
                etf::encode(raw::stored(&tuple), &self.options.node, &mut chunk.bytes);
                chunk.objects += 1;
            }
            budget.spend(1);
        }
        Ok(usable)
    }
}

/// A chunk in the making: its mark, its payload's length and its number of objects, which are known
/// in the end, and the objects.
struct FileChunk {
    bytes: Vec<u8>,
    objects: u32,
}

impl FileChunk {
    const HEAD: usize = 9;

    fn new() -> FileChunk {
        let mut bytes = vec![0; Self::HEAD];
        bytes[0] = CHUNK;
        FileChunk { bytes, objects: 0 }
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= CHUNK_BYTES
    }

    /// All of it, with its checksum. An error if it is longer than its length field holds: it is
    /// one object then, or few.
    fn close(mut self) -> Result<Vec<u8>, FileError> {
        // The checksum covers the head too, with the length and the number in it.
        let payload = length(self.bytes.len() - Self::HEAD)?;
        self.bytes[1..5].copy_from_slice(&payload.to_le_bytes());
        self.bytes[5..9].copy_from_slice(&self.objects.to_le_bytes());
        let sum = crc32fast::hash(&self.bytes);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(self.bytes)
    }
}

/// The length field of a payload of so many bytes.
fn length(bytes: usize) -> Result<u32, FileError> {
    u32::try_from(bytes).map_err(|_| FileError::Io {
        what: format!("writing an object of {bytes} bytes"),
        kind: ErrorKind::FileTooLarge,
    })
}

impl FileWriter {
    fn create(path: &Path) -> Result<FileWriter, FileError> {
        let what = || format!("making {}", path.display());
        let (file, temporary) = temporary(path).map_err(|e| FileError::io(what(), &e))?;
        Ok(FileWriter {
            file,
            digest: Sha256::new(),
            temporary,
            path: path.to_owned(),
            renamed: false,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        // The digest is of everything before the footer, in the order in which it is written.
        self.digest.update(bytes);
        self.raw(bytes)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let what = || format!("writing {}", self.path.display());
        let written = self.file.write_all(bytes);
        written.map_err(|e| FileError::io(what(), &e))
    }

    /// Writes the footer and gives the file its name.
    fn finish(&mut self, objects: u64, sync: bool) -> Result<(), FileError> {
        // The number of objects is that which was written. The header's is that of the beginning.
        let mut footer = vec![FOOTER];
        footer.extend_from_slice(&objects.to_le_bytes());
        footer.extend_from_slice(&self.digest.clone().finalize());
        let sum = crc32fast::hash(&footer);
        footer.extend_from_slice(&sum.to_le_bytes());
        self.raw(&footer)?;
        let what = || format!("completing {}", self.path.display());
        if sync {
            // The bytes are on the disk before the name leads to them: a crash leaves the old file
            // or the new one, whole.
            self.file
                .sync_all()
                .map_err(|e| FileError::io(what(), &e))?;
        }
        // The name changes hands at one instant. From here on `drop` leaves the file alone.
        std::fs::rename(&self.temporary, &self.path).map_err(|e| FileError::io(what(), &e))?;
        self.renamed = true;
        if sync {
            // The folder has the name: it is on the disk when the folder is.
            let folder = File::open(folder(&self.path));
            let synced = folder.and_then(|folder| folder.sync_all());
            synced.map_err(|e| FileError::io(what(), &e))?;
        }
        Ok(())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.renamed {
            // There is nobody to report to if it can't be removed.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Names that are tried for a temporary file.
const NAMES: u32 = 1000;

/// A new file beside `path`, and its name. A node that was killed in the middle of a save may have
/// left one behind, and another with its number comes to it.
fn temporary(path: &Path) -> std::io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Beside the file, so that both are on one file system, and the rename is one step.
    path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let mut tries = 0..NAMES;
    loop {
        // Ordering: Relaxed; only the numbers' being different matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Short, whatever the name of the file: that may be as long as names can be.
        let name = format!(".larder.{}.{number}.partial", std::process::id());
        let temporary = folder(path).join(name);
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary);
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries.next().is_some() => {}
            made => return Ok((made?, temporary)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_left_behind_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let (_, first) = temporary(&path).unwrap();
        let name = first.file_name().unwrap().to_str().unwrap();
        let number: u64 = name.split('.').nth(3).unwrap().parse().unwrap();
        for later in number + 1..number + 50 {
            let left = name.replace(&format!(".{number}."), &format!(".{later}."));
            std::fs::write(folder.path().join(left), b"").unwrap();
        }
        let (_, second) = temporary(&path).unwrap();
        assert_eq!(std::fs::metadata(&second).unwrap().len(), 0);
        assert_ne!(first, second);
    }

    #[test]
    fn a_length_that_no_chunk_can_tell_is_an_error() {
        assert_eq!(length(u32::MAX as usize).unwrap(), u32::MAX);
        assert!(matches!(
            length(1 << 32),
            Err(FileError::Io {
                kind: ErrorKind::FileTooLarge,
                ..
            })
        ));
    }
}
