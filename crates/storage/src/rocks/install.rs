//! Putting a received image in the place of the database.
//!
//! The new database is made ready beside the old one, from links to the received files: opened, given this
//! member's name, term and vote, and synced. Then one rename makes it the one that counts. Whatever is left
//! of the other one is deleted afterwards, or at the next start.

use std::fs;
use std::io;
use std::path::Path;

use quenda_consensus::HardState;
use rocksdb::{DB, IteratorMode, WriteBatch};
use tracing::warn;

use super::files::{step, sync_directory};
use super::images::{checkpoint_row, image_io, rocks};
use super::open::{check_identity, open_prepared};
use super::options::{self, LOG, RAFT_META};
use super::place::Place;
use super::{read, seal};
use crate::error::{OpenError, StoreError};
use crate::format::{self, Progress};
use crate::image::{Manifest, refused};

/// Makes the image's database ready in a place of its own, with an empty log behind the image's entry.
pub(super) fn prepare(
    place: Place<'_>,
    manifest: &Manifest,
    files: &Path,
    progress: Progress,
) -> Result<DB, StoreError> {
    take_files(place, manifest, files).map_err(image_io)?;
    let db = open_prepared(place).map_err(|error| match error {
        OpenError::Damaged { .. } => refused(error.to_string()),
        other => StoreError::ImageIo(other.to_string()),
    })?;
    step("the new database is open");
    if checkpoint_row(&db)? != manifest.checkpoint {
        return Err(refused("its database belongs to another entry"));
    }
    if db
        .iterator_cf(read::family(&db, LOG)?, IteratorMode::Start)
        .next()
        .is_some()
    {
        return Err(refused("its database has a log"));
    }
    make_own(&db, place, manifest.position(), progress)?;
    step("the new database is this member's");
    check_identity(&db, place.options).map_err(|error| refused(error.to_string()))?;
    sync(place).map_err(image_io)?;
    step("the new database is durable");
    Ok(db)
}

/// The large files are linked: RocksDB never changes them. So an attempt that fails leaves the image whole.
fn take_files(place: Place<'_>, manifest: &Manifest, files: &Path) -> io::Result<()> {
    place.prepare()?;
    let database = place.database();
    for file in &manifest.files {
        let (from, to) = (files.join(&file.name), database.join(&file.name));
        if file.name.ends_with(".sst") {
            fs::hard_link(from, to)?;
        } else {
            fs::copy(from, &to)?;
            fs::File::open(to)?.sync_all()?;
        }
        step("a file is taken over");
    }
    sync(place)
}

fn sync(place: Place<'_>) -> io::Result<()> {
    sync_directory(&place.database())?;
    sync_directory(&place.options.directory)?;
    if let (Some(log), Some(parent)) = (place.log_directory(), &place.options.log_directory) {
        sync_directory(&log)?;
        sync_directory(parent)?;
    }
    Ok(())
}

fn make_own(
    db: &DB,
    place: Place<'_>,
    position: (u64, u64),
    progress: Progress,
) -> Result<(), StoreError> {
    let family = read::family(db, RAFT_META)?;
    let mut rows = WriteBatch::default();
    rows.put_cf(
        family,
        format::MEMBER_KEY,
        place.options.member.to_be_bytes(),
    );
    rows.put_cf(
        family,
        format::COMPACTED_KEY,
        format::encode_position(position),
    );
    rows.put_cf(family, format::PROGRESS_KEY, progress.encode());
    seal::write(db, rows, &options::synced()).map_err(rocks)
}

/// Raft's state behind an image: its entry is committed, and this append is one more.
pub(super) fn progress_behind(index: u64, hard_state: HardState, appends: u64) -> Progress {
    Progress {
        hard_state: HardState {
            commit: index,
            ..hard_state
        },
        appends: appends + 1,
    }
}

/// Deletes what an attempt has left. The next attempt or start does it otherwise.
pub(super) fn abandon(place: Place<'_>) {
    if let Err(error) = place.discard() {
        warn!(%error, "what is left of an image that could not be installed cannot be deleted");
    }
}

/// Deletes the database that does not count any more. The next start does it otherwise.
pub(super) fn forget_others(place: Place<'_>) {
    if let Err(error) = place.sweep_databases() {
        warn!(%error, "the database from before the installed image cannot be deleted");
    }
}
