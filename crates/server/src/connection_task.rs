//! The task of one client connection: moves bytes between the socket and the protocol's state machine.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use quenda_frontend::{CloseReason, Observed, Pause, Proposals, Received, Stats};
use tokio::io::Interest;
use tokio::runtime::Handle as Runtime;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use tracing::{debug, info};

use crate::calm::Calm;
use crate::four_letter::{Word, recognise};
use crate::held_input;
use crate::limits::{CLOSE_PATIENCE, INBOX_BYTES, READ_BYTES, WORD_PATIENCE};
use crate::lingering::linger;
use crate::load::Requester;
use crate::node_source::NodeSource;
use crate::registry::{Admitted, Handle};
use crate::shared::Shared;
use crate::transport::Transport;

/// Where the connections of clients are served.
#[derive(Clone)]
pub struct Quarters {
    /// Their tasks.
    pub tasks: TaskTracker,
    /// The runtime of those that have begun to speak the protocol.
    pub runtime: Runtime,
}

/// Answers the four-letter word with which a connection begins, here, or moves it to the quarters of clients, where it is
/// served until it ends: words must not wait behind what clients keep their threads busy with. Either way it is then taken
/// out of the registry.
pub async fn serve(
    stream: impl Transport,
    handle: Arc<Handle>,
    admitted: Admitted,
    shared: Arc<Shared>,
    quarters: Quarters,
) {
    let departure = Departure {
        handle: Arc::clone(&handle),
        shared: Arc::clone(&shared),
        admitted: Some(admitted),
    };
    let mut task = ConnectionTask {
        stream,
        handle,
        shared,
        input: BytesMut::new(),
        output: BytesMut::new(),
        proposals: Proposals::default(),
        paused: false,
        stall: None,
        ahead: READ_BYTES,
        ended: false,
        counted: Stats::default(),
        touched_ms: 0,
        observed: None,
        departure,
    };
    let deadline =
        Instant::now() + Duration::from_millis(task.shared.config.sessionless_timeout_ms);
    match task.greet(deadline).await {
        Ok(None) => task.move_on(quarters, deadline),
        Ok(Some(reason)) => task.finish(Ok(reason)),
        Err(error) => task.finish(Err(error)),
    }
}

/// How often clients were cut off for a fault of theirs.
static CUT_OFF: Mutex<Calm> = Mutex::new(Calm::new());

/// What has to be put right at the client is said aloud.
fn report_close(peer: SocketAddr, reason: &CloseReason, user: Option<&str>) {
    let is_fault = matches!(
        reason,
        CloseReason::Frame(_)
            | CloseReason::ClientAhead { .. }
            | CloseReason::OutputFull
            | CloseReason::SessionThrottled
            | CloseReason::LargeRequest(_)
            | CloseReason::AuthFailed
            | CloseReason::AuthRequired
            | CloseReason::OtherEnsemble
            | CloseReason::Sasl(_)
    );
    if !is_fault {
        debug!(%peer, %reason, "connection closed");
    } else if let Some(count) = CUT_OFF.lock().turn(std::time::Instant::now()) {
        match user {
            Some(user) => info!(count, %peer, %reason, ?user, "clients cut off"),
            None => info!(count, %peer, %reason, "clients cut off"),
        }
    }
}

/// Takes a connection out of the registry, also when its task panics.
struct Departure {
    handle: Arc<Handle>,
    shared: Arc<Shared>,
    /// `None` once it is out.
    admitted: Option<Admitted>,
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Departure {
    /// To be called before the client can see the end: who sees it is not counted any more.
    fn leave(&mut self) {
        let Some(admitted) = self.admitted.take() else {
            return;
        };
        let mut connection = self.handle.connection.lock();
        if let Some(sessions) = &self.shared.local_sessions {
            connection.leave_local(sessions);
        }
        connection.disconnected(&self.shared.watches);
        let session = connection.session();
        // Nothing is added to a closed connection, so this is its last part of the budget.
        connection.take_output();
        self.shared.output.forget(&self.handle);
        self.shared.throttle.note(&self.handle, &connection);
        drop(connection);
        self.shared.throttle.forget(&self.handle);
        self.shared.registry.remove(self.handle.id, session);
        drop(admitted);
    }
}

struct ConnectionTask<S> {
    stream: S,
    handle: Arc<Handle>,
    shared: Arc<Shared>,
    /// Bytes that came and were not taken yet. Empty, and without memory, on an idle connection.
    input: BytesMut,
    /// Bytes on their way to the socket.
    output: BytesMut,
    proposals: Proposals,
    /// The state machine takes no frames now; what comes is read ahead, up to a bound.
    paused: bool,
    /// When to look again whether requests are taken, while too many wait over all connections.
    stall: Option<Instant>,
    /// How much longer `input` may become while nothing is taken from it.
    ahead: usize,
    /// The client will send no more; what it sent before is served first.
    ended: bool,
    /// What [`crate::traffic::Traffic`] knows of this connection.
    counted: Stats,
    touched_ms: u64,
    /// Notes that the load monitor is to be given once no lock is held.
    observed: Option<Box<Observed>>,
    departure: Departure,
}

impl<S: Transport> ConnectionTask<S> {
    /// Reads until it is clear what the client wants. Answers a word; the reason, if the connection is to be closed.
    async fn greet(&mut self, deadline: Instant) -> io::Result<Option<CloseReason>> {
        loop {
            self.wait_until(deadline, true).await?;
            let reason = self.handle.connection.lock().close_reason().cloned();
            if reason.is_some() {
                return Ok(reason);
            }
            self.stream.try_flush()?;
            if !self.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match self.first_bytes() {
                FirstBytes::Incomplete => {}
                FirstBytes::Word(word) => return self.answer_word(word).await.map(Some),
                FirstBytes::Frame => return Ok(None),
            }
        }
    }

    /// Is served by the threads of clients from now on.
    fn move_on(self, quarters: Quarters, deadline: Instant) {
        let peer = self.handle.peer;
        let stream = match self.stream.move_to(&quarters.runtime) {
            Ok(stream) => stream,
            Err(error) => {
                debug!(%peer, %error, "the connection cannot be moved");
                return;
            }
        };
        let mut task = ConnectionTask { stream, ..self };
        let serving = async move {
            let outcome = task.run(deadline).await;
            task.finish(outcome);
        };
        quarters.tasks.spawn_on(serving, &quarters.runtime);
    }

    /// The connection has ended.
    fn finish(mut self, outcome: io::Result<CloseReason>) {
        match outcome {
            Ok(reason) => {
                self.count_refused(&reason);
                if reason == CloseReason::NotServing {
                    self.shared.metrics.clients.not_served.add(1);
                }
                let connection = self.handle.connection.lock();
                if reason == CloseReason::ClientClosed && connection.is_local() {
                    // Of the others the log tells.
                    self.shared.metrics.clients.closed.add(1);
                }
                report_close(self.handle.peer, &reason, connection.refused_user());
            }
            Err(error) => {
                self.count_lost(&error);
                debug!(peer = %self.handle.peer, %error, "connection lost");
            }
        }
        self.count();
    }

    /// Serves what has come and what comes, until the end. By `deadline` the client must have said what session it wants.
    async fn run(&mut self, deadline: Instant) -> io::Result<CloseReason> {
        let mut fresh = true;
        loop {
            if let Some(reason) = self.serve_until_idle().await? {
                self.end(&reason).await;
                return Ok(reason);
            }
            if fresh && !self.handle.connection.lock().is_fresh() {
                fresh = false;
            }
            let held_back = self.paused || self.has_unsent();
            if !held_back {
                self.ahead = READ_BYTES;
            }
            let read = !held_back || (self.ahead > 0 && !self.ended);
            if fresh {
                self.wait_until(deadline, read).await?;
            } else if let Some(stall) = self.stall {
                // In time or not: the bounds are looked at again.
                if let Ok(ready) = tokio::time::timeout_at(stall, self.wait(read)).await {
                    ready?;
                }
            } else {
                self.wait(read).await?;
            }
            self.stream.try_flush()?;
            if read {
                let before = self.input.len();
                self.ended = !self.fill()?;
                if self.ended && !held_back {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                if held_back {
                    self.note_unserved(self.input.len() - before);
                }
            }
            if self.is_stale() {
                return self.drop_stale();
            }
        }
    }

    /// As [`Self::wait`], for a client that has no session yet.
    async fn wait_until(&self, deadline: Instant, read: bool) -> io::Result<()> {
        // One that always has something to say, and never a request, must not outrun the deadline.
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match tokio::time::timeout_at(deadline, self.wait(read)).await {
            Ok(ready) => ready,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Serves what has come and writes what comes of it, until more bytes, room in the socket or a wake-up
    /// is needed; the reason, if the connection is to be closed.
    async fn serve_until_idle(&mut self) -> io::Result<Option<CloseReason>> {
        loop {
            if let Some(reason) = self.serve_input() {
                return Ok(Some(reason));
            }
            self.flush()?;
            let held_back = self.output.is_empty() && self.handle.connection.lock().must_receive();
            if !held_back {
                return Ok(None);
            }
            // Another connection's turn.
            tokio::task::yield_now().await;
        }
    }

    /// Waits until there is something to do: bytes to read (if wanted), room to write, a wake-up.
    async fn wait(&self, read: bool) -> io::Result<()> {
        let interest = match (read, self.has_unsent()) {
            (true, false) => Interest::READABLE,
            (true, true) => Interest::READABLE | Interest::WRITABLE,
            (false, true) => Interest::WRITABLE,
            (false, false) => {
                self.handle.wake.notified().await;
                return Ok(());
            }
        };
        tokio::select! {
            biased;
            () = self.handle.wake.notified() => Ok(()),
            ready = self.stream.ready(interest) => ready,
        }
    }

    /// Whether output waits for room in the socket.
    fn has_unsent(&self) -> bool {
        !self.output.is_empty() || self.stream.has_unsent()
    }

    /// Reads what has come, up to a bound; false at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        self.input.reserve(READ_BYTES);
        match self.stream.try_read_buf(&mut self.input) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.shared.metrics.requests.received(count);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Bytes came while nothing is taken: their client lives, also when its output or a write holds it
    /// back longer than its session may be silent.
    fn note_unserved(&mut self, bytes: usize) {
        self.ahead = self.ahead.saturating_sub(bytes);
        if bytes > 0 {
            let now_ms = self.shared.clock.now_ms();
            self.handle.connection.lock().heard(now_ms);
        }
    }

    fn first_bytes(&self) -> FirstBytes {
        match self.input.first_chunk::<4>() {
            None => FirstBytes::Incomplete,
            Some(first) => match recognise(first) {
                Some(word) if self.input.len() < 4 + self.shared.words.argument_len(word) => {
                    FirstBytes::Incomplete
                }
                Some(word) => FirstBytes::Word(word),
                None => FirstBytes::Frame,
            },
        }
    }

    /// Lets the state machine take what has come; the reason, if the connection is to be closed.
    fn serve_input(&mut self) -> Option<CloseReason> {
        let in_flight;
        let turn;
        let is_held_back;
        let era;
        let mut session = None;
        let shared = Arc::clone(&self.shared);
        let handle = Arc::clone(&self.handle);
        let received = {
            let tree = shared.tree.read();
            era = shared.era();
            let mut connection = handle.connection.lock();
            let mut world = shared.world(&tree);
            turn = shared.throttle.begin_turn(&handle, &mut world.gates);
            let received = connection.receive(&mut self.input, &world, &mut self.proposals);
            if self.output.is_empty() {
                connection.swap_output(&mut self.output);
                self.shared.output.note(&self.handle, &mut connection);
            }
            shared.throttle.note(&handle, &connection);
            self.note(&connection);
            if connection.observed_is_due(world.now_ms) {
                let sampling = shared.load.sampling();
                self.observed = connection.take_observed(sampling, world.now_ms);
                session = connection.session();
            }
            in_flight = connection.queued() > 0;
            is_held_back = connection.awaits_turn();
            if shared.local_sessions.is_some() {
                self.settle_local(era);
            }
            received
        };
        shared.throttle.end_turn(&handle, turn, is_held_back);
        if let Some(observed) = self.observed.take() {
            shared.throttle.count(&observed);
            let client = handle.peer;
            shared.load.take(Requester { client, session }, &observed);
        }
        if self.input.is_empty() {
            self.input = BytesMut::new();
        } else if is_held_back {
            held_input::fit(&mut self.input);
        }
        if !self.proposals.refused.is_empty() {
            let refused = std::mem::take(&mut self.proposals.refused);
            if let Some(audit) = &shared.audit {
                audit.refused(&refused);
            }
        }
        self.submit(era);
        if received != Received::Paused(Pause::Throttled) {
            self.stall = None;
        }
        self.paused = match received {
            // The end of what is in flight wakes the task again.
            Received::NeedMore => in_flight && self.shared.inbox.is_above(INBOX_BYTES),
            Received::Paused(Pause::Throttled) => {
                self.begin_stall();
                true
            }
            Received::Paused(_) => true,
            Received::Close(reason) => return Some(reason),
        };
        None
    }

    /// With this connection locked: closes the one that its local session had before, then hands over what this one asks
    /// for. So whoever closes a connection finds that all it had to say is said, and by those before it. A connection
    /// waits here only for one whose handshake was earlier: nobody waits in a circle.
    fn settle_local(&mut self, era: u64) {
        let before = self.proposals.displaced.take();
        if let Some(before) = before.and_then(|before| self.shared.registry.get(before)) {
            before.close(CloseReason::SessionMoved);
        }
        self.submit(era);
    }

    /// Hands what the connection asks for to the core thread.
    fn submit(&mut self, era: u64) {
        if self.proposals.is_empty() {
            return;
        }
        let commands = std::mem::take(&mut self.proposals.commands);
        let count = std::mem::take(&mut self.proposals.count);
        let barriers = std::mem::take(&mut self.proposals.barriers);
        self.shared.metrics.requests.proposed(count);
        self.shared
            .inbox
            .submit(era, &commands, self.handle.id.0, barriers);
    }

    /// Too many requests wait over all connections.
    fn begin_stall(&mut self) {
        let now = Instant::now();
        if self.stall.is_none_or(|stall| stall <= now) {
            self.shared.throttle.waits.add(1);
            self.stall = Some(now + self.shared.throttle.settings().stall_time);
        }
    }

    /// Whether nobody waits any more for the requests that are held back.
    fn is_stale(&self) -> bool {
        let settings = self.shared.throttle.settings();
        if self.stall.is_none() || !settings.drop_stale {
            return false;
        }
        let is_gone = settings.stale_by_connection && self.ended;
        is_gone || (settings.stale_by_latency && self.has_waited_too_long())
    }

    fn has_waited_too_long(&self) -> bool {
        let connection = self.handle.connection.lock();
        let held_ms = connection.held_ms(self.shared.clock.now_ms());
        held_ms > u64::from(connection.timeout_ms().unsigned_abs())
    }

    /// Drops them, and the connection with them.
    fn drop_stale(&self) -> io::Result<CloseReason> {
        let mut rest = &self.input[..];
        let mut dropped = 0;
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(behind) = behind.get(length..) else {
                break;
            };
            rest = behind;
            dropped += 1;
        }
        self.shared.throttle.stale_dropped.add(dropped);
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Reports counters and signs of life.
    fn note(&mut self, connection: &quenda_frontend::Connection) {
        let touched_ms = connection.last_touch_ms();
        if touched_ms != self.touched_ms
            && let Some(session) = connection.session()
        {
            self.touched_ms = touched_ms;
            if !connection.is_local() {
                self.shared.inbox.touched(session);
            }
        }
        let stats = connection.stats();
        if *stats != self.counted {
            self.shared.traffic.add(&self.counted, stats);
            self.counted = stats.clone();
        }
    }

    /// Its client was turned away for a bound.
    fn count_refused(&self, reason: &CloseReason) {
        match reason {
            CloseReason::LargeRequest(_) => self.shared.throttle.large_refused.add(1),
            CloseReason::SessionThrottled => self.shared.metrics.clients.rejected.add(1),
            _ => {}
        }
    }

    /// Its client has gone without a word, or never had one to say.
    fn count_lost(&self, error: &io::Error) {
        let clients = &self.shared.metrics.clients;
        match error.kind() {
            io::ErrorKind::TimedOut => clients.sessionless.add(1),
            _ => clients.dropped.add(1),
        }
    }

    fn count(&mut self) {
        let handle = Arc::clone(&self.handle);
        let mut connection = handle.connection.lock();
        self.note(&connection);
        let now_ms = self.shared.clock.now_ms();
        let observed = connection.take_observed(self.shared.load.sampling(), now_ms);
        let session = connection.session();
        drop(connection);
        let client = handle.peer;
        if let Some(observed) = observed {
            self.shared.throttle.count(&observed);
            self.shared
                .load
                .take(Requester { client, session }, &observed);
        }
    }

    /// Writes until everything is out or the socket is full.
    fn flush(&mut self) -> io::Result<()> {
        self.stream.try_flush()?;
        loop {
            if self.output.is_empty() {
                let mut connection = self.handle.connection.lock();
                if connection.output_len() == 0 {
                    drop(connection);
                    self.output = BytesMut::new();
                    return Ok(());
                }
                connection.swap_output(&mut self.output);
                self.shared.output.note(&self.handle, &mut connection);
            }
            match self.stream.try_write(&self.output) {
                Ok(count) => self.output.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Lets the client see its last output and the end. When the member ends its service all are sent away at
    /// once, and nobody is waited for.
    async fn end(&mut self, reason: &CloseReason) {
        let all_at_once = matches!(
            reason,
            CloseReason::Member | CloseReason::NotServing | CloseReason::Restored
        );
        if self.drain().await && !all_at_once {
            linger(&mut self.stream).await;
        }
    }

    /// Sends the last output of a connection that is to be closed; whether the client has taken it soon.
    async fn drain(&mut self) -> bool {
        let rest = self.handle.connection.lock().take_output();
        self.output.unsplit(rest);
        let sent = timeout(CLOSE_PATIENCE, async {
            self.stream.write_all(&self.output).await?;
            self.departure.leave();
            self.stream.shutdown().await
        });
        let taken = matches!(sent.await, Ok(Ok(())));
        if !taken {
            debug!(peer = %self.handle.peer, "the client did not take its last replies");
        }
        taken
    }

    async fn answer_word(&mut self, word: Word) -> io::Result<CloseReason> {
        debug!(peer = %self.handle.peer, word = word.name(), "four-letter word");
        self.handle.connection.lock().count_word();
        self.count();
        let argument = self.input[4..4 + self.shared.words.argument_len(word)].to_vec();
        let shared = Arc::clone(&self.shared);
        let peer = self.handle.peer.ip();
        let make = move || make_answer(shared, word, argument, peer);
        let (listing, answer);
        let answer = if word.is_listing() {
            let shared = Arc::clone(&self.shared);
            let made = shared.listings.get(word, make);
            listing = timeout(WORD_PATIENCE, made).await??;
            listing.text()
        } else {
            answer = make().await?;
            &answer
        };
        timeout(WORD_PATIENCE, self.stream.write_all(answer.as_bytes())).await??;
        self.handle
            .connection
            .lock()
            .count_word_answer(answer.len());
        self.count();
        self.departure.leave();
        timeout(WORD_PATIENCE, self.stream.shutdown()).await??;
        Ok(CloseReason::ClientClosed)
    }
}

/// Makes the answer aside: some words walk over all connections or ask other threads.
async fn make_answer(
    shared: Arc<Shared>,
    word: Word,
    argument: Vec<u8>,
    peer: IpAddr,
) -> io::Result<String> {
    let answer = tokio::task::spawn_blocking(move || {
        let source = NodeSource::new(&shared).asked_by(peer);
        shared.words.answer(word, &argument, &source)
    });
    Ok(answer.await?)
}

enum FirstBytes {
    /// Fewer than can be told apart.
    Incomplete,
    /// A four-letter word.
    Word(Word),
    /// The length of a frame.
    Frame,
}

/// Ends the mark of a connection and wakes its task.
pub fn wake(handle: &Handle) {
    handle.marked.store(false, Ordering::Relaxed);
    handle.wake.notify_one();
}
