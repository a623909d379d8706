//! The header of a file, and what saving and loading have in common. The module `file` shows the
//! layout of the whole file.
//!
//! ```text
//!  header  kind  access  write_concurrency  flags (a byte each)  keypos (u64)  objects (u64)
//!          name  structure  the host's bytes (each with its length (u32) in front)
//! ```
//!
//! A header is verified before it is decoded: magic, version, length, checksum. Its length is
//! bounded, so a damaged length can't request much memory.

use crate::error::FileError;
use crate::options::{Access, Concurrency, Options, TableKind};
use larder_term::Atom;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// The first bytes of every file.
const MAGIC: &[u8; 8] = b"LARDER\r\n";
/// The version of new files, and the newest that can be read.
pub(super) const VERSION: u16 = 1;
/// The first byte of a chunk.
pub(super) const CHUNK: u8 = b'C';
/// The first byte of the footer.
pub(super) const FOOTER: u8 = b'E';
/// The number of bytes of a digest.
pub(super) const DIGEST: usize = 32;
/// The maximum length of a header.
const LONGEST_HEADER: u32 = 1 << 24;

/// The units of a budget that an object of this number of bytes in a file costs. Long objects cost
/// more, so that the clock is read after a few of them.
pub(super) fn units(bytes: usize) -> u32 {
    u32::try_from(bytes >> 12).map_or(u32::MAX, |units| units.saturating_add(1))
}

/// What a file says of its table.
#[derive(Clone, Debug)]
pub struct Header {
    /// The version of the format.
    pub version: u16,
    /// The table's options, without the heir.
    pub options: Options,
    /// The number of objects: that of the table when the save began, which includes expired ones,
    /// or from `read_header` that of the objects in the file, if the file is complete.
    pub objects: u64,
    /// The bytes of the host.
    pub extra: Vec<u8>,
}

type FileResult<T> = Result<T, FileError>;

impl Header {
    /// Appends magic, version, header and checksum to `out`. It is an error if the header would be
    /// too long to be read.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> FileResult<()> {
        let start = out.len();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        // The length of the header is set at the end.
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        let o = &self.options;
        out.extend_from_slice(&[
            o.kind as u8,
            o.access as u8,
            o.write_concurrency as u8,
            flags(&[
                o.named,
                o.compressed,
                o.read_concurrency,
                o.decentralized_counters,
                o.legacy_zero,
            ]),
        ]);
        out.extend_from_slice(&(o.keypos as u64).to_le_bytes());
        out.extend_from_slice(&self.objects.to_le_bytes());
        // Texts of variable length, each preceded by its length.
        for text in [
            o.name.text().as_bytes(),
            o.structure_text().as_bytes(),
            &self.extra,
        ] {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
        }
        let bytes = out.len() - length - 4;
        if bytes > LONGEST_HEADER as usize {
            return Err(FileError::Io {
                what: format!("writing a header of {bytes} bytes"),
                kind: ErrorKind::FileTooLarge,
                code: None,
            });
        }
        out[length..length + 4].copy_from_slice(&(bytes as u32).to_le_bytes());
        // The checksum covers the magic and the version, too.
        let sum = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
        Ok(())
    }

    /// Reads the result of `write`. Also returns the bytes that were read.
    pub(super) fn read(input: &mut impl Read) -> FileResult<(Header, Vec<u8>)> {
        let mut bytes = Vec::new();
        // A file that is shorter than the magic is not a file of Larder, rather than a truncated
        // one.
        let magic = take(input, MAGIC.len(), &mut bytes).map_err(|e| match e {
            FileError::CutShort => FileError::NotLarder,
            e => e,
        })?;
        if bytes[magic..] != MAGIC[..] {
            return Err(FileError::NotLarder);
        }
        let at = take(input, 2, &mut bytes)?;
        let version = u16::from_le_bytes(array(&bytes[at..]));
        if version > VERSION {
            return Err(FileError::NewerVersion {
                found: version,
                known: VERSION,
            });
        }
        // The checksum isn't verified yet, so bound the memory that a damaged length can request.
        let at = take(input, 4, &mut bytes)?;
        let length = u32::from_le_bytes(array(&bytes[at..]));
        if length > LONGEST_HEADER {
            return Err(damaged("the header's length"));
        }
        let at = take(input, length as usize, &mut bytes)?;
        let end = bytes.len();
        let sum = take(input, 4, &mut bytes)?;
        if u32::from_le_bytes(array(&bytes[sum..])) != crc32fast::hash(&bytes[..end]) {
            return Err(damaged("the header's checksum"));
        }
        // The bytes are those that were written. Unknown values are still errors.
        let header = Self::parse(version, &bytes[at..end])?;
        Ok((header, bytes))
    }

    /// Decodes the fields of a header whose checksum is right.
    fn parse(version: u16, bytes: &[u8]) -> FileResult<Header> {
        // The checksum was right, so what is wrong from here on was written so: by another program,
        // or a later version.
        let mut fields = Fields(bytes);
        let [kind, access, write_concurrency, flags] = array(fields.take(4)?);
        let keypos = u64::from_le_bytes(array(fields.take(8)?));
        let objects = u64::from_le_bytes(array(fields.take(8)?));
        let name = std::str::from_utf8(fields.text()?).ok();
        let name = name.and_then(|name| Atom::try_new(name).ok());
        let structure = String::from_utf8(fields.text()?.to_vec());
        let extra = fields.text()?.to_vec();
        let bit = |i: u8| flags >> i & 1 == 1;
        let mut options = Options::new(name.ok_or_else(|| damaged("the table's name"))?);
        options.kind = pick(kind, &KINDS)?;
        options.access = pick(access, &ACCESSES)?;
        options.write_concurrency = pick(write_concurrency, &CONCURRENCIES)?;
        options.keypos = usize::try_from(keypos).map_err(|_| damaged("the key position"))?;
        options.set_structure_text(&structure.map_err(|_| damaged("the structure's name"))?);
        options.named = bit(0);
        options.compressed = bit(1);
        options.read_concurrency = bit(2);
        options.decentralized_counters = bit(3);
        options.legacy_zero = bit(4);
        Ok(Header {
            version,
            options,
            objects,
            extra,
        })
    }
}

const KINDS: [TableKind; 4] = [
    TableKind::Set,
    TableKind::OrderedSet,
    TableKind::Bag,
    TableKind::DuplicateBag,
];
const ACCESSES: [Access; 3] = [Access::Public, Access::Protected, Access::Private];
const CONCURRENCIES: [Concurrency; 3] = [Concurrency::Off, Concurrency::On, Concurrency::Auto];

fn pick<T: Copy>(number: u8, from: &[T]) -> FileResult<T> {
    let found = from.get(usize::from(number)).copied();
    found.ok_or_else(|| damaged("an option in the header"))
}

fn flags(bits: &[bool]) -> u8 {
    let bits = bits.iter().enumerate();
    bits.fold(0, |all, (i, bit)| all | u8::from(*bit) << i)
}

/// The part of a header that has not been decoded.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn take(&mut self, n: usize) -> FileResult<&'b [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| damaged("the header is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn text(&mut self) -> FileResult<&'b [u8]> {
        let length = u32::from_le_bytes(array(self.take(4)?));
        self.take(length as usize)
    }
}

/// The first bytes of a slice, if it has this number of bytes.
pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0))
}

/// Appends exactly `n` bytes to `bytes`. Returns where they begin. Allocates memory only for bytes
/// that exist.
pub(super) fn take(input: &mut impl Read, n: usize, bytes: &mut Vec<u8>) -> FileResult<usize> {
    let start = bytes.len();
    // Read through a limit: a length that is wrong takes no memory for bytes that don't exist.
    let read = input
        .by_ref()
        .take(n as u64)
        .read_to_end(bytes)
        .map_err(|e| FileError::io("reading the table's file", &e))?;
    if read < n {
        return Err(FileError::CutShort);
    }
    Ok(start)
}

pub(super) fn damaged(what: &str) -> FileError {
    FileError::Damaged(what.to_owned())
}

/// Opens a file and reads its header.
pub(super) fn open(path: &Path) -> FileResult<(BufReader<File>, Header, Vec<u8>)> {
    let what = || format!("opening {}", path.display());
    let file = File::open(path).map_err(|e| FileError::io(what(), &e))?;
    let mut input = BufReader::with_capacity(1 << 16, file);
    let (header, bytes) = Header::read(&mut input)?;
    Ok((input, header, bytes))
}

/// Returns the description of a table in its file. Only reads the header, and the number of objects
/// in the footer.
///
/// # Errors
/// The [`FileError`]s of a header: `NotLarder`, `NewerVersion`, `CutShort`, `Damaged`, `Io`.
pub fn read_header(path: &Path) -> Result<Header, crate::Error> {
    let (mut input, mut header, _) = open(path)?;
    if let Some(objects) = objects_by_footer(&mut input) {
        header.objects = objects;
    }
    Ok(header)
}

/// The number of objects that were written to a file, by its footer. `None` if the file doesn't end
/// with one.
fn objects_by_footer(input: &mut BufReader<File>) -> Option<u64> {
    // The first byte, the number, the digest and the checksum.
    const SUM: usize = 1 + 8 + DIGEST;
    const LENGTH: usize = SUM + 4;
    input.seek(SeekFrom::End(-(LENGTH as i64))).ok()?;
    let mut footer = Vec::new();
    take(input, LENGTH, &mut footer).ok()?;
    let sum = u32::from_le_bytes(array(&footer[SUM..]));
    (footer[0] == FOOTER && sum == crc32fast::hash(&footer[..SUM]))
        .then(|| u64::from_le_bytes(array(&footer[1..])))
}
