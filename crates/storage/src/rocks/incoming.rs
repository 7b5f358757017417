//! Taking in another member's image: its files are collected beside the database, and outlive a break of the
//! connection or of the process.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tracing::warn;

use super::files::{self, remove, step, sync_directory};
use super::images::{checksum, image_io};
use crate::content::check_newer;
use crate::error::StoreError;
use crate::image::{Completion, ImageKind, ImageReceiver, Manifest, Reception, refused};
use crate::limits::IMAGE_SYNC_BYTES;
use crate::space::Space;

/// The description of the image, beside the folder of its files.
const MANIFEST_FILE: &str = "manifest";
const FILES: &str = "files";

/// The one image that a member takes in.
#[derive(Clone)]
pub(super) struct Incoming {
    state: Arc<Mutex<State>>,
}

pub(super) struct State {
    directory: PathBuf,
    /// The receiver that may write. Every new one has a higher number.
    receiver: u64,
    image: Option<Arriving>,
}

struct Arriving {
    reception: Reception,
    /// The file that was written last.
    open: Option<(usize, File)>,
    /// Bytes of that file that the disk may not have yet.
    unsynced: usize,
    /// Everything is here and durable.
    finished: bool,
}

impl Incoming {
    pub(super) fn new(directory: PathBuf) -> Incoming {
        let state = State {
            directory,
            receiver: 0,
            image: None,
        };
        Incoming {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Nobody writes while this is held.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins to receive, or goes on where it was broken off; `checkpoint` is the entry that the store
    /// holds.
    pub(super) fn receive(
        &self,
        manifest: &[u8],
        checkpoint: u64,
    ) -> Result<Box<dyn ImageReceiver>, StoreError> {
        let decoded = Manifest::decode(manifest, ImageKind::Database)?;
        check_newer(decoded.position().0, checkpoint)?;
        if let Some(file) = decoded.files.iter().find(|file| !is_expected(&file.name)) {
            return Err(refused(format!("it has a file {:?}", file.name)));
        }
        let mut state = self.state.lock();
        state.receiver += 1;
        state.resume_or_begin(manifest, decoded)?;
        Ok(Box::new(Receiver {
            number: state.receiver,
            incoming: self.clone(),
        }))
    }

    /// Gives up an image that is not newer than the entry `index`: no one will ask for it again.
    pub(super) fn discard_through(&self, index: u64) {
        let mut state = self.state.lock();
        if state.position().is_some_and(|(of, _)| of <= index) {
            state.discard_or_warn();
        }
    }

    /// At a start: what a process before this one has left is kept only if it may still be of use.
    pub(super) fn sweep(&self, checkpoint: u64) -> io::Result<()> {
        let directory = self.state.lock().directory.clone();
        let Some(manifest) = files::read(&directory.join(MANIFEST_FILE))? else {
            remove(&directory)?;
            return Ok(());
        };
        let useful = Manifest::decode(&manifest, ImageKind::Database)
            .is_ok_and(|manifest| manifest.position().0 > checkpoint);
        if !useful {
            remove(&directory)?;
        }
        Ok(())
    }
}

impl State {
    fn files(&self) -> PathBuf {
        self.directory.join(FILES)
    }

    /// Index and term of the image that is being taken in.
    fn position(&self) -> Option<(u64, u64)> {
        let image = self.image.as_ref()?;
        Some(image.reception.manifest().position())
    }

    /// The image, if it is here as a whole: its description, and the folder of its files.
    pub(super) fn finished(&self) -> Result<(&Manifest, PathBuf), StoreError> {
        let image = self.image.as_ref().filter(|image| image.finished);
        let image = image.ok_or_else(|| refused("it has not arrived"))?;
        Ok((image.reception.manifest(), self.files()))
    }

    /// Deletes the image, and takes the right to write from its receiver.
    fn discard(&mut self) -> io::Result<()> {
        self.receiver += 1;
        self.image = None;
        remove(&self.directory).map(|_| ())
    }

    /// What cannot be deleted now is deleted at the next start, or by the next image.
    pub(super) fn discard_or_warn(&mut self) {
        if let Err(error) = self.discard() {
            warn!(%error, folder = %self.directory.display(), "a received image cannot be deleted");
        }
    }

    fn resume_or_begin(&mut self, raw: &[u8], manifest: Manifest) -> Result<(), StoreError> {
        self.image = None;
        let described = self.directory.join(MANIFEST_FILE);
        let is_same = files::read(&described).map_err(image_io)?.as_deref() == Some(raw);
        if !is_same {
            remove(&self.directory).map_err(image_io)?;
            step("an older image is gone");
            fs::create_dir_all(self.files()).map_err(image_io)?;
            step("a folder for the image is there");
            fs::write(described, raw).map_err(image_io)?;
            step("the image is described");
        }
        let mut reception = Reception::new(manifest);
        if is_same {
            take_stock(&mut reception, &self.files()).map_err(image_io)?;
        }
        self.check_space(&reception)?;
        self.image = Some(Arriving {
            reception,
            open: None,
            unsynced: 0,
            finished: false,
        });
        Ok(())
    }

    /// What is still to come must leave the room that the member itself needs.
    fn check_space(&self, reception: &Reception) -> Result<(), StoreError> {
        let space = Space::of(&self.directory).map_err(image_io)?;
        let (received, total) = reception.progress();
        let needed = (total - received).saturating_add(space.growth_reserve());
        if space.free_bytes < needed {
            return Err(StoreError::ImageIo(format!(
                "{} of {total} bytes are missing, and the disk has {} left, of which {} are not for this",
                total - received,
                space.free_bytes,
                space.growth_reserve()
            )));
        }
        Ok(())
    }

    fn of_receiver(&mut self, number: u64) -> Result<(&mut Arriving, PathBuf), StoreError> {
        let (current, files) = (self.receiver == number, self.files());
        let image = self.image.as_mut().filter(|_| current);
        let image = image.ok_or_else(|| refused("a newer receiver has taken over"))?;
        Ok((image, files))
    }
}

/// The files of a database that an image may have. Names come from another machine.
fn is_expected(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name == "CURRENT"
        || name.strip_suffix(".sst").is_some_and(is_number)
        || name.strip_prefix("MANIFEST-").is_some_and(is_number)
}

/// Counts what an earlier receiver has written. What is too long or damaged begins anew.
fn take_stock(reception: &mut Reception, folder: &Path) -> io::Result<()> {
    for number in 0..reception.manifest().files.len() {
        let expected = &reception.manifest().files[number];
        let path = folder.join(&expected.name);
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        let (size, crc) = checksum(&mut file)?;
        if reception.resume(number, size, crc) == Completion::Damaged {
            fs::write(&path, b"")?;
        }
    }
    Ok(())
}

impl Arriving {
    fn file(&mut self, number: usize, folder: &Path) -> io::Result<&File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let name = &self.reception.manifest().files[number].name;
            let file = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(folder.join(name))?;
            self.open = Some((number, file));
        }
        Ok(&self.open.as_ref().expect("it has just been opened").1)
    }

    fn write(
        &mut self,
        folder: &Path,
        number: u32,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.reception.check(number, offset, bytes)?;
        let number = number as usize;
        let file = self.file(number, folder).map_err(image_io)?;
        file.write_all_at(bytes, offset).map_err(image_io)?;
        step("a piece is written");
        self.unsynced += bytes.len();
        match self.reception.add(number, bytes) {
            Completion::Partial if self.unsynced < IMAGE_SYNC_BYTES => Ok(()),
            Completion::Partial | Completion::Whole => {
                self.unsynced = 0;
                let file = self.file(number, folder).map_err(image_io)?;
                file.sync_data().map_err(image_io)
            }
            Completion::Damaged => {
                let file = self.file(number, folder).map_err(image_io)?;
                file.set_len(0).map_err(image_io)?;
                Err(self.reception.damaged(number))
            }
        }
    }

    fn finish(&mut self, folder: &Path) -> Result<(), StoreError> {
        if self.reception.next().is_some() {
            return Err(refused("a part of it is missing"));
        }
        self.open = None;
        for file in &self.reception.manifest().files {
            let path = folder.join(&file.name);
            let file = File::options().append(true).create(true).open(path);
            file.and_then(|file| file.sync_all()).map_err(image_io)?;
        }
        sync_directory(folder).map_err(image_io)?;
        self.finished = true;
        step("the image is durable");
        Ok(())
    }
}

struct Receiver {
    number: u64,
    incoming: Incoming,
}

impl ImageReceiver for Receiver {
    fn next(&self) -> Option<(u32, u64, usize)> {
        let mut state = self.incoming.lock();
        let (image, _) = state.of_receiver(self.number).ok()?;
        image.reception.next()
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut state = self.incoming.lock();
        let (image, folder) = state.of_receiver(self.number)?;
        image.write(&folder, file, offset, bytes)
    }

    fn progress(&self) -> (u64, u64) {
        let mut state = self.incoming.lock();
        let image = state.of_receiver(self.number);
        image.map_or((0, 0), |(image, _)| image.reception.progress())
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let mut state = self.incoming.lock();
        let (image, folder) = state.of_receiver(self.number)?;
        image.finish(&folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_database_files_are_taken() {
        for name in ["CURRENT", "000012.sst", "MANIFEST-000005"] {
            assert!(is_expected(name), "{name}");
        }
        for name in [
            "",
            ".sst",
            "../1.sst",
            "1.log",
            "MANIFEST-",
            "CURRENT/..",
            "LOCK",
            "/1.sst",
        ] {
            assert!(!is_expected(name), "{name}");
        }
    }
}
