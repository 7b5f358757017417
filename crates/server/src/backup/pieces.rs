//! A snapshot in pieces on its way through the log. Each is an entry of its own, so that nothing else waits for
//! long; the last command turns them into the state.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quenda_proto::ErrorCode;
use quenda_tree::PieceSum;
use quenda_tree::command::Command;
use tracing::{debug, info};

use super::BackupError;
use super::commands::{Answer, submit};
use crate::limits::{
    RESTORE_ANSWER_PATIENCE, RESTORE_PATIENCE, RESTORE_PIECE_BYTES, RESTORE_WINDOW,
};
use crate::shared::Shared;

/// A file in pieces.
pub(super) struct Pieces {
    file: File,
    size: u64,
    sum: PieceSum,
}

impl Pieces {
    pub(super) fn of(file: File, size: u64) -> io::Result<Pieces> {
        let mut pieces = Pieces {
            file,
            size,
            sum: PieceSum::default(),
        };
        let mut sum = PieceSum::default();
        for number in 0..pieces.count() {
            sum.add(&pieces.read(number)?);
        }
        pieces.sum = sum;
        Ok(pieces)
    }

    fn count(&self) -> u32 {
        // Bounded by `RESTORE_BYTES_MAX`.
        self.size.div_ceil(RESTORE_PIECE_BYTES) as u32
    }

    fn read(&self, number: u32) -> io::Result<Vec<u8>> {
        let start = u64::from(number) * RESTORE_PIECE_BYTES;
        let length = RESTORE_PIECE_BYTES.min(self.size - start);
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }
}

/// Sends everything; the zxid of the restore.
pub(super) async fn send(shared: &Arc<Shared>, pieces: Pieces) -> Result<i64, BackupError> {
    let mut id = [0; 8];
    getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()))?;
    let mut sender = Sender {
        shared: Arc::clone(shared),
        pieces: Arc::new(pieces),
        restore: u64::from_le_bytes(id),
        last_progress: Instant::now(),
    };
    info!(
        pieces = sender.pieces.count(),
        bytes = sender.pieces.size,
        "a snapshot is on its way to all members"
    );
    let result = sender.send_all().await;
    if result.is_err() {
        sender.give_up();
    }
    result
}

struct Sender {
    shared: Arc<Shared>,
    pieces: Arc<Pieces>,
    restore: u64,
    last_progress: Instant,
}

/// What came of one try.
enum Fate {
    /// Done, with this zxid.
    Done(i64),
    /// Nobody knows: the same again, which does no harm.
    Unknown,
    /// The members lack a piece.
    Lacking,
}

impl Sender {
    async fn send_all(&mut self) -> Result<i64, BackupError> {
        let mut next = 0;
        loop {
            next = self.send_pieces(next).await?;
            let (restore, sum) = (self.restore, self.pieces.sum.value());
            let answer = submit(&self.shared, |origin| Command::Restore {
                origin,
                restore,
                sum,
            });
            match self.fate(answer, RESTORE_PATIENCE).await? {
                Fate::Done(zxid) => return Ok(zxid),
                Fate::Unknown => self.wait_to_retry().await?,
                Fate::Lacking => next = self.known()?,
            }
        }
    }

    /// Sends the pieces from a number on, several at a time; how many the members have then.
    async fn send_pieces(&mut self, mut next: u32) -> Result<u32, BackupError> {
        let count = self.pieces.count();
        let mut confirmed = next;
        let mut sent: VecDeque<Answer> = VecDeque::new();
        while confirmed < count {
            while next < count && sent.len() < RESTORE_WINDOW {
                sent.push_back(self.send_piece(next).await?);
                next += 1;
            }
            let Some(answer) = sent.pop_front() else {
                return Ok(confirmed);
            };
            match self.fate(answer, RESTORE_ANSWER_PATIENCE).await? {
                Fate::Done(_) => {
                    confirmed += 1;
                    self.last_progress = Instant::now();
                    continue;
                }
                Fate::Unknown => self.wait_to_retry().await?,
                Fate::Lacking => confirmed = self.known()?,
            }
            sent.clear();
            next = confirmed;
        }
        Ok(confirmed)
    }

    async fn send_piece(&self, number: u32) -> Result<Answer, BackupError> {
        let pieces = Arc::clone(&self.pieces);
        let read = tokio::task::spawn_blocking(move || pieces.read(number));
        let bytes = read.await.map_err(io::Error::from)??;
        let restore = self.restore;
        Ok(submit(&self.shared, |origin| Command::AddPiece {
            origin,
            restore,
            number,
            bytes: &bytes,
        }))
    }

    async fn fate(&self, answer: Answer, patience: Duration) -> Result<Fate, BackupError> {
        let Ok(Ok((zxid, code))) = tokio::time::timeout(patience, answer).await else {
            return Ok(Fate::Unknown);
        };
        match code {
            ErrorCode::Ok => Ok(Fate::Done(zxid)),
            ErrorCode::NoNode => Ok(Fate::Lacking),
            ErrorCode::SystemError => Err(BackupError::TooLarge),
            _ => Err(BackupError::Refused("it is damaged")),
        }
    }

    /// How many pieces the members have, as far as this one knows: the answer that asks for it was applied here.
    fn known(&self) -> Result<u32, BackupError> {
        match self.shared.tree.read().restore_pieces() {
            Some((restore, count)) if restore == self.restore => Ok(count),
            Some(_) => Err(BackupError::Superseded),
            None if self.is_late() => Err(BackupError::Superseded),
            None => Ok(0),
        }
    }

    fn is_late(&self) -> bool {
        self.last_progress.elapsed() >= RESTORE_PATIENCE
    }

    async fn wait_to_retry(&self) -> Result<(), BackupError> {
        debug!("what became of a part of the snapshot is unknown: it is sent again");
        loop {
            if self.is_late() {
                return Err(BackupError::NoQuorum(RESTORE_PATIENCE.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            if self.shared.served().has_quorum() {
                return Ok(());
            }
        }
    }

    /// What the members have of it is of no use. Should this get lost the leader sees to it later.
    fn give_up(&self) {
        let restore = self.restore;
        drop(submit(&self.shared, |origin| Command::DropPieces {
            origin,
            restore,
        }));
    }
}
