//! The disk: log, checkpoints, images.

use std::rc::Rc;

use bytes::Bytes;
use quenda_consensus::SnapshotImage;
use quenda_frontend::CloseReason;

use super::{Cx, Host, State};
use crate::disk::{self, ChangedRows, StateImage, Write};
use crate::event::Event;
use crate::plan::Mutation;
use crate::schedule::{MS, SECOND};

impl Host {
    pub(super) fn write_log(&mut self, cx: &mut Cx) {
        let (id, boot, delay) = (self.id, self.boot, self.sync_delay);
        let State::Running(process) = &mut self.state else {
            return;
        };
        if process.log_writing.is_some() || process.log_queue.is_empty() {
            return;
        }
        let queue = std::mem::take(&mut process.log_queue);
        let number = queue.last().map_or(0, |(number, _)| *number);
        let batches = queue.into_iter().map(|(_, batch)| batch).collect();
        let write = self.disk.write(Write::Append(batches));
        process.log_writing = Some((number, write));
        let delay = cx.rng.between(delay.0, delay.1);
        cx.schedule.after(delay, Event::LogWritten(id, boot));
        if cx.plan.mutation == Some(Mutation::AcknowledgeBeforeSync) {
            process.member.persisted(number);
        }
    }

    /// A write of the log is durable.
    pub fn log_written(&mut self, cx: &mut Cx) {
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some((number, write)) = process.log_writing.take() else {
            return;
        };
        if let Err(text) = self.disk.sync(write) {
            return cx.fail(format!("member {}: {text}", self.id));
        }
        process.member.persisted(number);
        self.drive(cx);
    }

    pub(super) fn checkpoint_if_due(&mut self, cx: &mut Cx) {
        let now = cx.schedule.now();
        let due = self
            .process()
            .is_some_and(|process| now >= process.next_checkpoint);
        if due {
            self.checkpoint(cx);
        }
    }

    pub(super) fn checkpoint(&mut self, cx: &mut Cx) {
        let now = cx.schedule.now();
        let (id, boot, delay) = (self.id, self.boot, self.sync_delay);
        let State::Running(process) = &mut self.state else {
            return;
        };
        let status = process.member.status();
        // What is applied is in the log on disk, or will be before this write.
        let is_logged = status.persisted >= process.tree.applied_index();
        let busy = process.checkpoint_writing.is_some() || process.installing.is_some();
        if busy || !is_logged || process.tree.applied_index() <= process.checkpointed {
            return;
        }
        process.next_checkpoint = now + cx.plan.checkpoint_interval;
        let applied = (process.tree.applied_index(), process.tree.applied_term());
        let mut rows = ChangedRows::default();
        process.tree.write_checkpoint(&mut rows);
        let write = self.disk.write(Write::Checkpoint {
            applied,
            membership: process.member.membership().clone(),
            rows,
        });
        process.checkpointed = applied.0;
        process.checkpoint_writing = Some((applied.0, write));
        let delay = cx.rng.between(delay.0, (delay.1 * 4).min(SECOND));
        cx.schedule.after(delay, Event::CheckpointWritten(id, boot));
    }

    /// A checkpoint is durable: the log below it may go.
    pub fn checkpoint_written(&mut self, cx: &mut Cx) {
        let id = self.id;
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some((index, write)) = process.checkpoint_writing.take() else {
            return;
        };
        if let Err(text) = self.disk.sync(write) {
            return cx.fail(format!("member {id}: {text}"));
        }
        let through = process.member.compact(index, cx.plan.log_retained);
        self.disk.write(Write::Cut(through));
        self.offer_image(cx);
        self.drive(cx);
    }

    /// Makes the image that somebody needs, as soon as there is a checkpoint to make it from.
    pub(super) fn offer_image(&mut self, cx: &mut Cx) {
        let id = self.id;
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some(request) = process.snapshot_wanted else {
            return;
        };
        let image = self.disk.image();
        let Some(image) = image.filter(|image| image.index >= request.min_index) else {
            self.checkpoint(cx);
            return;
        };
        process.snapshot_wanted = None;
        cx.say(format_args!("member {id} offers {}", image.index));
        process.member.offer_snapshot(SnapshotImage {
            index: image.index,
            term: image.term,
            membership: image.membership.clone(),
            manifest: Bytes::copy_from_slice(&image.index.to_be_bytes()),
        });
        process.images.insert(image.index, image);
        while process.images.len() > 2 {
            process.images.pop_first();
        }
    }

    /// The image that another member fetches.
    pub fn image(&self, index: u64) -> Option<Rc<StateImage>> {
        self.process()?.images.get(&index).cloned()
    }

    /// From whom this member fetches, and which image.
    pub fn fetches(&self) -> Option<(u64, u64)> {
        let fetching = self.process()?.fetching.as_ref()?;
        Some((fetching.fetch.from, fetching.fetch.index))
    }

    /// The next piece of an image has come, or has not: `source` is there if it can be reached.
    pub fn fetched(&mut self, source: Option<Rc<StateImage>>, reachable: bool, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        let breaks = cx.rng.percent(cx.plan.transfer_breaks);
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some(fetching) = &mut process.fetching else {
            return;
        };
        let index = fetching.fetch.index;
        if !reachable || breaks {
            fetching.patience = fetching.patience.saturating_sub(1);
        } else if source.is_some() {
            fetching.pieces -= 1;
        }
        let gone = reachable && source.is_none();
        let ended = match source {
            Some(image) if fetching.pieces == 0 => {
                process.received.insert(index, image);
                Some(true)
            }
            _ if gone || fetching.patience == 0 => Some(false),
            _ => None,
        };
        if let Some(complete) = ended {
            cx.say(format_args!("member {id} has fetched {index}: {complete}"));
            process.fetching = None;
            process.member.fetched(index, complete);
            return self.drive(cx);
        }
        let delay = cx.rng.between(5 * MS, 40 * MS);
        cx.schedule.after(delay, Event::Fetched(id, boot));
    }

    pub(super) fn begin_install(&mut self, cx: &mut Cx) {
        let (id, boot) = (self.id, self.boot);
        let State::Running(process) = &mut self.state else {
            return;
        };
        let idle = process.log_writing.is_none() && process.log_queue.is_empty();
        if process.installing.is_some() && idle && process.checkpoint_writing.is_none() {
            // Planned more than once: the first that comes does it.
            let delay = cx.rng.between(MS, 60 * MS);
            cx.schedule.after(delay, Event::Installed(id, boot));
        }
    }

    /// The store is switched to an image.
    pub fn installed(&mut self, cx: &mut Cx) {
        let id = self.id;
        let now_ms = self.clock.monotonic_ms(cx.schedule.now());
        let State::Running(process) = &mut self.state else {
            return;
        };
        let Some(install) = process.installing.take() else {
            return;
        };
        let index = install.image.index;
        let Some(image) = process.received.get(&index).cloned() else {
            return cx.fail(format!(
                "member {id} is to install {index}, which it does not have"
            ));
        };
        cx.say(format_args!("member {id} installs {index}"));
        if cx.plan.mutation == Some(Mutation::SnapshotWithoutPosition) {
            // The rows come, the position of the log stays: as a store that forgets to move it.
            let position = StateImage {
                index: index.saturating_sub(1),
                term: image.term,
                membership: image.membership.clone(),
                rows: image.rows.clone(),
            };
            self.disk.install(&position, install.hard_state);
        } else {
            self.disk.install(&image, install.hard_state);
        }
        let mut tree = match disk::load(&image.rows) {
            Ok(tree) => tree,
            Err(error) => return cx.fail(format!("member {id}: image {index}: {error}")),
        };
        tree.set_applied_index(image.index, image.term);
        cx.checks.installed(id, &tree);
        if process.tree.restored() != tree.restored()
            && let Some(sessions) = &process.local
        {
            sessions.borrow_mut().clear();
        }
        process.tree = tree;
        process.alone = false;
        process.checkpointed = index;
        process.images.clear();
        process.received.clear();
        process
            .member
            .installed(index, install.number, &process.tree, now_ms);
        self.close_where(CloseReason::Member, |_| true, cx);
        self.drive(cx);
    }
}
