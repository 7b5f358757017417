//! The state machine of one client connection.

use core::net::IpAddr;
use std::sync::Arc;

use bytes::{Buf, BufMut, BytesMut};
use quenda_proto::acl::perms::READ;
use quenda_proto::frame::{self, FrameError};
use quenda_proto::{ErrorCode, Op};
use quenda_tree::{AclId, Applied, Identity, Tree};

use crate::auth;
use crate::gates::Arrivals;
use crate::handshake::Handshaking;
use crate::local_sessions::LocalSessions;
use crate::observe::{Observed, Observer, Sampling};
use crate::pending::PendingQueue;
use crate::request::{Batch, meter};
use crate::sasl::{Exchange, SaslRefusal};
use crate::settings::Settings;
use crate::stats::Stats;
use crate::world::{ConnectionId, Proposals, Watches, World};

/// One client connection. The caller serialises all calls.
///
/// The life of a connection: `new` → [`receive`](Self::receive) whenever bytes have arrived and whenever
/// a [`Pause`] has ended → [`take_output`](Self::take_output) to the socket → at last
/// [`disconnected`](Self::disconnected).
#[derive(Debug)]
pub struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) member: u64,
    pub(crate) peer: IpAddr,
    pub(crate) settings: Arc<Settings>,
    pub(crate) phase: Phase,
    /// Only ever added to, so that a prefix of it is a snapshot.
    pub(crate) identities: Vec<Identity>,
    pub(crate) sasl: Exchange,
    /// Whom a client said to be that could not prove it.
    pub(crate) refused_user: Option<Box<str>>,
    pub(crate) session: i64,
    pub(crate) generation: u64,
    pub(crate) timeout_ms: i32,
    pub(crate) pending: PendingQueue,
    pub(crate) batch: Batch,
    /// The session is known to this member alone.
    pub(crate) local: bool,
    /// The handshake was in [`ServiceMode::ReadOnly`](crate::ServiceMode::ReadOnly): reads only.
    pub(crate) read_only: bool,
    /// Something of a local session may be on its way through the log, of which this connection hears no
    /// more.
    pub(crate) unsettled: bool,
    /// No further frame is taken: what is queued ends in the close of the connection.
    pub(crate) draining: bool,
    pub(crate) output: BytesMut,
    pub(crate) stats: Stats,
    pub(crate) observer: Observer,
    pub(crate) last_touch_ms: u64,
    /// Bytes appended since the output was taken, while `Limits::output_pause` was reached already.
    overrun: usize,
    paused: bool,
    /// The pause that bounds over all connections ask for.
    held: Option<Pause>,
    arrivals: Arrivals,
    close: Option<CloseReason>,
}

/// Where a connection is in its life. What ends it is in `draining` and `close`.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nothing accepted yet.
    Fresh,
    /// The session is being opened or resumed by the log.
    Handshaking(Handshaking),
    /// Requests are served.
    Established,
}

/// What the caller does after [`Connection::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// All whole frames were taken: read more from the socket.
    NeedMore,
    /// The input may hold whole frames that cannot be taken now: leave the socket unread and call
    /// `receive` again, also without new bytes, when the pause has ended.
    Paused(Pause),
    /// Send what [`Connection::take_output`] gives, then close the socket.
    Close(CloseReason),
}

/// Why a connection takes no further frames for now, and what ends that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The session is not confirmed; ends with [`Connection::complete`].
    Session,
    /// Too many requests wait; ends with a [`Connection::complete`] or [`Connection::complete_sync`].
    Requests,
    /// A `sync` or a linearizable read waits for its barrier; ends with [`Connection::complete_sync`].
    Sync,
    /// Too much output waits; ends when it was taken.
    Output,
    /// Too many requests wait over all connections, and this one has several; ends by itself: call `receive` again when
    /// its turn has come, see [`Turns`](crate::Turns).
    Busy,
    /// Too many requests wait over all connections; ends by itself: call `receive` again after a while.
    Throttled,
    /// The close of the session is under way; the input is dropped.
    Closing,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The client closed its session.
    #[error("the client closed its session")]
    ClientClosed,
    /// The member has no quorum.
    #[error("the member does not serve")]
    NotServing,
    /// The member has no quorum and serves reads only, which the client does not accept.
    #[error("the member serves reads only")]
    ReadOnly,
    /// The stream cannot be cut into frames.
    #[error("{0}")]
    Frame(FrameError),
    /// The first frame is not a ConnectRequest.
    #[error("the first frame is not a connect request")]
    Handshake,
    /// The client has seen a newer state than this member holds.
    #[error("the client has seen zxid {seen:#x}, this member holds {applied:#x}")]
    ClientAhead {
        /// What the client has seen.
        seen: i64,
        /// What this member has applied.
        applied: i64,
    },
    /// The session to resume is gone or the password is wrong; the reply says so.
    #[error("the session is gone or its password is wrong")]
    SessionRefused,
    /// A frame is shorter than a request header.
    #[error("a frame has no request header")]
    RequestHeader,
    /// An auth or sasl packet does not decode.
    #[error("an auth packet does not decode")]
    AuthPacket,
    /// Authentication failed; the reply says so.
    #[error("authentication failed")]
    AuthFailed,
    /// The client means another ensemble. Without a reply, so that it tries another server.
    #[error("the client means another ensemble")]
    OtherEnsemble,
    /// Authentication by SASL failed; the reply says so, but for [`SaslRefusal::Broken`].
    #[error("authentication by SASL failed: {0}")]
    Sasl(SaslRefusal),
    /// A request came before the authentication that the settings ask for; the reply says so.
    #[error("the client must authenticate first")]
    AuthRequired,
    /// No such operation, or not for clients; the reply says so.
    #[error("operation {0} is unknown")]
    UnknownOperation(i32),
    /// The session is served by a newer connection.
    #[error("the session has moved to another connection")]
    SessionMoved,
    /// The session expired.
    #[error("the session expired")]
    SessionExpired,
    /// Another state has taken the place of the one that the client knows.
    #[error("a snapshot was restored")]
    Restored,
    /// Too many sessions are being opened.
    #[error("too many sessions are being opened (connection_throttle_tokens)")]
    SessionThrottled,
    /// Too many bytes of large requests are in flight.
    #[error(
        "a request of {0} bytes, and too many bytes of large requests are in flight (largeRequestMaxBytes)"
    )]
    LargeRequest(usize),
    /// The client does not read: `Limits::output_max` was reached.
    #[error("the client does not read its output")]
    OutputFull,
    /// The member stops, or the fate of a write is unknown.
    #[error("the member closed the connection")]
    Member,
}

impl Connection {
    /// A connection that was just accepted. `now_ms` is monotonic.
    pub fn new(
        id: ConnectionId,
        member: u64,
        peer: IpAddr,
        now_ms: u64,
        settings: Arc<Settings>,
    ) -> Connection {
        Connection {
            id,
            member,
            peer,
            settings,
            phase: Phase::Fresh,
            identities: vec![auth::address_identity(peer)],
            sasl: Exchange::default(),
            refused_user: None,
            session: 0,
            generation: 0,
            timeout_ms: 0,
            pending: PendingQueue::default(),
            batch: Batch::default(),
            local: false,
            read_only: false,
            unsettled: false,
            draining: false,
            output: BytesMut::new(),
            stats: Stats::default(),
            observer: Observer::new(id.0),
            last_touch_ms: now_ms,
            overrun: 0,
            paused: false,
            held: None,
            arrivals: Arrivals::default(),
            close: None,
        }
    }

    /// Takes as many whole frames of `input` as the connection may take now; what is left in `input` has
    /// to be given again.
    ///
    /// Reads are answered at once from the tree if nothing is in flight; writes go to `proposals`; what
    /// must wait is queued. Call it with the tree locked for reading.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        world: &World<'_>,
        proposals: &mut Proposals,
    ) -> Received {
        self.serve_queue(world);
        self.batch = Batch {
            queued_before: self.pending.len(),
            large_before: self.pending.large_bytes(),
            ..Batch::default()
        };
        let was_throttled = self.held.take() == Some(Pause::Throttled);
        let mut taken = 0;
        let received = loop {
            if let Some(stop) = self.stop() {
                break stop;
            }
            if let Some(pause) = self.gate(&input[taken..], world) {
                self.held = Some(pause);
                break Received::Paused(pause);
            }
            if let Some(length) = self.too_large(&input[taken..], world) {
                self.close(CloseReason::LargeRequest(length));
                continue;
            }
            match frame::split(&input[taken..], self.settings.limits.frame_max) {
                Ok(Some((payload, _)))
                    if self.pending.waits_for_barrier() && !Self::may_follow_barrier(payload) =>
                {
                    break Received::Paused(Pause::Sync);
                }
                Ok(Some((payload, _))) => {
                    let length = 4 + payload.len();
                    taken += length;
                    let waited_ms = self.arrivals.take(length, world.now_ms);
                    self.batch.waited_ms = waited_ms;
                    if was_throttled {
                        self.observer.held_back(waited_ms, world.now_ms);
                    }
                    self.take_frame(payload, world, proposals);
                }
                Ok(None) => break Received::NeedMore,
                Err(error) => self.close(CloseReason::Frame(error)),
            }
        };
        match received {
            Received::Close(_) | Received::Paused(Pause::Closing) => input.clear(),
            Received::NeedMore | Received::Paused(_) => input.advance(taken),
        }
        self.batch = Batch::default();
        self.paused = matches!(received, Received::Paused(_));
        if self.held.is_some() {
            self.arrivals.wait(input.len(), world.now_ms);
        }
        received
    }

    fn stop(&self) -> Option<Received> {
        let limits = &self.settings.limits;
        if let Some(reason) = self.close {
            return Some(Received::Close(reason));
        }
        let pause = match self.phase {
            Phase::Handshaking(_) => Pause::Session,
            Phase::Fresh | Phase::Established if self.draining => Pause::Closing,
            Phase::Fresh | Phase::Established if self.pending.is_full(limits) => Pause::Requests,
            Phase::Fresh | Phase::Established
                if self.pending.waits_for_barrier() && !self.batch.has_barrier =>
            {
                Pause::Sync
            }
            Phase::Fresh | Phase::Established if self.output.len() >= limits.output_pause => {
                Pause::Output
            }
            Phase::Fresh | Phase::Established => return None,
        };
        Some(Received::Paused(pause))
    }

    /// What bounds over all connections ask for before the request is taken that comes next.
    fn gate(&self, input: &[u8], world: &World<'_>) -> Option<Pause> {
        let gates = &world.gates;
        let added = self.pending.len().saturating_sub(self.batch.queued_before);
        if added < gates.room.min(gates.busy_room) || !self.is_established() {
            return None;
        }
        // What is not whole could not be taken anyway.
        let (payload, rest) = frame::split(input, self.settings.limits.frame_max).ok()??;
        if added >= gates.room {
            return Some(Pause::Throttled);
        }
        let is_alone = rest.is_empty() || !Self::goes_to_log(payload);
        let passes = self.pending.is_empty() && is_alone;
        (!passes).then_some(Pause::Busy)
    }

    /// The length of the next frame, if it is a large request and there is no room for it.
    fn too_large(&self, input: &[u8], world: &World<'_>) -> Option<usize> {
        let threshold = self.settings.throttling.large_threshold;
        if threshold == usize::MAX {
            return None;
        }
        let length = i32::from_be_bytes(*input.first_chunk::<4>()?);
        let length = usize::try_from(length).ok()?;
        let added = self
            .pending
            .large_bytes()
            .saturating_sub(self.batch.large_before);
        (length > threshold && added + length > world.gates.large_room).then_some(length)
    }

    fn take_frame(&mut self, payload: &[u8], world: &World<'_>, proposals: &mut Proposals) {
        self.stats.received += 1;
        match self.phase {
            Phase::Fresh => self.take_handshake(payload, world, proposals),
            Phase::Established => self.take_request(payload, world, proposals),
            // `stop` holds the frames back.
            Phase::Handshaking(_) => {}
        }
    }

    /// The outcome of the oldest command of this connection, after the events of that command were
    /// delivered to everybody. Encodes the reply (`body` is the response record), then serves what is
    /// queued behind it up to the next write in flight, so call it before anything else is applied.
    ///
    /// Afterwards send the output and ask [`must_receive`](Self::must_receive).
    pub fn complete(&mut self, applied: &Applied, body: &[u8], world: &World<'_>) {
        if self.close.is_some() {
            return;
        }
        match std::mem::replace(&mut self.phase, Phase::Established) {
            Phase::Handshaking(handshaking) => {
                self.complete_handshake(&handshaking, applied, world);
            }
            Phase::Established if self.pending.pop_upgrade() => self.complete_upgrade(applied),
            Phase::Established => self.complete_write(applied, body, world),
            Phase::Fresh => self.phase = Phase::Fresh,
        }
        self.serve_queue(world);
    }

    /// The barrier of this connection was passed: the tree holds at least what was committed when the
    /// request that asked for it was received. Afterwards as for [`complete`](Self::complete).
    pub fn complete_sync(&mut self, world: &World<'_>) {
        if self.pending.pass_barrier() {
            self.serve_queue(world);
        }
    }

    /// Gives the event of a watch that fired to the client, unless its identities may not READ by `acl`.
    /// `frame` is the whole event frame. Call it while the change is not visible to reads. True if it was
    /// appended.
    pub fn deliver(&mut self, frame: &[u8], acl: AclId, tree: &Tree) -> bool {
        let readable = || self.settings.skip_acl || tree.allows(acl, READ, &self.identities);
        if self.close.is_some() || !readable() {
            return false;
        }
        let before = self.output.len();
        self.output.put_slice(frame);
        self.stats.sent += 1;
        self.observer.event(frame.len());
        self.bound_output(before);
        true
    }

    /// Closes a connection whose output grows although the client does not read it. One reply may be
    /// as long as it is: only what comes on top of a reached `Limits::output_pause` counts.
    pub(crate) fn bound_output(&mut self, before: usize) {
        let limits = &self.settings.limits;
        if before < limits.output_pause {
            return;
        }
        self.overrun += self.output.len().saturating_sub(before);
        if self.overrun > limits.output_max {
            self.overflow();
        }
    }

    pub(crate) fn overflow(&mut self) {
        self.close(CloseReason::OutputFull);
        self.output = BytesMut::new();
    }

    /// Why it is to be closed, if it is.
    pub fn close_reason(&self) -> Option<&CloseReason> {
        self.close.as_ref()
    }

    /// Ends the connection for a reason from outside: the session expired or was resumed elsewhere, the
    /// member stops. Requests that wait are forgotten; a write in flight may still take effect.
    pub fn close(&mut self, reason: CloseReason) {
        if self.close.is_none() {
            self.close = Some(reason);
            self.unsettled |= self.in_flight();
            self.pending.clear();
        }
    }

    /// Leaves a local session to whoever goes on with it. To be called in front of
    /// [`disconnected`](Self::disconnected) where there are such sessions.
    pub fn leave_local(&mut self, sessions: &dyn LocalSessions) {
        if self.local {
            let unsettled = self.unsettled || self.in_flight();
            sessions.left(self.session, self.id, self.last_touch_ms, unsettled);
        }
    }

    /// Removes the connection's watches. The last call.
    pub fn disconnected(&mut self, watches: &dyn Watches) {
        self.close(CloseReason::Member);
        watches.forget(self.id);
    }

    /// Bytes for the socket, in order.
    pub fn take_output(&mut self) -> BytesMut {
        self.overrun = 0;
        std::mem::take(&mut self.output)
    }

    /// As [`take_output`](Self::take_output), but leaves `buffer` (emptied) for the output to come and
    /// returns the bytes in it: saves an allocation where the caller keeps a buffer.
    pub fn swap_output(&mut self, buffer: &mut BytesMut) {
        buffer.clear();
        self.overrun = 0;
        std::mem::swap(&mut self.output, buffer);
    }

    /// Whether [`receive`](Self::receive) has to be called although no bytes arrived: a pause has ended,
    /// or queued requests were held back because of the output. Ask after each `complete` and after
    /// each time the output was taken.
    pub fn must_receive(&self) -> bool {
        ((self.paused && self.held.is_none()) || self.pending.is_ready()) && self.stop().is_none()
    }

    /// Number of bytes for the socket.
    pub fn output_len(&self) -> usize {
        self.output.len()
    }

    /// Set once the connection is to be closed, after its output was sent.
    pub fn wants_close(&self) -> Option<CloseReason> {
        self.close
    }

    /// The connection's id.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Address of the client.
    pub fn peer(&self) -> IpAddr {
        self.peer
    }

    /// The session, once it is confirmed.
    pub fn session(&self) -> Option<i64> {
        self.is_established().then_some(self.session)
    }

    /// Whether the session is confirmed.
    pub fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Established)
    }

    /// Whether nothing was accepted yet: the first bytes may still be a four-letter word.
    pub fn is_fresh(&self) -> bool {
        matches!(self.phase, Phase::Fresh)
    }

    /// Timeout of the session in milliseconds as negotiated on this connection; 0 before the handshake.
    pub fn timeout_ms(&self) -> i32 {
        self.timeout_ms
    }

    /// Monotonic time of the last frame that proves life of the session.
    pub fn last_touch_ms(&self) -> u64 {
        self.last_touch_ms
    }

    /// Requests that wait for an answer.
    pub fn queued(&self) -> usize {
        self.pending.len()
    }

    /// Those that wait for the log or the leader, or behind one that does. The others wait for their client.
    pub fn awaited(&self) -> usize {
        if self.pending.has_awaited() {
            self.pending.len()
        } else {
            0
        }
    }

    /// Whether [`Pause::Busy`] holds it back.
    pub fn awaits_turn(&self) -> bool {
        self.held == Some(Pause::Busy)
    }

    /// Bytes of large requests in flight.
    pub fn large_bytes(&self) -> usize {
        self.pending.large_bytes()
    }

    /// How long the oldest request has waited that is held back by a bound over all connections, ms.
    pub fn held_ms(&self, now_ms: u64) -> u64 {
        self.arrivals.oldest_ms(now_ms)
    }

    /// Whether a write or a barrier of this connection is under way.
    pub fn awaits_log(&self) -> bool {
        self.pending.has_awaited()
    }

    /// Whether the session is one that only this member knows: from a handshake in
    /// [`ServiceMode::ReadOnly`](crate::ServiceMode::ReadOnly), or because there are local sessions.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Whether such a session was silent for its timeout. `now_ms` is monotonic.
    pub fn is_local_expired(&self, now_ms: u64) -> bool {
        let silent_ms = now_ms.saturating_sub(self.last_touch_ms);
        self.local && silent_ms > u64::from(self.timeout_ms.unsigned_abs())
    }

    /// Whether something of this connection is on its way through the log or the leader: a handshake, a
    /// write, a barrier. Where the fate of such things is unknown the connection has to end.
    pub fn in_flight(&self) -> bool {
        matches!(self.phase, Phase::Handshaking(_)) || self.awaits_log()
    }

    /// Bytes came that cannot be taken yet: they prove life all the same. `now_ms` is monotonic.
    pub fn heard(&mut self, now_ms: u64) {
        self.last_touch_ms = now_ms;
    }

    /// The user, or the beginning of a long name, that a client whose authentication by SASL failed said to be. It may
    /// hold anything: escape it.
    pub fn refused_user(&self) -> Option<&str> {
        self.refused_user.as_deref()
    }

    /// Who the client is, its address first.
    pub fn identities(&self) -> &[Identity] {
        &self.identities
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether it is time to take what was noted of the requests. `now_ms` is monotonic.
    pub fn observed_is_due(&mut self, now_ms: u64) -> bool {
        self.observer.is_due(now_ms)
    }

    /// What was noted of the requests since the last call, if anything was; `sampling` is for those to come.
    pub fn take_observed(&mut self, sampling: Sampling, now_ms: u64) -> Option<Box<Observed>> {
        self.observer.take(sampling, now_ms)
    }

    /// A four-letter word came instead of a handshake.
    pub fn count_word(&mut self) {
        self.stats.received += 1;
    }

    /// The answer to a four-letter word was sent; each 2 KiB of it count as a packet, as in ZooKeeper.
    pub fn count_word_answer(&mut self, bytes: usize) {
        self.stats.sent += bytes.div_ceil(2048) as u64;
    }

    /// Starts the counters again (`crst`).
    pub fn reset_stats(&mut self) {
        self.stats.reset();
    }

    /// Appends a reply without a body, with the zxid of reads, and counts it.
    pub(crate) fn answer_error(
        &mut self,
        op: Op,
        xid: i32,
        error: ErrorCode,
        received_ms: u64,
        world: &World<'_>,
    ) {
        let zxid = world.tree.last_zxid();
        let before = self.output.len();
        frame::put_reply(&mut self.output, xid, zxid, error);
        self.stats
            .answered(op, xid, zxid, received_ms, world.now_ms);
        meter(world, op, received_ms, self.output.len() - before);
    }
}
