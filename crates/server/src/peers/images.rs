//! Where the files of an image come from and where they go to.

use bytes::Bytes;

/// Why a part of an image cannot be had or kept.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// There is no such image (any more): another one has to be asked for.
    #[error("the image is not there any more")]
    Gone,
    /// The store failed.
    #[error("{0}")]
    Failed(String),
}

/// The store's images, seen from the transport. All of it may block.
pub trait Images: Send + Sync {
    /// A piece of a file of the image at `index`: at most `max` bytes from `offset` on, fewer only at the
    /// file's end.
    ///
    /// # Errors
    /// See [`ImageError`].
    fn read(&self, index: u64, file: u32, offset: u64, max: usize) -> Result<Bytes, ImageError>;

    /// Begins to receive the image that `manifest` describes, or goes on with one that was half received.
    ///
    /// # Errors
    /// See [`ImageError`].
    fn receive(&self, manifest: &[u8]) -> Result<Box<dyn ImageSink>, ImageError>;
}

/// An image that is being received. All of it may block.
pub trait ImageSink: Send {
    /// What is missing next: a file, the offset, and how many bytes from there; `None` when all is here.
    fn next(&self) -> Option<(u32, u64, usize)>;

    /// Keeps a piece that begins where [`ImageSink::next`] says and is at most as long.
    ///
    /// # Errors
    /// See [`ImageError`].
    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), ImageError>;

    /// All is here: checks and syncs it.
    ///
    /// # Errors
    /// The image is not what its manifest says, or the store failed.
    fn finish(self: Box<Self>) -> Result<(), ImageError>;
}
