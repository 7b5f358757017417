//! Images of the stores that live in memory: what they have made, and what they are taking in.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_consensus::HardState;
use quenda_tree::Table;

use crate::content::{Content, Rows, check_newer};
use crate::error::StoreError;
use crate::format::{BadRow, Cursor};
use crate::image::{
    Completion, ImageFile, ImageInfo, ImageKind, ImageReceiver, Manifest, Reception, refused,
};
use crate::limits::IMAGE_CHUNK_BYTES;

/// The images of one store.
#[derive(Default)]
pub(crate) struct Images {
    made: Mutex<BTreeMap<u64, Made>>,
    incoming: Arc<Mutex<Incoming>>,
}

struct Made {
    info: ImageInfo,
    files: Vec<Bytes>,
}

/// The one image that is being taken in.
#[derive(Default)]
struct Incoming {
    /// The receiver that may write. Every new one has a higher number.
    receiver: u64,
    image: Option<Arriving>,
}

struct Arriving {
    reception: Reception,
    files: Vec<Vec<u8>>,
    finished: bool,
}

impl Images {
    pub(crate) fn make(&self, content: &Content) -> Result<ImageInfo, StoreError> {
        let checkpoint = content.checkpoint_row().clone();
        let index = checkpoint.applied.0;
        if index == 0 {
            return Err(refused("this store holds nothing yet"));
        }
        let mut made = self.made.lock();
        if let Some(image) = made.get(&index) {
            return Ok(image.info.clone());
        }
        let files = Table::ALL.map(|table| Bytes::from(encode_rows(content.rows(), table)));
        let named = files
            .iter()
            .zip(Table::ALL)
            .map(|(bytes, table)| ImageFile {
                name: format!("{table:?}"),
                size: bytes.len() as u64,
                crc: crc32c::crc32c(bytes),
            });
        let manifest = Manifest {
            kind: ImageKind::Rows,
            checkpoint,
            files: named.collect(),
        };
        let info = manifest.info()?;
        let image = Made {
            info: info.clone(),
            files: files.into(),
        };
        made.insert(index, image);
        Ok(info)
    }

    pub(crate) fn read(
        &self,
        index: u64,
        file: u32,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, StoreError> {
        let made = self.made.lock();
        let image = made.get(&index).ok_or(StoreError::ImageGone { index })?;
        let file = image.files.get(file as usize);
        let file = file.ok_or_else(|| refused("it has no such file"))?;
        let start = usize::try_from(offset).ok().filter(|at| *at <= file.len());
        let start = start.ok_or_else(|| refused("the file is shorter"))?;
        let len = (file.len() - start).min(max).min(IMAGE_CHUNK_BYTES);
        Ok(file.slice(start..start + len))
    }

    pub(crate) fn drop_made(&self, keep: Option<u64>) {
        self.made.lock().retain(|index, _| Some(*index) == keep);
    }

    pub(crate) fn receive(
        &self,
        manifest: &[u8],
        content: &Content,
    ) -> Result<Box<dyn ImageReceiver>, StoreError> {
        let manifest = Manifest::decode(manifest, ImageKind::Rows)?;
        check_newer(manifest.position().0, content.marks().checkpoint)?;
        let mut incoming = self.incoming.lock();
        incoming.receiver += 1;
        let arrived = incoming.image.as_ref();
        if arrived.is_none_or(|image| *image.reception.manifest() != manifest) {
            incoming.image = Some(Arriving {
                files: vec![Vec::new(); manifest.files.len()],
                reception: Reception::new(manifest),
                finished: false,
            });
        }
        Ok(Box::new(Receiver {
            number: incoming.receiver,
            incoming: Arc::clone(&self.incoming),
        }))
    }

    /// The content after the installation of the image that has arrived.
    pub(crate) fn installed(
        &self,
        position: (u64, u64),
        content: &Content,
        hard_state: HardState,
    ) -> Result<Content, StoreError> {
        let incoming = self.incoming.lock();
        let image = incoming.image.as_ref().filter(|image| image.finished);
        let image = image.ok_or_else(|| refused("it has not arrived"))?;
        let manifest = image.reception.manifest();
        if manifest.position() != position {
            return Err(refused("another one has arrived"));
        }
        let stored = content.hard_state();
        content
            .marks()
            .check_install(position, stored, hard_state)?;
        let mut rows = Rows::new();
        for (table, bytes) in Table::ALL.into_iter().zip(&image.files) {
            decode_rows(&mut rows, table, bytes).map_err(|BadRow| refused("it is unreadable"))?;
        }
        let checkpoint = manifest.checkpoint.clone();
        Ok(Content::installed(checkpoint, rows, hard_state))
    }

    /// Forgets the image that has been installed, and every receiver.
    pub(crate) fn clear_incoming(&self) {
        let mut incoming = self.incoming.lock();
        incoming.receiver += 1;
        incoming.image = None;
    }

    /// The process ends: what it has made is gone; what it was taking in is kept if it was finished.
    pub(crate) fn crash(&self) {
        self.drop_made(None);
        let mut incoming = self.incoming.lock();
        incoming.receiver += 1;
        incoming.image = incoming.image.take().filter(|image| image.finished);
    }
}

struct Receiver {
    number: u64,
    incoming: Arc<Mutex<Incoming>>,
}

impl Incoming {
    fn of_receiver(&mut self, number: u64) -> Result<&mut Arriving, StoreError> {
        let current = self.receiver == number;
        let image = self.image.as_mut().filter(|_| current);
        image.ok_or_else(|| refused("a newer receiver has taken over"))
    }
}

impl ImageReceiver for Receiver {
    fn next(&self) -> Option<(u32, u64, usize)> {
        let mut incoming = self.incoming.lock();
        let image = incoming.of_receiver(self.number).ok()?;
        image.reception.next()
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut incoming = self.incoming.lock();
        let image = incoming.of_receiver(self.number)?;
        image.reception.check(file, offset, bytes)?;
        let file = file as usize;
        image.files[file].extend_from_slice(bytes);
        if image.reception.add(file, bytes) == Completion::Damaged {
            image.files[file].clear();
            return Err(image.reception.damaged(file));
        }
        Ok(())
    }

    fn progress(&self) -> (u64, u64) {
        let mut incoming = self.incoming.lock();
        let image = incoming.of_receiver(self.number);
        image.map_or((0, 0), |image| image.reception.progress())
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let mut incoming = self.incoming.lock();
        let image = incoming.of_receiver(self.number)?;
        if image.reception.next().is_some() {
            return Err(refused("a part of it is missing"));
        }
        image.finished = true;
        Ok(())
    }
}

fn encode_rows(rows: &Rows, wanted: Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((_, key), value) in rows.iter().filter(|((table, _), _)| *table == wanted) {
        for field in [key, value] {
            let len = u32::try_from(field.len()).expect("a row is smaller than 4 GiB");
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.extend_from_slice(field);
        }
    }
    bytes
}

fn decode_rows(rows: &mut Rows, table: Table, bytes: &[u8]) -> Result<(), BadRow> {
    let mut bytes = Cursor(bytes);
    while !bytes.0.is_empty() {
        let mut field = || {
            let len = bytes.u32()? as usize;
            bytes.bytes(len).map(<[u8]>::to_vec)
        };
        let (key, value) = (field()?, field()?);
        rows.insert((table, key), value);
    }
    Ok(())
}
