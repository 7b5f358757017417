use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use prost::Message as _;
use raft::eraftpb::{self, EntryType, MessageType};
use raft::{Changer, RawNode, SnapshotStatus, StateRole};

use crate::config::Config;
use crate::entry::{EntryKind, HardState, LogBatch, LogEntry};
use crate::error::{ConfigError, MembershipError, ProposeError, ReadIndexError, StepError};
use crate::membership::{self, Membership, MembershipChange};
use crate::message::{self, Message};
use crate::recovered::Recovered;
use crate::status::{PeerStatus, Role, Status};
use crate::uncommitted::Uncommitted;
use crate::window::{self, LogWindow};
use crate::wire::WireMessage;

/// How far the term of a message may be ahead. An election adds one, so no member ever lags that much; and raft gives
/// up the whole process when terms come to their end.
const TERMS_AHEAD: u64 = 1 << 32;

/// What the host has to do, in this order: install `snapshot`, hand `persist` to the log writer, send
/// `messages`, apply `committed`, answer `reads`.
#[derive(Debug, Default)]
pub struct Ready {
    /// Names this batch for [`Consensus::on_persisted`].
    pub number: u64,
    /// To be made durable, in the order of the numbers. `None`: this number need not be reported.
    pub persist: Option<LogBatch>,
    /// To be sent now; what must wait for `persist` comes from [`Consensus::on_persisted`].
    pub messages: Vec<Message>,
    /// Committed and durable here; to be applied in order.
    pub committed: Vec<LogEntry>,
    /// Read requests whose index is known now.
    pub reads: Vec<ReadIndex>,
    /// A leader's state that replaces this member's own, up to and including `persist`'s first entry.
    /// Its installation must be durable before the number is reported, and is then reported as applied.
    pub snapshot: Option<SnapshotImage>,
    /// A follower cannot be served from the log: the host is to make an image and offer it.
    pub snapshot_wanted: Option<SnapshotRequest>,
}

/// The answer to [`Consensus::read_index`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadIndex {
    /// The context given with the request.
    pub context: u64,
    /// The read is linearizable once this entry has been applied here.
    pub index: u64,
}

/// A complete state, as far as raft is concerned: where it belongs, and how the host names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotImage {
    /// Newest entry whose effect it holds.
    pub index: u64,
    /// Term of that entry.
    pub term: u64,
    /// The membership as of that entry.
    pub membership: Membership,
    /// Opaque here: a description of the state, small; the state itself travels beside raft.
    pub manifest: Bytes,
}

/// A follower that the log cannot serve any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// The follower.
    pub to: u64,
    /// The image must hold at least this entry.
    pub min_index: u64,
}

/// A [`Ready`] that raft has not been told to be durable.
struct Outstanding {
    number: u64,
    writes: bool,
    /// It belongs to a snapshot, which takes its time.
    installs: bool,
    messages: Vec<Message>,
}

/// One member's part in the ensemble. See the crate's description for how to drive it.
pub struct Consensus {
    node: RawNode<LogWindow>,
    config: Config,
    hard_state: HardState,
    outstanding: VecDeque<Outstanding>,
    /// Commands of entries, by index and term, that raft was given since the last [`Ready`]: it may take them into its
    /// log or not. All that it has taken are in the window then.
    arriving: BTreeMap<(u64, u64), Bytes>,
    uncommitted: Uncommitted,
    /// Newest entry of a snapshot that the host is installing. Until it is applied, this member must not
    /// start an election: raft would look for entries that the snapshot replaces.
    installing: Option<u64>,
    /// Whether this member leaves leading to others.
    passive: bool,
    /// (term, index) of what a leader believes to be in this log although it is not: it has been
    /// acknowledged here, and the disk has lost it. This member votes as if it still had it, or what others
    /// were told is durable might be outvoted.
    owed: (u64, u64),
    /// Elections started here; makes the timeouts of one term differ.
    elections: u64,
}

impl Consensus {
    /// A member as it was left. It starts as follower; see [`Consensus::campaign`].
    ///
    /// The caller has checked `recovered` with [`Recovered::validate`].
    ///
    /// # Errors
    /// When `config` cannot work.
    pub fn new(config: Config, recovered: Recovered) -> Result<Consensus, ConfigError> {
        let applied = recovered.applied;
        let raft_config = config.to_raft(applied)?;
        let window = LogWindow::new(recovered);
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&raft_config, window, &logger)
            .map_err(|error| ConfigError(error.to_string()))?;
        let hard_state = from_raft_hard_state(&node.raft.hard_state());
        let mut consensus = Consensus {
            node,
            config,
            hard_state,
            outstanding: VecDeque::new(),
            arriving: BTreeMap::new(),
            uncommitted: Uncommitted::default(),
            installing: None,
            passive: false,
            owed: (0, 0),
            elections: 0,
        };
        consensus.pin_election_timeout();
        Ok(consensus)
    }

    // ----- inputs -------------------------------------------------------------------------------

    /// One tick has passed. The clock stands still while a snapshot is being installed.
    pub fn tick(&mut self) {
        if self.installing.is_some() {
            return;
        }
        let was_leader = self.is_leader();
        if !was_leader && !self.may_campaign() {
            self.node.raft.election_elapsed += 1;
            return;
        }
        if self.node.tick() && !was_leader {
            self.elections += 1;
        }
        self.pin_election_timeout();
    }

    /// Whether an election may be started here. A voter that needs nobody else's vote leads at once, and
    /// raft takes for granted that its log is durable then.
    fn may_campaign(&self) -> bool {
        let raft = &self.node.raft;
        let alone = raft.prs().is_singleton();
        let durable = raft.raft_log.persisted == self.last_index();
        !self.passive && !self.owes() && self.installing.is_none() && (durable || !alone)
    }

    /// Whether the log lacks what this member had acknowledged.
    fn owes(&self) -> bool {
        let log = &self.node.raft.raft_log;
        (log.last_term(), log.last_index()) < self.owed
    }

    /// A passive member starts no election; it votes and takes entries like any other.
    pub fn set_passive(&mut self, passive: bool) {
        self.passive = passive;
    }

    /// The leader's process is known to be gone: another member may be elected without waiting for the
    /// leader's lease to end. Nothing happens on a leader.
    pub fn forget_leader(&mut self) {
        if !self.is_leader() {
            self.node.raft.leader_id = raft::INVALID_ID;
        }
    }

    /// Starts an election now, without waiting for a timeout. A single voter leads when this returns.
    /// Nothing happens on a leader, on a member without a vote or a passive one, while a snapshot is being
    /// installed, and while a committed membership change waits to be applied.
    pub fn campaign(&mut self) {
        if self.is_leader() || !self.may_campaign() || !self.node.raft.promotable() {
            return;
        }
        self.elections += 1;
        // Raft reports nothing that could go wrong here: a member that may not campaign stays as it is.
        let started = self.node.campaign();
        debug_assert!(started.is_ok(), "campaign: {started:?}");
        self.pin_election_timeout();
    }

    /// Appends commands to the leader's log, all or none, and tells their indices. They take effect when
    /// they come out of [`Ready::committed`] with the term of this moment; an entry of another term at
    /// such an index means that the proposal is lost.
    ///
    /// # Errors
    /// See [`ProposeError`]; nothing was appended then.
    pub fn propose_batch<C: Into<Bytes>>(
        &mut self,
        commands: Vec<C>,
    ) -> Result<Range<u64>, ProposeError> {
        let first = self.last_index() + 1;
        let term = self.node.raft.term;
        let entries: Vec<_> = (first..)
            .zip(commands)
            .map(|(index, command)| LogEntry {
                index,
                term,
                kind: EntryKind::Normal,
                data: command.into(),
            })
            .collect();
        if entries.is_empty() {
            return Ok(first..first);
        }
        debug_assert!(
            entries.iter().all(|entry| !entry.data.is_empty()),
            "an empty command is a leader's first entry"
        );
        let bytes = entries.iter().map(|entry| entry.data.len() as u64).sum();
        self.append(entries.iter().map(window::to_raft).collect(), bytes)?;
        self.keep(entries);
        Ok(first..self.last_index() + 1)
    }

    /// [`Consensus::propose_batch`] for one command.
    ///
    /// # Errors
    /// See [`ProposeError`].
    pub fn propose(&mut self, command: impl Into<Bytes>) -> Result<u64, ProposeError> {
        Ok(self.propose_batch(vec![command])?.start)
    }

    /// Appends a membership change. It takes effect when it is applied. `context` is a command that goes
    /// with it, empty for none; see [`crate::conf_context`]. No changes at all leave a joint membership.
    ///
    /// # Errors
    /// See [`MembershipError`]; nothing was appended then.
    pub fn propose_membership(
        &mut self,
        changes: &[MembershipChange],
        context: Vec<u8>,
    ) -> Result<u64, MembershipError> {
        self.check_may_propose()?;
        // Raft would silently append an empty entry instead.
        if self.node.raft.has_pending_conf() {
            return Err(MembershipError::InProgress);
        }
        let change = membership::to_raft(changes, context);
        self.check_change(&change)?;
        let data = change.encode_to_vec();
        let bytes = data.len() as u64;
        let entry = eraftpb::Entry {
            entry_type: EntryType::EntryConfChangeV2 as i32,
            data,
            ..eraftpb::Entry::default()
        };
        self.append(vec![entry], bytes)?;
        Ok(self.last_index())
    }

    /// Keeps the commands of entries that raft was given.
    fn keep(&mut self, entries: Vec<LogEntry>) {
        let with_data = entries.into_iter().filter(|entry| !entry.data.is_empty());
        self.arriving
            .extend(with_data.map(|entry| ((entry.index, entry.term), entry.data)));
    }

    /// The data of an entry of raft, if it is here: that of an entry which was replaced meanwhile is not.
    fn data(&self, entry: &eraftpb::Entry) -> Option<Bytes> {
        if !window::is_stub(entry) {
            return Some(Bytes::copy_from_slice(&entry.data));
        }
        let key = (entry.index, entry.term);
        let kept = self.node.store().entry(entry.index);
        let arriving = || self.arriving.get(&key).cloned();
        kept.filter(|kept| kept.term == entry.term)
            .map(|kept| kept.data.clone())
            .or_else(arriving)
    }

    /// Takes a message of another member.
    ///
    /// # Errors
    /// See [`StepError`]. The message had no effect; raft's senders repeat what matters.
    pub fn step(&mut self, payload: &[u8]) -> Result<(), StepError> {
        self.step_message(message::decode(payload)?)
    }

    /// [`Consensus::step`] for a message whose sender is known to be `from`.
    ///
    /// # Errors
    /// See [`StepError`].
    pub fn step_from(&mut self, from: u64, payload: &[u8]) -> Result<(), StepError> {
        let message = message::decode(payload)?;
        match message.from == from {
            true => self.step_message(message),
            false => Err(StepError::Unexpected),
        }
    }

    fn step_message(&mut self, message: WireMessage) -> Result<(), StepError> {
        if message.to != self.config.id {
            return Err(StepError::Misdirected { to: message.to });
        }
        let newest = self.node.raft.term.saturating_add(TERMS_AHEAD);
        if !message::is_between_members(&message) || message.term > newest {
            return Err(StepError::Unexpected);
        }
        // A call to take leadership over, which is no loss to miss.
        let (message, entries) = message.into_raft();
        if message.msg_type() == MessageType::MsgTimeoutNow && !self.may_campaign() {
            return Ok(());
        }
        self.check_promises(&message)?;
        let from = message.from;
        self.keep(entries);
        let result = self.node.step(message);
        self.pin_election_timeout();
        result.map_err(|error| match error {
            raft::Error::StepLocalMsg => StepError::Unexpected,
            raft::Error::StepPeerNotFound => StepError::UnknownMember { from },
            other => StepError::Refused(other.to_string()),
        })
    }

    /// What a member that lost its data must not answer.
    fn check_promises(&mut self, message: &eraftpb::Message) -> Result<(), StepError> {
        match message.msg_type() {
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote if self.is_joining() => {
                Err(StepError::Joining)
            }
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote
                if (message.log_term, message.index) < self.owed =>
            {
                Err(self.lost(self.owed.1))
            }
            // The sender does not know yet that everything is lost here.
            MessageType::MsgHeartbeat
                if self.is_joining() && message.commit > self.last_index() =>
            {
                Err(StepError::Joining)
            }
            // Raft gives up the whole process.
            MessageType::MsgHeartbeat if message.commit > self.last_index() => {
                self.owed = self.owed.max((message.term, message.commit));
                Err(self.lost(message.commit))
            }
            _ => Ok(()),
        }
    }

    fn lost(&self, believed: u64) -> StepError {
        StepError::LostEntries {
            believed,
            last: self.last_index(),
        }
    }

    /// Replaces this member's state by a snapshot that its host has received: [`Ready::snapshot`] follows
    /// unless it is of no use, because the member knows as much already. False if there is no leader to
    /// tell; the call may be repeated then.
    pub fn restore(&mut self, image: &SnapshotImage) -> bool {
        let (raft, leader) = (&self.node.raft, self.node.raft.leader_id);
        if raft.state != StateRole::Follower || leader == raft::INVALID_ID {
            return false;
        }
        // Whatever leader made it: a snapshot holds committed entries alone, which are the same everywhere.
        let message = eraftpb::Message {
            msg_type: MessageType::MsgSnapshot as i32,
            from: leader,
            to: self.config.id,
            term: raft.term,
            snapshot: Some(image.to_raft()),
            ..eraftpb::Message::default()
        };
        let restored = self.node.step(message);
        debug_assert!(restored.is_ok(), "restore: {restored:?}");
        self.pin_election_timeout();
        true
    }

    /// Asks for an index that makes a read linearizable; it comes in [`Ready::reads`]. `context` must
    /// never have been used before by this member. One context serves all reads that arrived before the
    /// call, and none that arrive later.
    ///
    /// # Errors
    /// See [`ReadIndexError`].
    pub fn read_index(&mut self, context: u64) -> Result<(), ReadIndexError> {
        if self.node.raft.leader_id == raft::INVALID_ID {
            return Err(ReadIndexError::NoLeader);
        }
        if self.is_leader() && !self.node.raft.commit_to_current_term() {
            return Err(ReadIndexError::NotCommittedInTerm);
        }
        // Raft keys requests by context alone, also those of different members.
        let mut unique = self.config.id.to_be_bytes().to_vec();
        unique.extend_from_slice(&context.to_be_bytes());
        self.node.read_index(unique);
        Ok(())
    }

    /// Hands leadership to `to`, which must be a voter. Proposals are refused until it is done, or until
    /// an election timeout has passed.
    pub fn transfer_leadership(&mut self, to: u64) {
        self.node.transfer_leader(to);
    }

    /// A message to `id` could not be sent.
    pub fn report_unreachable(&mut self, id: u64) {
        self.node.report_unreachable(id);
    }

    /// The snapshot announced to `id` has been installed there, or has failed. The member gets nothing
    /// else before this.
    pub fn report_snapshot(&mut self, id: u64, installed: bool) {
        let status = if installed {
            SnapshotStatus::Finish
        } else {
            SnapshotStatus::Failure
        };
        self.node.report_snapshot(id, status);
    }

    /// Gives the image that followers are served with from now on.
    pub fn offer_snapshot(&mut self, image: SnapshotImage) {
        self.node.mut_store().offer(image);
    }

    /// The image that was offered is not there any more: who needs one has to ask for another.
    pub fn withdraw_snapshot(&mut self) {
        self.node.mut_store().withdraw();
    }

    // ----- outputs ------------------------------------------------------------------------------

    /// The next piece of work, if there is any.
    pub fn ready(&mut self) -> Option<Ready> {
        let snapshot_wanted = self.node.mut_store().take_wanted();
        if !self.node.has_ready() {
            self.arriving.clear();
            return snapshot_wanted.map(|wanted| Ready {
                snapshot_wanted: Some(wanted),
                ..Ready::default()
            });
        }
        let mut raw = self.node.ready();
        if let Some(hard_state) = raw.hs() {
            self.hard_state = from_raft_hard_state(hard_state);
        }
        let snapshot =
            (!raw.snapshot().is_empty()).then(|| SnapshotImage::from_raft(raw.snapshot()));
        if let Some(image) = &snapshot {
            self.node.mut_store().reset(image.index, image.term);
            self.installing = Some(image.index);
        }
        let persist = self.batch_to_persist(&mut raw);
        let mut messages = self.complete_messages(raw.take_messages());
        let held = self.complete_messages(raw.take_persisted_messages());
        self.arriving.clear();
        let committed = self.complete_entries(&raw.take_committed_entries());
        if let Some(last) = committed.last() {
            self.uncommitted.committed(last.index);
        }
        let ready = Ready {
            number: raw.number(),
            committed,
            reads: self.own_reads(&mut raw),
            persist,
            messages: Vec::new(),
            snapshot,
            snapshot_wanted,
        };
        self.node.advance_append_async(raw);
        self.outstanding.push_back(Outstanding {
            number: ready.number,
            writes: ready.persist.is_some(),
            installs: ready.snapshot.is_some(),
            messages: held,
        });
        messages.extend(self.release(|outstanding| !outstanding.writes));
        Some(Ready { messages, ..ready })
    }

    /// The batch `number` and every earlier one are durable. Gives the messages that waited for that.
    /// New work may be ready.
    #[must_use = "the messages are to be sent"]
    pub fn on_persisted(&mut self, number: u64) -> Vec<Message> {
        self.release(|outstanding| outstanding.number <= number || !outstanding.writes)
    }

    /// Entries up to and including `index` have been applied.
    pub fn on_applied(&mut self, index: u64) {
        if index > self.node.raft.raft_log.applied() {
            let last = self.last_index();
            self.node.advance_apply_to(index);
            // Raft leaves a joint membership by itself, but tells nobody before the next heartbeat: until the
            // others know, those who were removed are needed.
            if self.last_index() > last {
                self.node.raft.bcast_append();
            }
        }
        self.installing = self.installing.filter(|installing| *installing > index);
    }

    /// Puts the membership change of a committed entry into force; `None` if it carries none. To be
    /// called for every committed entry that is no command, before it is reported as applied. The result
    /// belongs into the checkpoint that holds the entry.
    ///
    /// # Errors
    /// When the change makes no sense; it does so on every member, and the membership stays.
    pub fn apply_membership(
        &mut self,
        entry: &LogEntry,
    ) -> Result<Option<Membership>, MembershipError> {
        let Some(change) = membership::decode(entry)? else {
            return Ok(None);
        };
        let index = entry.index;
        let state = self
            .node
            .apply_conf_change(&change)
            .map_err(|error| MembershipError::Invalid(error.to_string()))?;
        self.node.mut_store().note_membership(index);
        let membership = Membership::from_raft(state);
        self.give_way(&membership);
        Ok(Some(membership))
    }

    /// A leader without a vote leads no longer, and calls the voter that has the most of the log to take
    /// over. Raft would go on without a place for it in the membership, and fall over its own entries.
    fn give_way(&mut self, membership: &Membership) {
        if !self.is_leader() || membership.votes(self.config.id) {
            return;
        }
        let peers = self.peers();
        let voters = peers.iter().filter(|peer| peer.voter);
        let heir =
            voters.max_by_key(|peer| (peer.active, peer.matched, std::cmp::Reverse(peer.id)));
        let raft = &mut self.node.raft;
        if let Some(heir) = heir {
            raft.send_timeout_now(heir.id);
        }
        let term = raft.term;
        raft.become_follower(term, raft::INVALID_ID);
        self.pin_election_timeout();
    }

    /// Forgets entries up to and including `through`, as far as they are applied and durable here.
    pub fn compact(&mut self, through: u64) {
        let log = &self.node.raft.raft_log;
        let through = through.min(log.applied()).min(log.persisted);
        self.node.mut_store().compact(through);
    }

    /// How far the log may be cut when everything up to `through` is in a durable checkpoint: at least
    /// `retain` bytes of commands stay, or as many as there are.
    pub fn compaction_point(&self, through: u64, retain: u64) -> u64 {
        self.node.store().compaction_point(through, retain)
    }

    // ----- views --------------------------------------------------------------------------------

    /// Whether this member leads, by its own knowledge.
    pub fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// Where this member stands.
    pub fn status(&self) -> Status {
        let raft = &self.node.raft;
        let window = self.node.store();
        Status {
            id: self.config.id,
            role: Role::from_raft(raft.state),
            term: raft.term,
            leader: self.leader(),
            commit: raft.raft_log.committed,
            applied: raft.raft_log.applied(),
            persisted: raft.raft_log.persisted,
            first_index: window.first(),
            last_index: raft.raft_log.last_index(),
            window_bytes: window.data_bytes(),
            committed_in_term: raft.commit_to_current_term(),
        }
    }

    /// The membership in force.
    pub fn membership(&self) -> Membership {
        Membership::from_raft(self.node.raft.prs().conf().to_conf_state())
    }

    /// Whether this member has no membership yet: it waits to be fed by a leader.
    pub fn is_joining(&self) -> bool {
        let raft = &self.node.raft;
        raft.prs().iter().next().is_none()
    }

    /// Whether a membership change has not been applied yet, or a joint membership not been left. It may
    /// say so for a moment after an election although there is none.
    pub fn is_membership_changing(&self) -> bool {
        self.node.raft.has_pending_conf() || self.membership().is_joint()
    }

    /// The number of the oldest batch that was handed out to be persisted and has not been reported. A
    /// snapshot that is being installed is none.
    pub fn oldest_write(&self) -> Option<u64> {
        let oldest = self.outstanding.front();
        oldest
            .filter(|oldest| !oldest.installs)
            .map(|oldest| oldest.number)
    }

    /// Whether leadership is being handed over.
    pub fn is_transferring(&self) -> bool {
        self.node.raft.lead_transferee.is_some()
    }

    /// What the leader knows of every member, ascending; empty on others.
    pub fn peers(&self) -> Vec<PeerStatus> {
        if !self.is_leader() {
            return Vec::new();
        }
        let membership = self.membership();
        let progress = self.node.raft.prs().iter();
        let mut peers: Vec<PeerStatus> = progress
            .map(|(id, progress)| {
                PeerStatus::new(*id, progress, &membership, *id == self.config.id)
            })
            .collect();
        peers.sort_unstable_by_key(|peer| peer.id);
        peers
    }

    // ----- inside -------------------------------------------------------------------------------

    fn last_index(&self) -> u64 {
        self.node.raft.raft_log.last_index()
    }

    fn leader(&self) -> Option<u64> {
        let leader = self.node.raft.leader_id;
        (leader != raft::INVALID_ID).then_some(leader)
    }

    fn check_may_propose(&self) -> Result<(), ProposeError> {
        let raft = &self.node.raft;
        if !self.is_leader() {
            return Err(ProposeError::NotLeader {
                leader: self.leader(),
            });
        }
        if raft.lead_transferee.is_some() {
            return Err(ProposeError::Transferring);
        }
        if raft.prs().get(self.config.id).is_none() {
            return Err(ProposeError::Removed);
        }
        Ok(())
    }

    fn append(&mut self, entries: Vec<eraftpb::Entry>, bytes: u64) -> Result<(), ProposeError> {
        self.check_may_propose()?;
        let (term, max) = (self.node.raft.term, self.config.max_uncommitted_bytes);
        if !self.uncommitted.admits(term, bytes, max) {
            return Err(ProposeError::Full);
        }
        let proposal = eraftpb::Message {
            msg_type: MessageType::MsgPropose as i32,
            from: self.config.id,
            entries,
            ..eraftpb::Message::default()
        };
        // Everything else that makes raft drop a proposal has been ruled out above.
        self.node
            .raft
            .step(proposal)
            .map_err(|_| ProposeError::Full)?;
        self.uncommitted.proposed(self.last_index(), bytes);
        Ok(())
    }

    fn check_change(&self, change: &eraftpb::ConfChangeV2) -> Result<(), MembershipError> {
        let mut changer = Changer::new(self.node.raft.prs());
        let outcome = if change.leave_joint() {
            changer.leave_joint()
        } else if let Some(auto_leave) = change.enter_joint() {
            changer.enter_joint(auto_leave, &change.changes)
        } else {
            changer.simple(&change.changes)
        };
        match outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(MembershipError::Invalid(error.to_string())),
        }
    }

    /// Moves new entries into the window. A commit index alone is not worth a write: it goes along with
    /// the next batch, and a leader tells it again after a restart.
    fn batch_to_persist(&mut self, raw: &mut raft::Ready) -> Option<LogBatch> {
        let must_write = raw.must_sync();
        let entries = self.complete_entries(&raw.take_entries());
        self.node.mut_store().append(&entries);
        must_write.then_some(LogBatch {
            hard_state: self.hard_state,
            entries,
        })
    }

    /// Entries that are in the log.
    fn complete_entries(&self, entries: &[eraftpb::Entry]) -> Vec<LogEntry> {
        let complete = |entry| {
            let data = self.data(entry);
            window::from_raft(entry, data.expect("the commands of an entry stay with it"))
        };
        entries.iter().map(complete).collect()
    }

    /// Messages as they travel. One with entries that have been replaced since is of an earlier term, and as good as lost.
    fn complete_messages(&self, messages: Vec<eraftpb::Message>) -> Vec<Message> {
        let mut complete = Vec::with_capacity(messages.len());
        for message in messages {
            let mut next = WireMessage::from_raft(message, |entry| self.data(entry));
            while let Some(mut wire) = next {
                // Raft bounds what it sees.
                next = wire.split_off(self.config.max_message_bytes);
                complete.push(Message::new(wire));
            }
        }
        complete
    }

    /// Gives the messages that wait for nothing any more, in order: those in front that are `durable`.
    fn release(&mut self, durable: impl Fn(&Outstanding) -> bool) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut last = None;
        while self.outstanding.front().is_some_and(&durable) {
            let released = self.outstanding.pop_front().expect("checked above");
            last = Some(released.number);
            messages.extend(released.messages);
        }
        if let Some(number) = last {
            self.node.on_persist_ready(number);
        }
        messages
    }

    fn own_reads(&self, raw: &mut raft::Ready) -> Vec<ReadIndex> {
        let own = self.config.id.to_be_bytes();
        let states = raw.take_read_states().into_iter();
        let reads = states.filter_map(|state| {
            let context = state.request_ctx.strip_prefix(&own)?;
            Some(ReadIndex {
                context: u64::from_be_bytes(context.try_into().ok()?),
                index: state.index,
            })
        });
        reads.collect()
    }

    /// Raft draws a new election timeout at every change of role from the operating system's entropy;
    /// this replaces it by one that depends on the inputs alone.
    fn pin_election_timeout(&mut self) {
        let term = self.node.raft.term;
        let key = self.config.seed ^ mix(self.config.id ^ mix(term ^ mix(self.elections)));
        let spread = self.config.election_tick as u64;
        let timeout = self.config.election_tick + (mix(key) % spread) as usize;
        self.node.raft.set_randomized_election_timeout(timeout);
    }
}

/// The finalizer of splitmix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn from_raft_hard_state(state: &eraftpb::HardState) -> HardState {
    HardState {
        term: state.term,
        vote: state.vote,
        commit: state.commit,
    }
}
