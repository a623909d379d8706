//! Reading a table from a file.
//!
//! 1. With `verify`, the whole file is read and checked first, its digest too; a bad one never
//!    becomes a table.
//! 2. The objects are inserted chunk by chunk, each chunk's checksum being checked before; at the
//!    end their number is.

use super::format::{array, damaged, open, take, Header, CHUNK, DIGEST, FOOTER};
use crate::budget::{Budget, Step};
use crate::engine::Engine;
use crate::error::{Error, FileError};
use crate::ids::OwnerId;
use crate::table::Table;
use larder_term::object::ObjectBuf;
use larder_term::{etf, Atom, Mode, NodeName, TermBuf};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;
use std::sync::Arc;

/// How a table is loaded.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Whether to check the whole file, its digest included, before the first object is inserted.
    /// Checksums and the number of objects are checked anyway.
    pub verify: bool,
    /// What "of this node" is called.
    pub node: NodeName,
    /// As in `Options`: it is the loading host's, not the file's.
    pub legacy_zero: bool,
    /// The most atoms that may be new to this process by the end, whoever made them: atoms are
    /// never taken back.
    pub new_atoms: usize,
}

/// A load under way. Dropped before it is done, it drops the table.
pub struct LoadJob {
    table: Arc<Table>,
    owner: OwnerId,
    options: LoadOptions,
    header: Header,
    input: Input,
    phase: LoadPhase,
    chunk: Vec<u8>,
    /// Where in `chunk` the next object begins, and how many are left there.
    next: usize,
    left: u32,
    found: u64,
    /// How many atoms there were at the beginning.
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
    /// Over everything read so far, when the digest is to be checked.
    digest: Option<Sha256>,
}

/// The next part of a file.
enum Part {
    /// A chunk with this number of objects; its payload is in the buffer.
    Chunk(u32),
    /// The end, with the number of objects.
    End(u64),
}

impl Input {
    fn open(path: &Path, verify: bool) -> Result<(Input, Header), FileError> {
        let (file, header, bytes) = open(path)?;
        let mut input = Input {
            file,
            digest: verify.then(Sha256::new),
        };
        input.note(&bytes);
        Ok((input, header))
    }

    /// Goes back to the first chunk of the same file, even if its name is another's by now.
    fn begin_again(&mut self) -> Result<(), FileError> {
        let rewound = self.file.rewind();
        rewound.map_err(|e| FileError::io("reading the table's file again", &e))?;
        Header::read(&mut self.file)?;
        Ok(())
    }

    fn note(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
    }

    /// Reads the next part, leaving a chunk's payload in `payload`.
    fn part(&mut self, payload: &mut Vec<u8>) -> Result<Part, FileError> {
        // A chunk's head and the footer's beginning have the same length: mark and two numbers, or
        // mark and one.
        let mut head = Vec::new();
        take(&mut self.file, 9, &mut head)?;
        match head[0] {
            CHUNK => self.chunk(head, payload).map(Part::Chunk),
            FOOTER => self.footer(head).map(Part::End),
            _ => Err(damaged(
                "neither a chunk nor the end where one of them should begin",
            )),
        }
    }

    fn chunk(&mut self, head: Vec<u8>, payload: &mut Vec<u8>) -> Result<u32, FileError> {
        let length = u32::from_le_bytes(array(&head[1..]));
        let objects = u32::from_le_bytes(array(&head[5..]));
        payload.clear();
        // The length's checksum comes after the payload. A length that is wrong costs no memory:
        // `take` reads as far as the file goes, and answers `CutShort`.
        take(&mut self.file, length as usize, payload)?;
        let mut sum = Vec::new();
        take(&mut self.file, 4, &mut sum)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(payload);
        if u32::from_le_bytes(array(&sum)) != crc.finalize() {
            return Err(damaged("a chunk's checksum"));
        }
        // Only what passed its own check counts for the digest.
        self.note(&head);
        self.note(payload);
        self.note(&sum);
        Ok(objects)
    }

    fn footer(&mut self, mut footer: Vec<u8>) -> Result<u64, FileError> {
        // The footer's own checksum comes first: a digest is compared only if it is what was
        // written.
        let digest = take(&mut self.file, DIGEST, &mut footer)?;
        let sum = take(&mut self.file, 4, &mut footer)?;
        if u32::from_le_bytes(array(&footer[sum..])) != crc32fast::hash(&footer[..sum]) {
            return Err(damaged("the end's checksum"));
        }
        if let Some(own) = self.digest.take() {
            if own.finalize()[..] != footer[digest..sum] {
                return Err(damaged("the digest of the whole"));
            }
        }
        match take(&mut self.file, 1, &mut footer) {
            Err(FileError::CutShort) => Ok(u64::from_le_bytes(array(&footer[1..]))),
            Err(error) => Err(error),
            Ok(_) => Err(damaged("something follows the end")),
        }
    }
}

impl LoadJob {
    /// Begins to load the table in the file at `path`, for `owner`: makes the table, empty, with
    /// the options of the file.
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
        let (input, header) = Input::open(path, options.verify)?;
        // The header's checksum was checked as it was read.
        let mut made = header.options.clone();
        made.legacy_zero = options.legacy_zero;
        // The table is made before the objects are read: its name is taken, or refused, now.
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
            header,
            input,
            chunk: Vec::new(),
            next: 0,
            left: 0,
            found: 0,
            atoms: Atom::count(),
        })
    }

    /// The table; complete when `step` has answered `Done`.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// What the file says of it.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// One slice.
    ///
    /// # Errors
    /// `File`; `NoTable` if the table was dropped meanwhile. After an error the table is dropped
    /// with the job.
    pub fn step(&mut self, budget: &mut Budget) -> Result<Step, Error> {
        while self.phase != LoadPhase::Done {
            match self.phase {
                LoadPhase::Verifying => self.verify(budget)?,
                _ => self.load(budget)?,
            }
            if budget.is_exhausted() && self.phase != LoadPhase::Done {
                return Ok(Step::More);
            }
        }
        Ok(Step::Done)
    }

    /// (1) One part more.
    fn verify(&mut self, budget: &mut Budget) -> Result<(), Error> {
        match self.input.part(&mut self.chunk)? {
            Part::Chunk(objects) => {
                self.found += u64::from(objects);
                budget.spend(1 + (self.chunk.len() / 512) as u32);
            }
            Part::End(expected) => {
                self.check_count(expected)?;
                // The whole was checked: the digest is done with, and the second pass checks chunks
                // alone.
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

    /// (2) The objects of a chunk, as far as the budget goes.
    fn load(&mut self, budget: &mut Budget) -> Result<(), Error> {
        if self.left == 0 {
            self.next_chunk()?;
        }
        let mut object = ObjectBuf::new();
        let mut term = TermBuf::new(Mode::Shared);
        while self.left > 0 {
            self.next += self.decode(&mut term)?;
            // Atoms are made as an object is decoded: the limit is exceeded by those of one object.
            self.check_atoms()?;
            // The chunk's checksum is right: an object that is bad here was written so, and the
            // load ends.
            let tuple = term.term().ok_or_else(|| damaged("an object"))?;
            self.table
                .encode_object(tuple, &mut object)
                .map_err(|_| damaged("an object that is no tuple, or has no key"))?;
            self.insert(&object, budget)?;
            self.left -= 1;
            self.found += 1;
            if !budget.spend(1) {
                break;
            }
        }
        Ok(())
    }

    /// The next chunk, whose checksum is right, in place of the one that is done; or the end.
    fn next_chunk(&mut self) -> Result<(), Error> {
        // The number of objects and the length of the payload are two fields: one can belie the
        // other.
        if self.next < self.chunk.len() {
            return Err(damaged("bytes behind the objects of a chunk").into());
        }
        self.chunk.clear();
        self.next = 0;
        match self.input.part(&mut self.chunk)? {
            Part::Chunk(objects) => self.left = objects,
            Part::End(expected) => {
                self.check_count(expected)?;
                self.phase = LoadPhase::Done;
            }
        }
        Ok(())
    }

    /// Inserts an object as any owner would: the table is visible, and others may write it.
    fn insert(&self, object: &ObjectBuf, budget: &mut Budget) -> Result<(), Error> {
        while let Err(error) = self.table.insert(self.owner, object) {
            match error {
                // The object is decoded, and its place in the chunk passed: it goes in now.
                Error::Busy => while self.table.help_batch(budget) == Step::More {},
                error => return Err(error),
            }
        }
        Ok(())
    }

    /// Decodes the next object of the chunk; gives the bytes it took.
    fn decode(&self, term: &mut TermBuf) -> Result<usize, Error> {
        term.clear();
        let bytes = &self.chunk[self.next..];
        let options = etf::EtfOptions::default();
        term.encode(|enc| etf::decode_to(bytes, &self.options.node, &options, enc))
            .map_err(|e| damaged(&format!("an object: {e}")).into())
    }
}

impl Drop for LoadJob {
    fn drop(&mut self) {
        if self.phase != LoadPhase::Done {
            // It may have been dropped by somebody else already.
            let _ = self.table.drop_unasked(None);
        }
    }
}
