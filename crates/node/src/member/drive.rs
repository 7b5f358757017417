//! What the member gives its host to do.

use bytes::Bytes;
use quenda_consensus::{Message, Ready};

use super::Member;
use crate::barriers::Waiter;
use crate::frame::{self, Frame};
use crate::work::{Install, Outgoing, Work};

impl Member {
    /// The next piece of work; `None` when there is nothing more now. `time_ms` is the wall time that
    /// entries are stamped with.
    pub fn drive(&mut self, time_ms: i64, now_ms: u64) -> Option<Work> {
        if self.snapshots.is_installing() {
            return None;
        }
        self.now_ms = now_ms;
        self.restore_if_fetched();
        self.follow_view();
        self.send_commands(time_ms);
        self.ask_barriers();
        loop {
            let ready = self.next_ready();
            let ended = ready.is_none();
            let mut work = Work::default();
            if let Some(ready) = ready {
                self.take(ready, &mut work);
            }
            work.abandoned = self.abandoned.take();
            work.outgoing = std::mem::take(&mut self.outbox);
            work.barriers = std::mem::take(&mut self.passed);
            work.fetch = self.snapshots.next_fetch();
            if !work.is_empty() {
                return Some(work);
            }
            if ended {
                return None;
            }
        }
    }

    fn next_ready(&mut self) -> Option<Ready> {
        let restored = self.snapshots.take_restored();
        restored.or_else(|| self.consensus.ready())
    }

    fn take(&mut self, ready: Ready, work: &mut Work) {
        for read in ready.reads {
            self.barriers.answered(read.context, read.index);
        }
        self.pass_barriers();
        self.post(ready.messages);
        match (ready.snapshot, ready.persist) {
            (Some(image), persist) => {
                let hard_state = persist.map(|batch| {
                    debug_assert!(batch.entries.is_empty(), "entries behind a snapshot");
                    batch.hard_state
                });
                self.snapshots.installing(image.index);
                work.install = Some(Install {
                    image,
                    number: ready.number,
                    hard_state: hard_state.unwrap_or_default(),
                });
            }
            (None, persist) => work.persist = persist.map(|batch| (ready.number, batch)),
        }
        work.committed = ready.committed;
        work.snapshot_wanted = ready
            .snapshot_wanted
            .filter(|_| self.snapshots.wants_image(self.tick));
    }

    /// Asks for read indices on behalf of those who wait for barriers, the member itself among them.
    fn ask_barriers(&mut self) {
        let lacks_gate = !self.serving && self.has_cluster && self.views.current().is_some();
        if lacks_gate && !self.disk.hangs && !self.barriers.has_gate() {
            self.barriers.wait(Waiter::Gate);
        }
        if let Some(context) = self.barriers.next()
            && self.consensus.read_index(context).is_ok()
        {
            self.barriers.asked(self.tick);
        }
    }

    /// Puts raft's messages on their way. To a voter that has lost its data nothing goes: it must not
    /// answer before it is a learner.
    pub(super) fn post(&mut self, messages: Vec<Message>) {
        for message in messages {
            let to = message.to;
            let votes = self.membership.votes(to);
            if votes && self.peers.is_joining(to) {
                continue;
            }
            let frame = match message.snapshot_index {
                Some(_) => {
                    self.peers.entry(to).fetching_tick = self.tick;
                    let payload = &message.payload();
                    Frame::SnapshotOffer { payload }.encode()
                }
                None => frame::encode_raft(!votes && self.membership.contains(to), &message),
            };
            self.send(to, frame);
        }
    }

    pub(super) fn send(&mut self, to: u64, frame: Bytes) {
        self.outbox.push(Outgoing { to, frame });
    }
}
