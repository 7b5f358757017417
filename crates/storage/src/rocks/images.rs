//! Making images for other members: hard links of the database's files, without its log.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use rocksdb::checkpoint::Checkpoint as Links;
use rocksdb::{DB, FlushOptions, WriteBatch, WriteOptions};
use tracing::warn;

use super::files::{self, remove, step};
use super::options::{self, Buffers, LOG, RAFT_META};
use super::read;
use crate::error::StoreError;
use crate::format::{self, CheckpointRow};
use crate::image::{ImageFile, ImageInfo, ImageKind, Manifest, refused};
use crate::limits::IMAGE_CHUNK_BYTES;

/// The images of one member, each in the folder of its entry.
pub(super) struct Images {
    directory: PathBuf,
    /// Held while one is made.
    making: Mutex<()>,
    made: Mutex<BTreeMap<u64, Arc<Made>>>,
}

struct Made {
    info: ImageInfo,
    files: Vec<(PathBuf, u64)>,
}

impl Images {
    pub(super) fn new(directory: PathBuf) -> Images {
        Images {
            directory,
            making: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// Makes an image, unless the one that `current` asks for is there. `link` puts the database's files
    /// into a folder that does not exist yet.
    pub(super) fn make(
        &self,
        buffers: Buffers,
        link: impl FnOnce(&Path, &dyn Fn(u64) -> bool) -> Result<Linked, StoreError>,
    ) -> Result<ImageInfo, StoreError> {
        let _making = self.making.lock();
        let unfinished = self.directory.join("unfinished");
        remove(&unfinished).map_err(image_io)?;
        fs::create_dir_all(&self.directory).map_err(image_io)?;
        let is_made = |index| self.made.lock().contains_key(&index);
        let checkpoint = match link(&unfinished, &is_made)? {
            Linked::Already(index) => {
                let image = self.get(index)?;
                return Ok(image.info.clone());
            }
            Linked::New(checkpoint) => checkpoint,
        };
        step("the files are linked");
        let manifest = reduce(&unfinished, buffers, checkpoint)?;
        let info = manifest.info()?;
        let folder = self.directory.join(info.index.to_string());
        remove(&folder).map_err(image_io)?;
        fs::rename(&unfinished, &folder).map_err(image_io)?;
        let files = manifest.files.iter();
        let files = files.map(|file| (folder.join(&file.name), file.size));
        let image = Made {
            info: info.clone(),
            files: files.collect(),
        };
        self.made.lock().insert(info.index, Arc::new(image));
        Ok(info)
    }

    fn get(&self, index: u64) -> Result<Arc<Made>, StoreError> {
        let made = self.made.lock();
        made.get(&index)
            .cloned()
            .ok_or(StoreError::ImageGone { index })
    }

    pub(super) fn read(
        &self,
        index: u64,
        file: u32,
        offset: u64,
        max: usize,
    ) -> Result<Bytes, StoreError> {
        let image = self.get(index)?;
        let file = image.files.get(file as usize);
        let (path, size) = file.ok_or_else(|| refused("it has no such file"))?;
        let rest = size.checked_sub(offset);
        let rest = rest.ok_or_else(|| refused("the file is shorter"))?;
        let len = rest.min(max.min(IMAGE_CHUNK_BYTES) as u64) as usize;
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StoreError::ImageGone { index });
            }
            other => other.map_err(image_io)?,
        };
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, offset).map_err(image_io)?;
        Ok(bytes.into())
    }

    pub(super) fn drop_made(&self, keep: Option<u64>) {
        let mut made = self.made.lock();
        let dropped: Vec<u64> = made
            .keys()
            .copied()
            .filter(|index| Some(*index) != keep)
            .collect();
        for index in dropped {
            made.remove(&index);
            let folder = self.directory.join(index.to_string());
            if let Err(error) = remove(&folder) {
                // The next start tries again.
                warn!(%error, folder = %folder.display(), "an image cannot be deleted");
            }
        }
    }
}

/// What came of linking.
pub(super) enum Linked {
    /// There is an image of the stored checkpoint, which belongs to this entry.
    Already(u64),
    /// The files of this checkpoint are linked.
    New(CheckpointRow),
}

/// Links the files of an open database. RocksDB flushes what is in memory. It also copies the write-ahead log,
/// which has nothing of the checkpoint any more: that goes.
pub(super) fn link(db: &DB, folder: &Path) -> Result<CheckpointRow, StoreError> {
    db.flush_wal(true).map_err(rocks)?;
    let links = Links::new(db).map_err(rocks)?;
    links.create_checkpoint(folder).map_err(rocks)?;
    for name in files::names(folder).map_err(image_io)? {
        if name.ends_with(".log") {
            remove(&folder.join(name)).map_err(image_io)?;
        }
    }
    checkpoint_row(db)
}

pub(super) fn checkpoint_row(db: &DB) -> Result<CheckpointRow, StoreError> {
    let family = read::family(db, RAFT_META)?;
    let row = db.get_cf(family, format::CHECKPOINT_KEY).map_err(rocks)?;
    let row = row.ok_or_else(|| refused("it names no entry"))?;
    CheckpointRow::decode(&row).map_err(|_| refused("its row `checkpoint` is unreadable"))
}

/// Takes out of the linked files what is this member's own: its log, its term and vote, its name. What
/// remains is in table files, none of it in a write-ahead log.
fn reduce(
    folder: &Path,
    buffers: Buffers,
    checkpoint: CheckpointRow,
) -> Result<Manifest, StoreError> {
    let options = options::image(buffers);
    let families = options::image_families(buffers);
    let mut db = DB::open_cf_descriptors(&options, folder, families).map_err(rocks)?;
    if checkpoint_row(&db)? != checkpoint {
        return Err(refused("it belongs to another entry than the store"));
    }
    // Dropped whole: the files go with it, and no deletions are left to be read over.
    db.drop_cf(LOG).map_err(rocks)?;
    db.create_cf(LOG, &options::image_family(buffers, LOG))
        .map_err(rocks)?;
    let mut own = WriteBatch::default();
    let raft_meta = read::family(&db, RAFT_META)?;
    for key in [
        format::MEMBER_KEY,
        format::PROGRESS_KEY,
        format::COMPACTED_KEY,
    ] {
        own.delete_cf(raft_meta, key);
    }
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal(true);
    db.write_opt(own, &unlogged).map_err(rocks)?;
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    for name in options::family_names() {
        db.flush_cf_opt(read::family(&db, name)?, &flush)
            .map_err(rocks)?;
    }
    let tables = db.live_files().map_err(rocks)?;
    drop(db);
    step("the log is taken out");
    let mut names: Vec<String> = tables
        .into_iter()
        .map(|table| table.name.trim_start_matches('/').to_owned())
        .collect();
    names.sort();
    let current = fs::read_to_string(folder.join("CURRENT")).map_err(image_io)?;
    names.push(current.trim_end().to_owned());
    names.push("CURRENT".to_owned());
    let files = names.into_iter().map(|name| describe(folder, name));
    Ok(Manifest {
        kind: ImageKind::Database,
        checkpoint,
        files: files.collect::<io::Result<_>>().map_err(image_io)?,
    })
}

fn describe(folder: &Path, name: String) -> io::Result<ImageFile> {
    let (size, crc) = checksum(&mut File::open(folder.join(&name))?)?;
    Ok(ImageFile { name, size, crc })
}

/// Length and CRC-32C of what is left of a file.
pub(super) fn checksum(file: &mut File) -> io::Result<(u64, u32)> {
    let mut buffer = vec![0; 256 << 10];
    let (mut size, mut crc) = (0, 0);
    loop {
        let len = file.read(&mut buffer)?;
        if len == 0 {
            return Ok((size, crc));
        }
        size += len as u64;
        crc = crc32c::crc32c_append(crc, &buffer[..len]);
    }
}

pub(super) fn image_io(error: io::Error) -> StoreError {
    StoreError::ImageIo(error.to_string())
}

pub(super) fn rocks(error: rocksdb::Error) -> StoreError {
    StoreError::ImageIo(error.to_string())
}
