//! A stream taken apart. Lengths are held against what is left before memory is taken for them.

use std::io::Read;

use adler2::Adler32;

use super::digest::TreeDigest;
use super::{
    DIGEST_VERSION, END, LAST_ZXID_BYTES, MAGIC, PersistedStat, Record, SnapshotError, text,
};
use crate::acl::AclEntry;

/// Takes what a stream holds, in its order.
pub(crate) trait Content {
    /// Number of the database: of the cluster that has written the stream, −1 from ZooKeeper.
    fn header(&mut self, cluster: i64);
    fn session(&mut self, id: i64, timeout_ms: i32) -> Result<(), SnapshotError>;
    fn acl(&mut self, key: i64, entries: Vec<AclEntry>) -> Result<(), SnapshotError>;
    /// The root has the empty path. `None` for the list that is never written out.
    fn node(
        &mut self,
        path: &str,
        acl: Option<i64>,
        record: &Record<'_>,
    ) -> Result<(), SnapshotError>;
}

/// What stands behind the znodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trailers {
    /// zxid of the last transaction, where the stream says it.
    pub(crate) last_zxid: Option<i64>,
    /// Whether the znodes have the digest that the stream says, where it says one of this version.
    pub(crate) digest_fits: Option<bool>,
}

/// Bytes of a session, and the fewest of a list and of an entry.
const SESSION_BYTES: u64 = 8 + 4;
const ACL_BYTES: u64 = 8 + 4;
const ACL_ENTRY_BYTES: u64 = 4 + 4 + 4;

/// Reads a stream of `size` bytes to its end.
pub(crate) fn read(
    input: impl Read,
    size: u64,
    content: &mut impl Content,
) -> Result<Trailers, SnapshotError> {
    let mut reader = Reader {
        input,
        at: 0,
        left: size,
        sum: Adler32::new(),
    };
    let magic = reader.int()?;
    if magic != MAGIC {
        return Err(SnapshotError::Magic(magic));
    }
    // ZooKeeper does not look at the version either.
    reader.int()?;
    content.header(reader.long()?);
    for _ in 0..reader.count(SESSION_BYTES)? {
        let id = reader.long()?;
        content.session(id, reader.int()?)?;
    }
    for _ in 0..reader.count(ACL_BYTES)? {
        let key = reader.long()?;
        let entries = reader.acl_entries()?;
        content.acl(key, entries)?;
    }
    let digest = reader.nodes(content)?;
    reader.seal()?;
    reader.trailers(&digest)
}

struct Reader<R> {
    input: R,
    at: u64,
    left: u64,
    sum: Adler32,
}

impl<R: Read> Reader<R> {
    fn acl_entries(&mut self) -> Result<Vec<AclEntry>, SnapshotError> {
        let mut entries = Vec::new();
        for _ in 0..self.count(ACL_ENTRY_BYTES)? {
            let perms = self.int()?;
            let scheme = self.text()?.unwrap_or_default();
            let id = self.text()?.unwrap_or_default();
            entries.push(AclEntry::new(perms, &scheme, &id));
        }
        Ok(entries)
    }

    fn nodes(&mut self, content: &mut impl Content) -> Result<TreeDigest, SnapshotError> {
        let mut digest = TreeDigest::default();
        loop {
            let at = self.at;
            let path = self
                .text()?
                .ok_or(SnapshotError::Length { at, length: -1 })?;
            if path == END {
                return Ok(digest);
            }
            let data = self.buffer()?;
            let acl = self.long()?;
            let record = Record {
                data: data.as_deref(),
                acl,
                stat: self.stat()?,
            };
            digest.add(&path, &record);
            let acl = Some(acl).filter(|acl| *acl != super::OPEN_ACL);
            content.node(&path, acl, &record)?;
        }
    }

    fn stat(&mut self) -> Result<PersistedStat, SnapshotError> {
        Ok(PersistedStat {
            czxid: self.long()?,
            mzxid: self.long()?,
            ctime: self.long()?,
            mtime: self.long()?,
            version: self.int()?,
            creates: self.int()?,
            aversion: self.int()?,
            owner: self.long()?,
            pzxid: self.long()?,
        })
    }

    /// Which trailers there are depends on the version and the settings of who wrote the stream: what is left
    /// tells them apart.
    fn trailers(&mut self, digest: &TreeDigest) -> Result<Trailers, SnapshotError> {
        let mut trailers = Trailers::default();
        if self.left > LAST_ZXID_BYTES {
            let zxid = self.long()?;
            if self.int()? < DIGEST_VERSION {
                self.text()?;
            } else {
                let said = self.long()?;
                // A writer that computes none leaves zeros.
                trailers.digest_fits = ((zxid, said) != (0, 0)).then(|| said == digest.value());
            }
            self.seal()?;
        }
        if self.left > 0 {
            trailers.last_zxid = Some(self.long()?);
            self.seal()?;
        }
        match self.left {
            0 => Ok(trailers),
            left => Err(SnapshotError::TooLong(left)),
        }
    }

    fn seal(&mut self) -> Result<(), SnapshotError> {
        let at = self.at;
        let expected = i64::from(self.sum.checksum());
        if self.long()? != expected {
            return Err(SnapshotError::Checksum { at });
        }
        match self.text()?.as_deref() {
            Some(END) => Ok(()),
            _ => Err(SnapshotError::Mark { at }),
        }
    }

    /// A number of elements of at least `least` bytes.
    fn count(&mut self, least: u64) -> Result<u32, SnapshotError> {
        let at = self.at;
        let length = self.int()?;
        let count = u32::try_from(length).map_err(|_| SnapshotError::Length { at, length })?;
        self.expect(u64::from(count) * least)?;
        Ok(count)
    }

    fn text(&mut self) -> Result<Option<String>, SnapshotError> {
        let at = self.at;
        match self.buffer()? {
            None => Ok(None),
            Some(bytes) => match text::from_bytes(bytes) {
                Some(text) => Ok(Some(text)),
                None => Err(SnapshotError::Text { at }),
            },
        }
    }

    fn buffer(&mut self) -> Result<Option<Vec<u8>>, SnapshotError> {
        let at = self.at;
        let length = match self.int()? {
            -1 => return Ok(None),
            length => u32::try_from(length).map_err(|_| SnapshotError::Length { at, length })?,
        };
        self.expect(u64::from(length))?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn int(&mut self) -> Result<i32, SnapshotError> {
        let mut raw = [0; 4];
        self.fill(&mut raw)?;
        Ok(i32::from_be_bytes(raw))
    }

    fn long(&mut self) -> Result<i64, SnapshotError> {
        let mut raw = [0; 8];
        self.fill(&mut raw)?;
        Ok(i64::from_be_bytes(raw))
    }

    fn expect(&self, wanted: u64) -> Result<(), SnapshotError> {
        match wanted <= self.left {
            true => Ok(()),
            false => Err(SnapshotError::Truncated {
                at: self.at,
                wanted,
                left: self.left,
            }),
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        let count = bytes.len() as u64;
        self.expect(count)?;
        self.input.read_exact(bytes)?;
        self.sum.write_slice(bytes);
        self.at += count;
        self.left -= count;
        Ok(())
    }
}
