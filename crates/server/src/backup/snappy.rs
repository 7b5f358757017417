//! The stream of snappy-java, as ZooKeeper writes it for `snapshot.compression.method=snappy`: a header, then raw blocks,
//! each behind its length. It is not snappy's own framing format.

use std::io::{self, Read, Write};

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use crate::limits::SNAPPY_BLOCK_MAX;

/// What such a stream begins with.
pub(super) const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
/// Version of the format, and the oldest that reads it.
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// Bytes of a block that is written, before it is compressed; snappy-java's own.
const BLOCK: usize = 32 << 10;

/// Compresses what is written. Nothing is complete without [`SnappyWriter::finish`].
pub(super) struct SnappyWriter<W> {
    out: W,
    block: Vec<u8>,
    packed: Vec<u8>,
    encoder: Encoder,
}

impl<W: Write> SnappyWriter<W> {
    /// Writes the header.
    pub(super) fn new(mut out: W) -> io::Result<SnappyWriter<W>> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSIONS)?;
        Ok(SnappyWriter {
            out,
            block: Vec::with_capacity(BLOCK),
            packed: vec![0; max_compress_len(BLOCK)],
            encoder: Encoder::new(),
        })
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.write_block()?;
        Ok(self.out)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let size = self.encoder.compress(&self.block, &mut self.packed)?;
        // A block is far below 4 GiB.
        self.out.write_all(&(size as u32).to_be_bytes())?;
        self.out.write_all(&self.packed[..size])?;
        self.block.clear();
        Ok(())
    }
}

impl<W: Write> Write for SnappyWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            self.write_block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Gives what a stream holds; its memory is bounded whatever lengths the stream claims.
pub(super) struct SnappyReader<R> {
    from: R,
    packed: Vec<u8>,
    plain: Vec<u8>,
    /// How much of `plain` was given.
    given: usize,
    decoder: Decoder,
}

impl<R: Read> SnappyReader<R> {
    /// Reads the header.
    pub(super) fn new(mut from: R) -> io::Result<SnappyReader<R>> {
        let (mut magic, mut versions) = ([0; 8], [0; 8]);
        from.read_exact(&mut magic)?;
        from.read_exact(&mut versions)?;
        if magic != MAGIC || versions[4..] != VERSIONS[4..] {
            return Err(invalid("it is of a kind that is not known"));
        }
        Ok(SnappyReader {
            from,
            packed: Vec::new(),
            plain: Vec::new(),
            given: 0,
            decoder: Decoder::new(),
        })
    }

    /// Unpacks the next block; false behind the last one.
    fn next_block(&mut self) -> io::Result<bool> {
        let Some(size) = self.next_size()? else {
            return Ok(false);
        };
        if size > max_compress_len(SNAPPY_BLOCK_MAX) {
            return Err(invalid("a block is too long"));
        }
        self.packed.resize(size, 0);
        self.from.read_exact(&mut self.packed)?;
        let length = decompress_len(&self.packed)?;
        if length > SNAPPY_BLOCK_MAX {
            return Err(invalid("a block holds too much"));
        }
        self.plain.resize(length, 0);
        let length = self.decoder.decompress(&self.packed, &mut self.plain)?;
        self.plain.truncate(length);
        self.given = 0;
        Ok(true)
    }

    fn next_size(&mut self) -> io::Result<Option<usize>> {
        let mut size = [0; 4];
        let count = (&mut self.from).take(1).read(&mut size)?;
        if count == 0 {
            return Ok(None);
        }
        self.from.read_exact(&mut size[1..])?;
        Ok(Some(u32::from_be_bytes(size) as usize))
    }
}

impl<R: Read> Read for SnappyReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.given == self.plain.len() {
            if out.is_empty() || !self.next_block()? {
                return Ok(0);
            }
        }
        let count = out.len().min(self.plain.len() - self.given);
        out[..count].copy_from_slice(&self.plain[self.given..][..count]);
        self.given += count;
        Ok(count)
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut writer = SnappyWriter::new(Vec::new()).expect("in memory");
        writer.write_all(plain).expect("in memory");
        writer.finish().expect("in memory")
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        SnappyReader::new(packed)?.read_to_end(&mut plain)?;
        Ok(plain)
    }

    fn with_block(block: &[u8]) -> Vec<u8> {
        let mut stream = packed(b"");
        stream.extend_from_slice(&(block.len() as u32).to_be_bytes());
        stream.extend_from_slice(block);
        stream
    }

    #[test]
    fn what_is_packed_comes_back() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 7] {
            let plain: Vec<u8> = (0..length).map(|n| (n * n / 7) as u8).collect();
            assert_eq!(unpacked(&packed(&plain)).expect("whole"), plain);
        }
        assert!(packed(&[7; 10 * BLOCK]).len() < BLOCK);
    }

    #[test]
    fn the_stream_is_that_of_snappy_java() {
        // A literal of two bytes: its length, its tag, its bytes.
        let expected = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x04\x02\x04ab";
        assert_eq!(packed(b"ab"), expected);
        assert_eq!(unpacked(expected).expect("whole"), b"ab");
    }

    #[test]
    fn every_cut_but_one_between_blocks_is_an_error() {
        let stream = packed(&[3; 2 * BLOCK]);
        let header = MAGIC.len() + VERSIONS.len();
        let first = header + 4 + packed(&[3; BLOCK])[header + 4..].len();
        for end in 0..stream.len() {
            let cut = unpacked(&stream[..end]);
            match end {
                _ if end == header => assert_eq!(cut.expect("empty"), b""),
                _ if end == first => assert_eq!(cut.expect("the first"), [3; BLOCK]),
                _ => assert!(cut.is_err(), "{end}"),
            }
        }
    }

    #[test]
    fn lengths_that_lie_are_errors_and_cost_no_memory() {
        let mut long = packed(b"");
        long.extend_from_slice(&u32::MAX.to_be_bytes());
        assert!(unpacked(&long).is_err());
        // It claims to hold 4 GiB, or another length than it has.
        for block in [
            &b"\xFF\xFF\xFF\xFF\x0F\x04ab"[..],
            b"\x03\x04ab",
            b"\x01\x04ab",
            b"\x02\x04a",
            b"\x02\xFEab",
            b"",
        ] {
            assert!(unpacked(&with_block(block)).is_err(), "{block:?}");
        }
        // A block of nothing is no end.
        let mut stream = with_block(b"\0");
        stream.extend_from_slice(b"\0\0\0\x04\x02\x04ab");
        assert_eq!(unpacked(&stream).expect("whole"), b"ab");
    }

    #[test]
    fn another_kind_is_refused() {
        assert!(unpacked(b"\xff\x06\0\0sNaPpY0123456").is_err());
        assert!(unpacked(b"\x82SNAPPY\0\0\0\0\x02\0\0\0\x02").is_err());
    }
}
