//! A snapshot that is to be restored: received into an unnamed file, looked through, then sent through the log.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use flate2::bufread::MultiGzDecoder;
use quenda_tree::limits::RESTORE_BYTES_MAX;
use quenda_tree::{Checked, check_snapshot, check_snapshot_begin};
use tokio::sync::OwnedSemaphorePermit;
use tracing::{info, warn};

use super::BackupError;
use super::pieces::{Pieces, send};
use super::room::WithRoom;
use super::snappy::{self, SnappyReader};
use crate::limits::BACKUP_WRITE_BYTES;
use crate::shared::Shared;

/// What was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// zxid of the transaction that did it. All later ones are greater, as it is greater than all before and all
    /// in the snapshot.
    pub last_zxid: i64,
    /// zxid of the last transaction in the snapshot, where it says one.
    pub snapshot_zxid: Option<i64>,
    /// Znodes that there are now.
    pub znodes: usize,
    /// Sessions that came with the snapshot.
    pub sessions: usize,
    /// Ephemeral znodes that were left out, as their sessions were not in the snapshot.
    pub orphans: u64,
    /// Whether the znodes have the digest that the snapshot says, where it says one.
    pub digest_fits: Option<bool>,
}

/// A snapshot on its way in. Nothing has happened before [`Intake::finish`].
pub struct Intake {
    shared: Arc<Shared>,
    turn: OwnedSemaphorePermit,
    /// `None` after an error.
    file: Option<File>,
    /// What is not in the file yet.
    buffer: Vec<u8>,
    size: u64,
}

impl Intake {
    /// Begins, if this member can restore now.
    ///
    /// # Errors
    /// It cannot.
    pub async fn begin(shared: &Arc<Shared>) -> Result<Intake, BackupError> {
        let begun = Intake::open(shared).await;
        if let Err(error) = &begun {
            count_failure(shared, error);
        }
        begun
    }

    async fn open(shared: &Arc<Shared>) -> Result<Intake, BackupError> {
        if !shared.served().has_quorum() || shared.is_log_failing() {
            return Err(BackupError::NotServing);
        }
        if shared.is_disk_full() {
            return Err(BackupError::DiskFull);
        }
        let turn = Arc::clone(&shared.backup.restores).try_acquire_owned();
        let turn = turn.map_err(|_| BackupError::Busy("restore"))?;
        let directory = shared.config.data_dir.clone();
        let file = blocking(move || Ok(tempfile::tempfile_in(directory)?)).await?;
        Ok(Intake {
            shared: Arc::clone(shared),
            turn,
            file: Some(file),
            buffer: Vec::new(),
            size: 0,
        })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// There are too many, or they cannot be kept.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.size += bytes.len() as u64;
        let taken = match self.size > RESTORE_BYTES_MAX {
            true => Err(BackupError::TooLarge),
            false => {
                self.buffer.extend_from_slice(bytes);
                match self.buffer.len() >= BACKUP_WRITE_BYTES {
                    true => self.write_out().await,
                    false => Ok(()),
                }
            }
        };
        if let Err(error) = &taken {
            self.file = None;
            count_failure(&self.shared, error);
        }
        taken
    }

    async fn write_out(&mut self) -> Result<(), BackupError> {
        if self.shared.is_disk_full() {
            return Err(BackupError::DiskFull);
        }
        let mut file = self.file.take().ok_or_else(broken_off)?;
        let bytes = std::mem::take(&mut self.buffer);
        let written = blocking(move || {
            file.write_all(&bytes)?;
            Ok(file)
        });
        self.file = Some(written.await?);
        Ok(())
    }

    /// All bytes are here: looks through them, and puts what they hold in the place of the state, on every
    /// member. Goes on also when nobody waits for it any more.
    ///
    /// # Errors
    /// Nothing was changed, unless the error says that this is unknown.
    pub async fn finish(self) -> Result<Restored, BackupError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::spawn(async move {
            let started = Instant::now();
            let restored = self.restore().await;
            report(&shared, &restored, started);
            restored
        });
        done.await.map_err(io::Error::from)?
    }

    async fn restore(mut self) -> Result<Restored, BackupError> {
        if !self.buffer.is_empty() {
            self.write_out().await?;
        }
        let Intake {
            shared, turn, file, ..
        } = self;
        let file = file.ok_or_else(broken_off)?;
        let theirs = Arc::clone(&shared);
        let (checked, pieces) = blocking(move || {
            let (mut file, size) = unpacked(file, &theirs)?;
            let checked = look_through(&mut file, size)?;
            Ok((checked, Pieces::of(file, size)?))
        })
        .await?;
        let last_zxid = send(&shared, pieces).await?;
        drop(turn);
        Ok(Restored {
            last_zxid,
            snapshot_zxid: checked.last_zxid,
            znodes: checked.znodes,
            sessions: checked.sessions,
            orphans: checked.orphans,
            digest_fits: checked.digest_fits,
        })
    }
}

fn broken_off() -> BackupError {
    BackupError::Io(io::Error::other("it was broken off before"))
}

fn count_failure(shared: &Shared, error: &BackupError) {
    let errors = &shared.backup.counters.restore_errors;
    errors.fetch_add(1, Ordering::Relaxed);
    warn!(%error, "nothing was restored");
}

fn report(shared: &Shared, restored: &Result<Restored, BackupError>, started: Instant) {
    let counters = &shared.backup.counters;
    match restored {
        Err(error) => count_failure(shared, error),
        Ok(restored) => {
            let millis = started.elapsed().as_millis() as u64;
            counters.restores.fetch_add(1, Ordering::Relaxed);
            counters
                .last_restore_took_ms
                .store(millis, Ordering::Relaxed);
            counters.restores_took_ms.observe(millis);
            if restored.digest_fits == Some(false) {
                warn!(
                    "the znodes of the snapshot do not have the digest that it says; ZooKeeper takes such snapshots \
                     while it writes"
                );
            }
            if restored.orphans > 0 {
                let orphans = restored.orphans;
                info!(
                    orphans,
                    "ephemeral znodes without their session were left out"
                );
            }
            info!(
                znodes = restored.znodes,
                sessions = restored.sessions,
                zxid = format!("{:#x}", restored.last_zxid),
                millis,
                "the snapshot was restored"
            );
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::from)?
}

/// The file itself, or another one with what it holds if it is compressed; with the size.
fn unpacked(mut file: File, shared: &Arc<Shared>) -> Result<(File, u64), BackupError> {
    const GZIP: [u8; 2] = [0x1F, 0x8B];
    let size = file.stream_position()?;
    file.seek(SeekFrom::Start(0))?;
    let mut magic = Vec::new();
    (&mut file)
        .take(snappy::MAGIC.len() as u64)
        .read_to_end(&mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    let packed = |file| BufReader::with_capacity(BACKUP_WRITE_BYTES, file);
    if magic.starts_with(&GZIP) {
        unpack(MultiGzDecoder::new(packed(file)), shared)
    } else if magic == snappy::MAGIC {
        let decoder = SnappyReader::new(packed(file)).map_err(BackupError::Compression)?;
        unpack(decoder, shared)
    } else {
        Ok((file, size))
    }
}

fn unpack(mut decoder: impl Read, shared: &Arc<Shared>) -> Result<(File, u64), BackupError> {
    // A few bytes may hold very many: it is looked whether they are worth their place.
    let mut first = [0; 4];
    decoder
        .read_exact(&mut first)
        .map_err(BackupError::Compression)?;
    check_snapshot_begin(first).map_err(BackupError::Damaged)?;
    let mut plain = tempfile::tempfile_in(&shared.config.data_dir)?;
    let room = WithRoom::new(shared, &mut plain);
    let mut out = BufWriter::with_capacity(BACKUP_WRITE_BYTES, room);
    let mut bounded = (&first[..]).chain(decoder).take(RESTORE_BYTES_MAX + 1);
    let size = copy(&mut bounded, &mut out)?;
    out.flush()?;
    drop(out);
    match size > RESTORE_BYTES_MAX {
        true => Err(BackupError::TooLarge),
        false => Ok((plain, size)),
    }
}

/// As [`io::copy`], telling the fault of the one side from that of the other.
fn copy(from: &mut impl Read, to: &mut impl io::Write) -> Result<u64, BackupError> {
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        let count = from.read(&mut buffer).map_err(BackupError::Compression)?;
        if count == 0 {
            return Ok(total);
        }
        to.write_all(&buffer[..count])?;
        total += count as u64;
    }
}

fn look_through(file: &mut File, size: u64) -> Result<Checked, BackupError> {
    file.seek(SeekFrom::Start(0))?;
    let reader = BufReader::with_capacity(BACKUP_WRITE_BYTES, &*file);
    check_snapshot(reader, size).map_err(BackupError::Damaged)
}
