//! The store's images as the transport to the other members reaches them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use quenda_storage::{ImageReceiver, Store, StoreError};

use crate::peers::{ImageError, ImageSink, Images};

/// The images of a store that may be opened later: until then there are none.
#[derive(Default)]
pub struct ImageStore {
    store: OnceLock<Arc<dyn Store>>,
}

impl ImageStore {
    /// The store is open now. It stays the same from then on.
    pub fn open(&self, store: Arc<dyn Store>) {
        self.store.get_or_init(|| store);
    }

    fn store(&self) -> Result<&Arc<dyn Store>, ImageError> {
        self.store.get().ok_or(ImageError::Gone)
    }
}

impl Images for ImageStore {
    fn read(&self, index: u64, file: u32, offset: u64, max: usize) -> Result<Bytes, ImageError> {
        self.store()?
            .read_image(index, file, offset, max)
            .map_err(explain)
    }

    fn receive(&self, manifest: &[u8]) -> Result<Box<dyn ImageSink>, ImageError> {
        let receiver = self.store()?.receive_image(manifest).map_err(explain)?;
        Ok(Box::new(Sink(receiver)))
    }
}

struct Sink(Box<dyn ImageReceiver>);

impl ImageSink for Sink {
    fn next(&self) -> Option<(u32, u64, usize)> {
        self.0.next()
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), ImageError> {
        self.0.write(file, offset, bytes).map_err(explain)
    }

    fn finish(self: Box<Self>) -> Result<(), ImageError> {
        self.0.finish().map_err(explain)
    }
}

fn explain(error: StoreError) -> ImageError {
    match error {
        StoreError::ImageGone { .. } => ImageError::Gone,
        other => ImageError::Failed(other.to_string()),
    }
}
