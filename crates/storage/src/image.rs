//! Images: the whole state as of one log entry, as files that another member can take over.

use bytes::Bytes;
use quenda_consensus::Membership;

use crate::error::StoreError;
use crate::format::{BadRow, CheckpointRow, Cursor};
use crate::limits::{IMAGE_CHUNK_BYTES, IMAGE_MANIFEST_BYTES};

/// An image that a store holds ready for others to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageInfo {
    /// Newest entry whose effect it holds.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The membership as of that entry.
    pub membership: Membership,
    /// Names, sizes and checksums of its files, for [`crate::Store::receive_image`] of another member.
    pub manifest: Bytes,
    /// Bytes of those files.
    pub bytes: u64,
}

/// Takes an image in, piece by piece. What was written stays when it is dropped: the next
/// [`crate::Store::receive_image`] with the same manifest goes on from there.
pub trait ImageReceiver: Send {
    /// The piece to be written next: file, offset, and length in bytes, at most
    /// [`crate::limits::IMAGE_CHUNK_BYTES`]. `None` when every file is here.
    fn next(&self) -> Option<(u32, u64, usize)>;

    /// Writes bytes at the place that [`ImageReceiver::next`] names; fewer or more than its length are
    /// welcome, as long as they belong to the same file. Nothing else of the store is affected by an
    /// error.
    ///
    /// # Errors
    /// [`StoreError::ImageIo`] when the disk takes no more: this piece may be tried again;
    /// [`StoreError::ImageDamaged`] when these bytes complete a file and it does not have its checksum:
    /// the file begins anew; [`StoreError::ImageRefused`] when they belong elsewhere, or this receiver has
    /// been replaced by a newer one.
    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StoreError>;

    /// Bytes that are here, and bytes of the whole image.
    fn progress(&self) -> (u64, u64);

    /// Makes the image durable, ready for [`crate::Store::install_image`].
    ///
    /// # Errors
    /// [`StoreError::ImageRefused`] when something is missing, or a newer receiver has taken over;
    /// [`StoreError::ImageIo`].
    fn finish(self: Box<Self>) -> Result<(), StoreError>;
}

const MAGIC: &[u8; 4] = b"QIMG";
const VERSION: u32 = 1;

/// What the files of an image are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ImageKind {
    /// A RocksDB database.
    Database = 1,
    /// The rows one after the other, a file for each table: simulated stores.
    Rows = 2,
}

/// One file of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageFile {
    pub(crate) name: String,
    pub(crate) size: u64,
    /// CRC-32C of the whole file.
    pub(crate) crc: u32,
}

/// What an image consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) kind: ImageKind,
    pub(crate) checkpoint: CheckpointRow,
    pub(crate) files: Vec<ImageFile>,
}

impl Manifest {
    /// # Errors
    /// [`StoreError::ImageIo`] when there are more files than a manifest may name.
    pub(crate) fn encode(&self) -> Result<Bytes, StoreError> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_be_bytes());
        bytes.push(self.kind as u8);
        let row = self.checkpoint.encode();
        put_u32(&mut bytes, row.len());
        bytes.extend_from_slice(&row);
        put_u32(&mut bytes, self.files.len());
        for file in &self.files {
            let len = u8::try_from(file.name.len()).expect("names are short");
            bytes.push(len);
            bytes.extend_from_slice(file.name.as_bytes());
            bytes.extend_from_slice(&file.size.to_be_bytes());
            bytes.extend_from_slice(&file.crc.to_be_bytes());
        }
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_be_bytes());
        if bytes.len() > IMAGE_MANIFEST_BYTES {
            let count = self.files.len();
            return Err(StoreError::ImageIo(format!("it has {count} files")));
        }
        Ok(bytes.into())
    }

    /// # Errors
    /// [`StoreError::ImageRefused`] for anything that `encode` would not have written, or of another kind.
    pub(crate) fn decode(bytes: &[u8], kind: ImageKind) -> Result<Manifest, StoreError> {
        if bytes.len() > IMAGE_MANIFEST_BYTES {
            return Err(refused("its manifest is too long"));
        }
        let (body, crc) = bytes
            .split_last_chunk()
            .ok_or_else(|| refused("its manifest is too short"))?;
        if crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
            return Err(refused("its manifest is damaged"));
        }
        let mut body = Cursor(body);
        let unreadable = |BadRow| refused("its manifest is unreadable");
        if body.bytes(MAGIC.len()).map_err(unreadable)? != MAGIC {
            return Err(refused("its manifest is unreadable"));
        }
        let version = body.u32().map_err(unreadable)?;
        if version != VERSION {
            return Err(refused(format!(
                "it has format {version}; this version reads format {VERSION} only"
            )));
        }
        if body.u8().map_err(unreadable)? != kind as u8 {
            return Err(refused("it comes from another kind of store"));
        }
        let (checkpoint, files) = decode_content(body).map_err(unreadable)?;
        Ok(Manifest {
            kind,
            checkpoint,
            files,
        })
    }

    pub(crate) fn position(&self) -> (u64, u64) {
        self.checkpoint.applied
    }

    pub(crate) fn info(&self) -> Result<ImageInfo, StoreError> {
        let (index, term) = self.position();
        Ok(ImageInfo {
            bytes: self.files.iter().map(|file| file.size).sum(),
            index,
            term,
            membership: self.checkpoint.membership.clone(),
            manifest: self.encode()?,
        })
    }
}

fn decode_content(mut body: Cursor<'_>) -> Result<(CheckpointRow, Vec<ImageFile>), BadRow> {
    let len = body.u32()? as usize;
    let checkpoint = CheckpointRow::decode(body.bytes(len)?)?;
    let count = body.u32()?;
    // Memory is taken file by file: the count alone proves nothing.
    let mut files = Vec::new();
    let mut total = 0_u64;
    for _ in 0..count {
        let len = body.u8()?;
        let name = std::str::from_utf8(body.bytes(len.into())?).map_err(|_| BadRow)?;
        let (size, crc) = (body.u64()?, body.u32()?);
        total = total.checked_add(size).ok_or(BadRow)?;
        if files.iter().any(|file: &ImageFile| file.name == name) {
            return Err(BadRow);
        }
        files.push(ImageFile {
            name: name.to_owned(),
            size,
            crc,
        });
    }
    body.end((checkpoint, files))
}

fn put_u32(bytes: &mut Vec<u8>, value: usize) {
    let value = u32::try_from(value).expect("a manifest is small");
    bytes.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn refused(reason: impl Into<String>) -> StoreError {
    StoreError::ImageRefused(reason.into())
}

/// How much of each file has come, without the files themselves.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    manifest: Manifest,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    len: u64,
    crc: u32,
}

/// Whether bytes have completed their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// More of the file is to come.
    Partial,
    /// The file is whole.
    Whole,
    /// The file has its length, and does not have its checksum: it is to be emptied.
    Damaged,
}

impl Reception {
    pub(crate) fn new(manifest: Manifest) -> Reception {
        let parts = vec![Part::default(); manifest.files.len()];
        Reception { manifest, parts }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    pub(crate) fn next(&self) -> Option<(u32, u64, usize)> {
        let (file, part) = self.first_incomplete()?;
        let missing = self.manifest.files[file].size - part.len;
        let len = missing.min(IMAGE_CHUNK_BYTES as u64) as usize;
        Some((file as u32, part.len, len))
    }

    fn first_incomplete(&self) -> Option<(usize, Part)> {
        let files = self.manifest.files.iter().zip(&self.parts).enumerate();
        files
            .filter(|(_, (file, part))| part.len < file.size)
            .map(|(number, (_, part))| (number, *part))
            .next()
    }

    pub(crate) fn progress(&self) -> (u64, u64) {
        let received = self.parts.iter().map(|part| part.len).sum();
        let total = self.manifest.files.iter().map(|file| file.size).sum();
        (received, total)
    }

    /// Checks that bytes are the next ones.
    ///
    /// # Errors
    /// [`StoreError::ImageRefused`].
    pub(crate) fn check(&self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let Some((expected, part)) = self.first_incomplete() else {
            return Err(refused("every file of it is here already"));
        };
        let size = self.manifest.files[expected].size;
        let fits = bytes.len() as u64 <= size - part.len;
        if file as usize != expected || offset != part.len || !fits {
            return Err(refused(format!(
                "{} bytes at {offset} of file {file} do not continue file {expected}, which has {} of \
                 {size} bytes",
                bytes.len(),
                part.len
            )));
        }
        Ok(())
    }

    /// Counts bytes that continue a file.
    pub(crate) fn add(&mut self, file: usize, bytes: &[u8]) -> Completion {
        let part = &mut self.parts[file];
        part.crc = crc32c::crc32c_append(part.crc, bytes);
        part.len += bytes.len() as u64;
        self.judge(file)
    }

    /// Counts what is there of a file already.
    pub(crate) fn resume(&mut self, file: usize, len: u64, crc: u32) -> Completion {
        self.parts[file] = Part { len, crc };
        self.judge(file)
    }

    fn judge(&mut self, file: usize) -> Completion {
        let (part, expected) = (&mut self.parts[file], &self.manifest.files[file]);
        if part.len < expected.size {
            return Completion::Partial;
        }
        if part.len == expected.size && part.crc == expected.crc {
            return Completion::Whole;
        }
        *part = Part::default();
        Completion::Damaged
    }

    /// The error that tells of [`Completion::Damaged`].
    pub(crate) fn damaged(&self, file: usize) -> StoreError {
        StoreError::ImageDamaged(self.manifest.files[file].name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(files: &[(&str, &[u8])]) -> Manifest {
        let files = files.iter().map(|(name, bytes)| ImageFile {
            name: (*name).to_owned(),
            size: bytes.len() as u64,
            crc: crc32c::crc32c(bytes),
        });
        Manifest {
            kind: ImageKind::Rows,
            checkpoint: CheckpointRow {
                applied: (7, 2),
                membership: Membership::of_voters([1, 2]),
            },
            files: files.collect(),
        }
    }

    #[test]
    fn a_manifest_comes_back_and_any_damaged_one_is_refused() {
        let manifest = manifest(&[("a", b"abc"), ("b", b"")]);
        let bytes = manifest.encode().unwrap();
        let decode = |bytes: &[u8]| Manifest::decode(bytes, ImageKind::Rows);
        assert_eq!(decode(&bytes).unwrap(), manifest);
        assert!(Manifest::decode(&bytes, ImageKind::Database).is_err());
        for position in 0..bytes.len() {
            assert!(decode(&bytes[..position]).is_err(), "{position}");
            let mut damaged = bytes.to_vec();
            damaged[position] ^= 4;
            assert!(decode(&damaged).is_err(), "{position}");
        }
        assert!(decode(&vec![0; IMAGE_MANIFEST_BYTES + 1]).is_err());
    }

    #[test]
    fn no_file_is_named_twice_and_more_files_than_fit_are_refused() {
        let twice = manifest(&[("a", b"abc"), ("a", b"")]).encode().unwrap();
        assert!(Manifest::decode(&twice, ImageKind::Rows).is_err());
        let mut many = manifest(&[]);
        many.files = (0..10_000)
            .map(|number| ImageFile {
                name: format!("{number:06}.sst"),
                size: 1,
                crc: 0,
            })
            .collect();
        assert!(matches!(many.encode(), Err(StoreError::ImageIo(_))));
    }

    #[test]
    fn bytes_come_in_order_and_a_damaged_file_begins_anew() {
        let mut reception = Reception::new(manifest(&[("e", b""), ("a", b"abc"), ("b", b"d")]));
        assert_eq!(reception.next(), Some((1, 0, 3)));
        for (file, offset, bytes) in [
            (0, 0, &b""[..]),
            (1, 1, b"b"),
            (1, 0, b"abcd"),
            (2, 0, b"d"),
        ] {
            assert!(
                reception.check(file, offset, bytes).is_err(),
                "{file} {offset}"
            );
        }
        reception.check(1, 0, b"ab").unwrap();
        assert_eq!(reception.add(1, b"ab"), Completion::Partial);
        assert_eq!(reception.next(), Some((1, 2, 1)));
        assert_eq!(reception.progress(), (2, 4));
        assert_eq!(reception.add(1, b"x"), Completion::Damaged);
        assert_eq!(reception.next(), Some((1, 0, 3)));
        assert_eq!(reception.add(1, b"abc"), Completion::Whole);
        assert_eq!(reception.add(2, b"d"), Completion::Whole);
        assert_eq!(reception.next(), None);
        assert!(reception.check(2, 1, b"").is_err());
        assert_eq!(reception.progress(), (4, 4));
    }
}
