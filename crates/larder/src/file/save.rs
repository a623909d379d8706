//! Writing a table to a file.
//!
//! 1. `SaveJob::begin` takes a snapshot, if the table can have one. It creates a temporary file
//!    beside the target, and writes the header.
//! 2. Each `SaveJob::step` reads objects of one leaf after the other, gathers them in a chunk
//!    (`FileChunk`), and writes it. The cursor only passes objects that are then written, also if
//!    the step ends early. So objects are neither lost nor written twice.
//! 3. The last step writes the footer, and renames the file. A job that is dropped before that
//!    removes the temporary file.

use super::format::{units, Header, CHUNK, FOOTER};
use crate::budget::{Budget, Step};
use crate::error::{Error, FileError};
use crate::ids::OwnerId;
use crate::raw;
use crate::scan::Cursor;
use crate::table::EngineTable;
use crate::threads::spawn;
use larder_index::{Batch, Direction};
use larder_term::{etf, NodeName};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A chunk is written when its objects have this number of bytes.
const CHUNK_BYTES: usize = 1 << 15;

/// An unfinished file of more bytes is closed by a thread of its own.
const LARGE: u64 = 16 << 20;

/// Unfinished files that are to be closed.
static TO_CLOSE: Mutex<Vec<File>> = Mutex::new(Vec::new());

fn close_files() {
    let files = std::mem::take(&mut *TO_CLOSE.lock());
    drop(files);
}

/// How a table is saved.
#[derive(Clone, Debug)]
pub struct SaveOptions {
    /// Whether to wait until both the file and its name are on the disk.
    pub sync: bool,
    /// The name and the creation that the file has for pids, ports and references of this node.
    pub node: NodeName,
    /// The host's own bytes, which are stored in the header: almost 16 MiB at most.
    pub extra: Vec<u8>,
}

/// A save in progress. If it is dropped before it is done, the old file, if there is one, is
/// unchanged.
pub struct SaveJob {
    /// The table, which must live until the end.
    table: Arc<EngineTable>,
    /// The table whose objects are saved: a snapshot, or the table itself if it can have none.
    objects_of: Arc<EngineTable>,
    options: SaveOptions,
    cursor: Cursor,
    batch: Batch<'static>,
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
    /// Begins to save the table to the file at `path`, as of this moment. A table on a structure of
    /// the studies has no snapshots, and is saved as a scan sees it.
    ///
    /// # Errors
    /// `NoTable`, `Access` (the right to read is needed), `Busy` (a list is being inserted), `File`
    /// if the file can't be made, or the host's bytes are more than 16 MiB.
    pub fn begin(
        table: &Arc<EngineTable>,
        who: OwnerId,
        path: &Path,
        options: SaveOptions,
    ) -> Result<SaveJob, Error> {
        // The right to read is only checked here: a save that has begun continues if the right is
        // withdrawn.
        table.check_read(who)?;
        let objects_of = if table.check_watchable().is_ok() {
            table.unlisted_snapshot()?
        } else {
            Arc::clone(table)
        };
        // The name and the access rights may have changed since the table was made. Save the
        // current ones.
        let mut kept = table.options().clone();
        let of_view = table.view.as_ref().and_then(|view| view.saved_access);
        kept.access = of_view.unwrap_or_else(|| table.access());
        kept.name = table.name();
        let header = Header {
            version: super::format::VERSION,
            options: kept,
            objects: table.size() as u64,
            extra: options.extra.clone(),
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes)?;
        // Make the file last, so that no error above leaves a file.
        let mut output = FileWriter::create(path)?;
        output.write(&bytes)?;
        Ok(SaveJob {
            cursor: Cursor::everywhere(&objects_of, Direction::Forward),
            table: Arc::clone(table),
            objects_of,
            options,
            batch: Batch::default(),
            output,
            objects: 0,
        })
    }

    /// Runs one slice: writes about one chunk, or finishes the file.
    ///
    /// # Errors
    /// `NoTable` if the table was dropped meanwhile; `Busy` if a list batch is in progress: help
    /// with the batch, and call `step` again; `File`.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        // A job that has finished may be stepped again.
        if self.output.renamed {
            return Ok(Step::Done);
        }
        // The file that was begun is removed when the job is dropped.
        if !self.table.is_alive() {
            return Err(Error::NoTable);
        }
        loop {
            if self.chunk(budget)? == Step::Done {
                self.output.finish(self.objects, self.options.sync)?;
                return Ok(Step::Done);
            }
            if budget.is_exhausted() {
                return Ok(Step::More);
            }
        }
    }

    /// Writes one chunk or a few. Returns `Done` if there are no more objects.
    fn chunk(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        // A chunk usually ends between two leaves. If it gets full within a leaf, another one is
        // begun, and all are written at once.
        let mut chunks = vec![FileChunk::new()];
        let mut step = Step::More;
        loop {
            match self.append_leaf(&mut chunks, budget) {
                Ok(Step::Done) => {
                    step = Step::Done;
                    break;
                }
                Ok(Step::More) => {}
                // A list batch is in progress. Write the objects that were gathered. If they were
                // discarded, a series of lists could prevent all progress.
                Err(Error::Busy) if chunks.iter().any(|chunk| chunk.objects > 0) => break,
                Err(error) => return Err(error),
            }
            let enough = chunks.len() > 1 || chunks.iter().any(FileChunk::is_full);
            if enough || budget.is_exhausted() {
                break;
            }
        }
        // Write everything that was read, whatever has ended the loop: the cursor is past it.
        for chunk in chunks.into_iter().filter(|chunk| chunk.objects > 0) {
            self.objects += u64::from(chunk.objects);
            self.output.write(&chunk.close()?)?;
        }
        Ok(step)
    }

    /// Appends the objects of a leaf to the chunks, as far as the budget lasts. Begins another
    /// chunk when one is full: the objects of a leaf may be long, since large binaries are outside
    /// the leaf. Returns `Done` if there are no more. After an error the cursor is at the same
    /// point.
    fn append_leaf(
        &mut self,
        chunks: &mut Vec<FileChunk>,
        budget: &mut Budget,
    ) -> Result<Step, Error> {
        // Pin the epoch for the objects of one leaf only, or for some that the index leaves out. A
        // save may take minutes, and must not keep garbage from being freed.
        let guard = larder_index::pin();
        let (table, node, cursor) = (&self.objects_of, &self.options.node, &mut self.cursor);
        let op = table.begin(&guard)?;
        let (mut plain, mut tuple) = (Vec::new(), Vec::new());
        Ok(self.batch.lend(|batch| {
            batch.may_pause = true;
            let usable = cursor.fill(table, &op, 0, false, batch);
            budget.spend(batch.skipped as u32);
            for i in 0..usable {
                let (key, value) = batch.entry(i);
                // The handles in the objects are valid while the epoch is pinned, so encode the
                // object now.
                let object = raw::view(key, value, table.keypos(), &mut plain);
                tuple.clear();
                object.to_tuple(&mut tuple);
                if chunks.last().is_none_or(FileChunk::is_full) {
                    chunks.push(FileChunk::new());
                }
                if let Some(chunk) = chunks.last_mut() {
                    let before = chunk.bytes.len();
                    etf::encode(raw::stored(&tuple), node, &mut chunk.bytes);
                    chunk.objects += 1;
                    let goes_on = budget.spend(units(chunk.bytes.len() - before));
                    if !goes_on && i + 1 < usable {
                        cursor.stop(table, &op, batch, i + 1);
                        break;
                    }
                }
            }
            match usable {
                0 if cursor.is_at_end() => Step::Done,
                _ => Step::More,
            }
        }))
    }
}

/// A chunk that is being built: its tag, the length of its payload, its number of objects, and the
/// objects. The length and the number are filled in at the end.
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

    /// Completes the chunk with its length, its number of objects and its checksum. It is an error
    /// if the length doesn't fit in its field, which can only happen with very large objects.
    fn close(mut self) -> Result<Vec<u8>, FileError> {
        // The checksum also covers the head.
        let payload = length(self.bytes.len() - Self::HEAD)?;
        self.bytes[1..5].copy_from_slice(&payload.to_le_bytes());
        self.bytes[5..9].copy_from_slice(&self.objects.to_le_bytes());
        let sum = crc32fast::hash(&self.bytes);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(self.bytes)
    }
}

/// The length of a payload, if it fits in the length field.
fn length(bytes: usize) -> Result<u32, FileError> {
    u32::try_from(bytes).map_err(|_| FileError::Io {
        what: format!("writing an object of {bytes} bytes"),
        kind: ErrorKind::FileTooLarge,
        code: None,
    })
}

impl FileWriter {
    fn create(path: &Path) -> Result<FileWriter, FileError> {
        // Written to a temporary file, which replaces the other one when it is complete.
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
        // The digest covers everything before the footer.
        self.digest.update(bytes);
        self.raw(bytes)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let what = || format!("writing {}", self.path.display());
        let written = self.file.write_all(bytes);
        written.map_err(|e| FileError::io(what(), &e))
    }

    /// Writes the footer, and renames the file.
    fn finish(&mut self, objects: u64, sync: bool) -> Result<(), FileError> {
        // The footer has the number of objects that were written. That in the header is the number
        // when the save began.
        let mut footer = vec![FOOTER];
        footer.extend_from_slice(&objects.to_le_bytes());
        footer.extend_from_slice(&self.digest.clone().finalize());
        let sum = crc32fast::hash(&footer);
        footer.extend_from_slice(&sum.to_le_bytes());
        self.raw(&footer)?;
        let what = || format!("completing {}", self.path.display());
        if sync {
            // Sync the bytes before the file is renamed. So after a crash either the old or the new
            // file is there, and it is complete.
            self.file
                .sync_all()
                .map_err(|e| FileError::io(what(), &e))?;
        }
        // The name is part of the folder, so sync that, too. Open it first: an error leaves the old
        // file.
        let folder = sync.then(|| File::open(folder(&self.path))).transpose();
        let folder = folder.map_err(|e| FileError::io(what(), &e))?;
        // The rename is atomic. From here on `drop` must not remove the file.
        std::fs::rename(&self.temporary, &self.path).map_err(|e| FileError::io(what(), &e))?;
        self.renamed = true;
        if let Some(folder) = folder {
            sync_folder(&folder).map_err(|e| FileError::io(what(), &e))?;
        }
        Ok(())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.renamed {
            // If it can't be removed, there is nobody to report the error to.
            let _ = std::fs::remove_file(&self.temporary);
            // The system frees the room of a removed file when it is closed, which takes long if
            // there is much. The last reference may go anywhere, such as in the destructor of a
            // host's resource.
            if self.file.metadata().is_ok_and(|file| file.len() > LARGE) {
                TO_CLOSE.lock().extend(self.file.try_clone());
                // If no thread can be started, the next one closes it.
                let _ = spawn("larder-files", close_files);
            }
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

/// Syncs a folder. A file system that can't do so isn't asked to.
fn sync_folder(folder: &File) -> std::io::Result<()> {
    match folder.sync_all() {
        Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// The number of names that are tried for a temporary file.
const NAMES: u32 = 1000;

/// Creates a new file in the folder of `path`. Returns it with its name. A name may be taken: a
/// process that was killed in the middle of a save leaves its file behind, and process ids are used
/// again.
fn temporary(path: &Path) -> std::io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Beside the file, so that both are on one file system, and the rename is one step.
    // The name of a file doesn't end in `..`, nor is it that of the root.
    path.file_name().ok_or(ErrorKind::IsADirectory)?;
    let mut tries = 0..NAMES;
    loop {
        // Ordering: Relaxed; only the numbers' being different matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A short name. The file's own name may already have the greatest length that the system
        // permits.
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

    /// That of processes is such a file system.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_folder_that_cannot_be_synced_is_no_error() {
        let folder = File::open("/proc/self").unwrap();
        assert!(folder.sync_all().is_err());
        sync_folder(&folder).unwrap();
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
