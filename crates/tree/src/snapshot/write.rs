//! A stream, piece by piece in its order.

use std::io::{self, Write};

use adler2::Adler32;

use super::digest::TreeDigest;
use super::{DIGEST_VERSION, END, MAGIC, Record, VERSION};
use crate::acl::AclEntry;

/// Writes a stream. The caller keeps the order: header, sessions, lists, znodes, end.
pub(super) struct Writer<W> {
    out: W,
    sum: Adler32,
    digest: TreeDigest,
    written: u64,
    /// Of one field.
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W) -> Writer<W> {
        Writer {
            out,
            sum: Adler32::new(),
            digest: TreeDigest::default(),
            written: 0,
            buffer: Vec::new(),
        }
    }

    pub(super) fn header(&mut self, cluster: i64) -> io::Result<()> {
        self.int(MAGIC)?;
        self.int(VERSION)?;
        self.long(cluster)
    }

    /// How many sessions, or lists, follow.
    pub(super) fn count(&mut self, count: usize) -> io::Result<()> {
        let count = i32::try_from(count).map_err(|_| io::Error::other("too many entries"))?;
        self.int(count)
    }

    pub(super) fn session(&mut self, id: i64, timeout_ms: i32) -> io::Result<()> {
        self.long(id)?;
        self.int(timeout_ms)
    }

    pub(super) fn acl(&mut self, key: i64, entries: &[AclEntry]) -> io::Result<()> {
        self.long(key)?;
        self.count(entries.len())?;
        for entry in entries {
            self.int(entry.perms)?;
            self.bytes(Some(entry.scheme.as_bytes()))?;
            self.bytes(Some(entry.id.as_bytes()))?;
        }
        Ok(())
    }

    /// The root has the empty path.
    pub(super) fn node(&mut self, path: &str, record: &Record<'_>) -> io::Result<()> {
        self.digest.add(path, record);
        self.bytes(Some(path.as_bytes()))?;
        self.bytes(record.data)?;
        self.long(record.acl)?;
        let stat = &record.stat;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        for value in [stat.czxid, stat.mzxid, stat.ctime, stat.mtime] {
            buffer.extend_from_slice(&value.to_be_bytes());
        }
        for value in [stat.version, stat.creates, stat.aversion] {
            buffer.extend_from_slice(&value.to_be_bytes());
        }
        for value in [stat.owner, stat.pzxid] {
            buffer.extend_from_slice(&value.to_be_bytes());
        }
        self.raw(&buffer)?;
        self.buffer = buffer;
        Ok(())
    }

    /// The end mark and both trailers; the number of bytes and the digest.
    pub(super) fn end(mut self, last_zxid: i64) -> io::Result<(u64, i64)> {
        self.bytes(Some(END.as_bytes()))?;
        self.seal()?;
        let digest = self.digest.value();
        self.long(last_zxid)?;
        self.int(DIGEST_VERSION)?;
        self.long(digest)?;
        self.seal()?;
        self.long(last_zxid)?;
        self.seal()?;
        self.out.flush()?;
        Ok((self.written, digest))
    }

    fn seal(&mut self) -> io::Result<()> {
        self.long(i64::from(self.sum.checksum()))?;
        self.bytes(Some(END.as_bytes()))
    }

    fn int(&mut self, value: i32) -> io::Result<()> {
        self.raw(&value.to_be_bytes())
    }

    fn long(&mut self, value: i64) -> io::Result<()> {
        self.raw(&value.to_be_bytes())
    }

    fn bytes(&mut self, bytes: Option<&[u8]>) -> io::Result<()> {
        let Some(bytes) = bytes else {
            return self.int(-1);
        };
        self.count(bytes.len())?;
        self.raw(bytes)
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.write_slice(bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}
