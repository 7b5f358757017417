//! A snapshot of this member's state: from the stored checkpoint, so that neither the tree nor the log waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::write::GzEncoder;
use quenda_storage::Store;
use quenda_tree::{Exported, SnapshotError, ViewError, export};
use tracing::{info, warn};

use super::BackupError;
use super::room::WithRoom;
use super::snappy::SnappyWriter;
use crate::clock::wall_ms;
use crate::limits::{BACKUP_CHECKPOINT_PATIENCE, BACKUP_READ_BYTES};
use crate::shared::Shared;

/// Folder in the data directory for snapshots that are to stay.
const FOLDER: &str = "snapshots";
/// Name of one that is being written; the next one takes it.
const UNFINISHED: &str = "unfinished";

/// How a snapshot is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As a gzip file.
    Gzip,
    /// As a stream of snappy-java.
    Snappy,
}

/// Where a snapshot goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To the one who asks, who gets it from an unnamed file.
    Stream,
    /// Into the folder `snapshots` of the data directory, where it stays.
    DataDirectory,
}

/// A snapshot that was made.
#[derive(Debug)]
pub struct Snapshot {
    /// zxid of the last transaction in it.
    pub last_zxid: i64,
    /// Bytes of the file.
    pub size: u64,
    /// Its name in ZooKeeper's data directory.
    pub name: String,
    /// Where it lies, unless it is unnamed.
    pub path: Option<PathBuf>,
    file: Option<File>,
}

impl Snapshot {
    /// The next bytes of the file; none at its end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Some(mut file) = self.file.take() else {
            return Ok(None);
        };
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let count = (&mut file)
                .take(BACKUP_READ_BYTES)
                .read_to_end(&mut bytes)?;
            Ok::<_, io::Error>((count > 0).then_some((file, bytes)))
        });
        Ok(read.await??.map(|(file, bytes)| {
            self.file = Some(file);
            bytes.into()
        }))
    }
}

/// Makes a snapshot that holds at least what is applied now. No entry of the log comes of it.
///
/// # Errors
/// There is none; nothing is left on the disk.
pub async fn snapshot(
    shared: &Arc<Shared>,
    compression: Compression,
    destination: Destination,
) -> Result<Snapshot, BackupError> {
    let started = Instant::now();
    let result = make(shared, compression, destination).await;
    let counters = &shared.backup.counters;
    counters.count(&result, &counters.snapshots, &counters.snapshot_errors);
    match &result {
        Ok(snapshot) => {
            let took = started.elapsed();
            let millis = took.as_millis() as u64;
            counters
                .last_snapshot_zxid
                .store(snapshot.last_zxid, Ordering::Relaxed);
            counters
                .last_snapshot_ms
                .store(wall_ms(), Ordering::Relaxed);
            counters
                .last_snapshot_took_ms
                .store(millis, Ordering::Relaxed);
            info!(
                name = snapshot.name,
                bytes = snapshot.size,
                millis,
                "a snapshot was made"
            );
        }
        Err(error) => warn!(%error, "no snapshot was made"),
    }
    result
}

async fn make(
    shared: &Arc<Shared>,
    compression: Compression,
    destination: Destination,
) -> Result<Snapshot, BackupError> {
    let turn = Arc::clone(&shared.backup.snapshots).try_acquire_owned();
    let turn = turn.map_err(|_| BackupError::Busy("snapshot"))?;
    if shared.is_disk_full() {
        return Err(BackupError::DiskFull);
    }
    let store = shared.backup.store.get().ok_or(BackupError::NotServing)?;
    wait_for_checkpoint(shared).await?;
    let store = Arc::clone(store);
    let theirs = Arc::clone(shared);
    let write = move || {
        let _turn = turn;
        let made = Made {
            store: &*store,
            shared: &theirs,
            compression,
        };
        made.write(destination)
    };
    let written = tokio::task::spawn_blocking(write).await;
    written.map_err(io::Error::from)?
}

/// Until what is applied now is in the stored checkpoint.
async fn wait_for_checkpoint(shared: &Shared) -> Result<(), BackupError> {
    let backup = &shared.backup;
    let index = shared.tree.read().applied_index();
    let mut stored = backup.checkpointed.subscribe();
    let arrives = async {
        // Asked for again: one that is under way may belong to an older entry.
        while *stored.borrow_and_update() < index {
            backup.wanted.store(true, Ordering::Relaxed);
            let pause = Duration::from_millis(50);
            // The sender lives as long as `shared`.
            let _ = tokio::time::timeout(pause, stored.changed()).await;
        }
    };
    let patience = BACKUP_CHECKPOINT_PATIENCE;
    tokio::time::timeout(patience, arrives)
        .await
        .map_err(|_| BackupError::Slow(patience.as_secs()))
}

/// How one is made.
struct Made<'m> {
    store: &'m dyn Store,
    shared: &'m Arc<Shared>,
    compression: Compression,
}

impl Made<'_> {
    fn write(&self, destination: Destination) -> Result<Snapshot, BackupError> {
        let directory = &self.shared.config.data_dir;
        match destination {
            Destination::Stream => {
                let mut file = tempfile::tempfile_in(directory)?;
                let exported = self.write_stream(&mut file)?;
                finish(file, &exported, self.compression, None)
            }
            Destination::DataDirectory => {
                let folder = directory.join(FOLDER);
                fs::create_dir_all(&folder)?;
                let unfinished = folder.join(UNFINISHED);
                let stored = self.write_named(&folder, &unfinished);
                if stored.is_err() {
                    // What is left of it goes with the next one otherwise.
                    let _ = fs::remove_file(&unfinished);
                }
                let (file, exported, path) = stored?;
                finish(file, &exported, self.compression, Some(path))
            }
        }
    }

    fn write_named(
        &self,
        folder: &Path,
        unfinished: &Path,
    ) -> Result<(File, Exported, PathBuf), BackupError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        // Data and access lists are not for everybody.
        options.mode(0o600);
        let mut file = options.open(unfinished)?;
        let exported = self.write_stream(&mut file)?;
        file.sync_all()?;
        let path = folder.join(name(&exported, self.compression));
        fs::rename(unfinished, &path)?;
        File::open(folder)?.sync_all()?;
        Ok((file, exported, path))
    }

    fn write_stream(&self, file: &mut File) -> Result<Exported, BackupError> {
        let buffered = BufWriter::with_capacity(256 << 10, WithRoom::new(self.shared, file));
        match self.compression {
            Compression::None => export_to(self.store, buffered),
            Compression::Gzip => {
                let mut encoder = GzEncoder::new(buffered, flate2::Compression::fast());
                let exported = export_to(self.store, &mut encoder)?;
                encoder.finish()?.flush()?;
                Ok(exported)
            }
            Compression::Snappy => {
                let mut encoder = SnappyWriter::new(buffered)?;
                let exported = export_to(self.store, &mut encoder)?;
                encoder.finish()?.flush()?;
                Ok(exported)
            }
        }
    }
}

fn finish(
    mut file: File,
    exported: &Exported,
    compression: Compression,
    path: Option<PathBuf>,
) -> Result<Snapshot, BackupError> {
    let size = file.stream_position()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Snapshot {
        last_zxid: exported.last_zxid,
        size,
        name: name(exported, compression),
        path,
        file: Some(file),
    })
}

fn name(exported: &Exported, compression: Compression) -> String {
    let end = match compression {
        Compression::None => "",
        Compression::Gzip => ".gz",
        Compression::Snappy => ".snappy",
    };
    format!("snapshot.{:x}{end}", exported.last_zxid)
}

fn export_to(store: &dyn Store, out: impl Write) -> Result<Exported, BackupError> {
    let mut out = Some(out);
    let mut exported = Err(SnapshotError::View(ViewError("nobody looked".into())));
    store.view(&mut |view| {
        if let Some(out) = out.take() {
            exported = export(view, out);
        }
    })?;
    Ok(exported?)
}
