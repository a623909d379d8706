//! Reading a table from a file.
//!
//! 1. With `verify`, read the whole file and check it first, including its digest. A damaged file
//!    never becomes a table.
//! 2. Insert the objects chunk by chunk. Check the checksum of each chunk first, and the number of
//!    objects at the end.

use super::format::{array, damaged, open, take, units, Header, CHUNK, DIGEST, FOOTER};
use crate::budget::{Budget, Step};
use crate::engine::Engine;
use crate::error::{Error, FileError};
use crate::ids::OwnerId;
use crate::table::EngineTable;
use larder_term::object::ObjectBuf;
use larder_term::{etf, Atom, Mode, NodeName, TermBuf};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;
use std::sync::Arc;

/// The options of a load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Whether to check the whole file, its digest included, before the first object is inserted.
    /// Checksums and the number of objects are checked anyway.
    pub verify: bool,
    /// The name and the creation of this node. Pids, ports and references of the file that have
    /// both become identifiers of this node. All others remain those of another node.
    pub node: NodeName,
    /// As in `Options`. It depends on the host that loads the file, and isn't stored in the file.
    pub legacy_zero: bool,
    /// The maximum number of new atoms in this process by the end of the load, whichever thread
    /// creates them. Atoms are never freed.
    pub new_atoms: usize,
}

/// A load in progress. If it is dropped before it is done, it drops the table.
pub struct LoadJob {
    table: Arc<EngineTable>,
    owner: OwnerId,
    options: LoadOptions,
    input: Input,
    phase: LoadPhase,
    chunk: Vec<u8>,
    /// The offset of the next object in `chunk`, and the number of objects left there.
    next: usize,
    left: u32,
    found: u64,
    /// The number of atoms at the beginning.
    atoms: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadPhase {
    Verifying,
    Loading,
    Done,
}

/// The file being read.
struct Input {
    file: BufReader<File>,
    /// The length of the file in bytes; 0 if the system doesn't say.
    length: u64,
    /// The digest of everything that was read so far, if it is to be checked.
    digest: Option<Sha256>,
}

/// The next part of a file.
enum FilePart {
    /// A chunk with this number of objects; its payload is in the buffer.
    Chunk(u32),
    /// The end, with the number of objects.
    End(u64),
}

impl Input {
    fn open(path: &Path, verify: bool) -> Result<(Input, Header), FileError> {
        let (file, header, bytes) = open(path)?;
        let length = file.get_ref().metadata().map_or(0, |file| file.len());
        let mut input = Input {
            file,
            length,
            digest: verify.then(Sha256::new),
        };
        // The header is part of the digest.
        input.note(&bytes);
        Ok((input, header))
    }

    /// Goes back to the first chunk of the same file, even if another file has its name by now.
    fn begin_again(&mut self) -> Result<(), FileError> {
        let rewound = self.file.rewind();
        rewound.map_err(|e| FileError::io("reading the table's file again", &e))?;
        Header::read(&mut self.file)?;
        Ok(())
    }

    /// About how many objects there are after a chunk that was just read, if all chunks are like
    /// it.
    fn objects_after(&mut self, objects: u32, payload: usize) -> usize {
        let at = self.file.stream_position().unwrap_or(self.length);
        let bytes = self.length.saturating_sub(at);
        let after = u128::from(bytes) * u128::from(objects) / (payload as u128).max(1);
        usize::try_from(after).unwrap_or(usize::MAX)
    }

    fn note(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
    }

    /// Reads the next part. Leaves the payload of a chunk in `payload`.
    fn part(&mut self, payload: &mut Vec<u8>) -> Result<FilePart, FileError> {
        // The head of a chunk and the beginning of the footer have the same length: a byte and two
        // numbers, or a byte and one.
        let mut head = Vec::new();
        take(&mut self.file, 9, &mut head)?;
        match head[0] {
            CHUNK => self.chunk(head, payload).map(FilePart::Chunk),
            FOOTER => self.footer(head).map(FilePart::End),
            _ => Err(damaged(
                "neither a chunk nor the end where one of them should begin",
            )),
        }
    }

    fn chunk(&mut self, head: Vec<u8>, payload: &mut Vec<u8>) -> Result<u32, FileError> {
        let length = u32::from_le_bytes(array(&head[1..]));
        let objects = u32::from_le_bytes(array(&head[5..]));
        payload.clear();
        // The checksum of the length comes after the payload. A wrong length doesn't cost memory:
        // `take` reads at most to the end of the file, and returns `CutShort`.
        take(&mut self.file, length as usize, payload)?;
        let mut sum = Vec::new();
        take(&mut self.file, 4, &mut sum)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(payload);
        if u32::from_le_bytes(array(&sum)) != crc.finalize() {
            return Err(damaged("a chunk's checksum"));
        }
        // The digest only includes parts that have passed their own check.
        self.note(&head);
        self.note(payload);
        self.note(&sum);
        Ok(objects)
    }

    fn footer(&mut self, mut footer: Vec<u8>) -> Result<u64, FileError> {
        // Check the footer's own checksum first, so that a digest is compared only if it is the one
        // that was written.
        let digest = take(&mut self.file, DIGEST, &mut footer)?;
        let sum = take(&mut self.file, 4, &mut footer)?;
        if u32::from_le_bytes(array(&footer[sum..])) != crc32fast::hash(&footer[..sum]) {
            return Err(damaged("the end's checksum"));
        }
        // There is a digest only while the file is verified.
        if let Some(hasher) = self.digest.take() {
            if hasher.finalize()[..] != footer[digest..sum] {
                return Err(damaged("the digest of the whole"));
            }
        }
        // A file that goes on after its end was not written by `save`.
        match take(&mut self.file, 1, &mut footer) {
            Err(FileError::CutShort) => Ok(u64::from_le_bytes(array(&footer[1..]))),
            Err(error) => Err(error),
            Ok(_) => Err(damaged("something follows the end")),
        }
    }
}

impl LoadJob {
    /// Begins to load the table in the file at `path`, for `owner`. Creates the table, empty, with
    /// the options in the file.
    ///
    /// # Errors
    /// `File`; those of `Engine::create`: `AlreadyExists`, `NoOwner`, `UnknownStructure`,
    /// `BadOption`.
    pub fn begin(
        engine: &Engine,
        owner: OwnerId,
        path: &Path,
        options: LoadOptions,
    ) -> Result<LoadJob, Error> {
        Self::begin_named(engine, owner, path, options, true)
    }

    /// Like `begin`. Unless `keeps_name`, a table that was saved as a named one isn't found by its
    /// name, and another table may have that.
    ///
    /// # Errors
    /// Those of `begin`.
    pub fn begin_named(
        engine: &Engine,
        owner: OwnerId,
        path: &Path,
        options: LoadOptions,
        keeps_name: bool,
    ) -> Result<LoadJob, Error> {
        let (input, header) = Input::open(path, options.verify)?;
        // The header's checksum was checked as it was read.
        let mut made = header.options;
        made.legacy_zero = options.legacy_zero;
        made.named &= keeps_name;
        // Create the table before the objects are read, so that a name that is in use is refused
        // now.
        let table = engine.create(made, owner)?;
        Ok(LoadJob {
            table,
            owner,
            phase: if options.verify {
                LoadPhase::Verifying
            } else {
                LoadPhase::Loading
            },
            options,
            input,
            chunk: Vec::new(),
            next: 0,
            left: 0,
            found: 0,
            atoms: Atom::count(),
        })
    }

    /// The table. It is complete when `step` has returned `Done`.
    pub fn table(&self) -> &Arc<EngineTable> {
        &self.table
    }

    /// Runs one slice.
    ///
    /// # Errors
    /// `File`; `NoTable` if the table was dropped meanwhile. After an error the table is dropped
    /// with the job.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        while self.phase != LoadPhase::Done {
            match self.phase {
                // Both phases end when the budget is exhausted, or when they are complete.
                LoadPhase::Verifying => self.verify(budget)?,
                _ => self.load(budget)?,
            }
            if budget.is_exhausted() && self.phase != LoadPhase::Done {
                return Ok(Step::More);
            }
        }
        Ok(Step::Done)
    }

    /// (1) Checks one more part.
    fn verify(&mut self, budget: &mut Budget) -> Result<(), Error> {
        match self.input.part(&mut self.chunk)? {
            FilePart::Chunk(objects) => {
                self.found += u64::from(objects);
                budget.spend(1 + (self.chunk.len() / 512) as u32);
            }
            FilePart::End(expected) => {
                self.check_count(expected)?;
                // The whole file was checked. The second pass doesn't need the digest, and only
                // checks the chunks.
                self.input.begin_again()?;
                self.chunk.clear();
                self.found = 0;
                self.phase = LoadPhase::Loading;
            }
        }
        Ok(())
    }

    fn check_count(&self, expected: u64) -> Result<(), FileError> {
        if self.found == expected {
            return Ok(());
        }
        Err(FileError::Count {
            expected,
            found: self.found,
        })
    }

    fn check_atoms(&self) -> Result<(), FileError> {
        let most = self.options.new_atoms;
        if Atom::count().saturating_sub(self.atoms) > most {
            return Err(FileError::Atoms { most });
        }
        Ok(())
    }

    /// (2) Inserts the objects of a chunk, as far as the budget lasts.
    fn load(&mut self, budget: &mut Budget) -> Result<(), Error> {
        if self.left == 0 {
            self.next_chunk()?;
        }
        let mut object = ObjectBuf::new();
        let mut term = TermBuf::new(Mode::Shared);
        while self.left > 0 {
            let bytes = self.decode(&mut term)?;
            self.next += bytes;
            // Other threads may have created some, too.
            self.check_atoms()?;
            // The chunk's checksum is right. So an invalid object was written like this, and the
            // load fails.
            let tuple = term.term().ok_or_else(|| damaged("an object"))?;
            self.table
                .encode_object(tuple, &mut object)
                .map_err(|_| damaged("an object that is no tuple, or has no key"))?;
            self.insert(&object, budget)?;
            self.left -= 1;
            self.found += 1;
            if !budget.spend(units(bytes)) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the next chunk, whose checksum is right, or the end.
    fn next_chunk(&mut self) -> Result<(), Error> {
        // The number of objects and the length of the payload are separate fields, which may
        // contradict each other.
        if self.next < self.chunk.len() {
            return Err(damaged("bytes after the objects of a chunk").into());
        }
        self.chunk.clear();
        self.next = 0;
        match self.input.part(&mut self.chunk)? {
            FilePart::Chunk(objects) => {
                self.left = objects;
                self.announce(objects);
            }
            FilePart::End(expected) => {
                self.check_count(expected)?;
                self.phase = LoadPhase::Done;
                self.table.expect_keys(0, 0);
            }
        }
        Ok(())
    }

    /// Announces to a set about how many keys it will have. Of a bag, that isn't known.
    fn announce(&mut self, objects: u32) {
        if self.table.kind().is_unique() {
            let after = self.input.objects_after(objects, self.chunk.len());
            let now = self.found as usize;
            let soon = (now + objects as usize).saturating_add(after);
            self.table.expect_keys(now, soon);
        }
    }

    /// Inserts an object like any owner would: the table is visible, and other threads may write to
    /// it.
    fn insert(&self, object: &ObjectBuf, budget: &mut Budget) -> Result<(), Error> {
        while let Err(error) = self.table.insert(self.owner, object) {
            match error {
                // The object was decoded, and its offset in the chunk passed, so insert it now.
                Error::Busy => while self.table.help_batch(budget) == Step::More {},
                error => return Err(error),
            }
        }
        Ok(())
    }

    /// Decodes the next object of the chunk. Returns the number of bytes that it took.
    fn decode(&self, term: &mut TermBuf) -> Result<usize, Error> {
        term.clear();
        let bytes = &self.chunk[self.next..];
        // A host may make atoms of its own while the pairs of a map are sorted. So there must not
        // be too many in one object, either.
        let most = self.options.new_atoms;
        let options = etf::EtfOptions {
            max_atoms: self.atoms.saturating_add(most),
            // The file may be of a host with larger integers.
            max_bits: larder_term::number::host_bits(),
            // A save compresses no object. One that is compressed could take a thousand times the
            // memory of its file.
            max_plain: 0,
            ..etf::EtfOptions::default()
        };
        term.encode(|enc| etf::decode_to(bytes, &self.options.node, &options, enc))
            .map_err(|error| match error {
                etf::EtfError::TooManyAtoms => FileError::Atoms { most }.into(),
                error => damaged(&format!("an object: {error}")).into(),
            })
    }
}

impl Drop for LoadJob {
    fn drop(&mut self) {
        if self.phase != LoadPhase::Done {
            // Another thread may have dropped it already.
            let _ = self.table.drop_unasked(None);
        }
    }
}
