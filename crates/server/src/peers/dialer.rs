//! Keeps a connection to one peer: dials it, by name, until it is there, and again when it is lost.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::complaints::About as Subject;
use super::context::Context;
use super::handshake::{Answer, Channel, HandshakeError, Hello, Verdict};
use super::identity::About;
use super::resolve::resolve_all;
use super::roster::{Direction, NoPlace};
use super::wire::Wire;
use super::{secure, socket};
use crate::limits::{
    IMAGE_PATIENCE, PEER_DIAL_PAUSE_MAX, PEER_HANDSHAKE_PATIENCE, PEER_UNACKNOWLEDGED_MAX,
};

/// Why a dial came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("{0}")]
    Resolve(std::io::Error),
    #[error("{0} cannot be reached: {1}")]
    Connect(SocketAddr, std::io::Error),
    #[error("{0}: {1}")]
    Handshake(SocketAddr, HandshakeError),
    /// TLS comes to nothing, in words.
    #[error("{0}: {1}")]
    Tls(SocketAddr, String),
    #[error("{0}: {1}")]
    Refused(SocketAddr, String),
}

impl DialError {
    /// What is said once: without the address, of which a name may have many.
    fn gist(&self) -> String {
        match self {
            DialError::Resolve(error) | DialError::Connect(_, error) => error.kind().to_string(),
            DialError::Handshake(_, HandshakeError::Io(error)) => error.kind().to_string(),
            DialError::Handshake(_, error) => error.to_string(),
            DialError::Tls(_, reason) | DialError::Refused(_, reason) => reason.clone(),
        }
    }
}

/// Dials one peer.
#[derive(Debug)]
pub(super) struct Dialer {
    peer: u64,
    names: Vec<(String, u16)>,
    /// The addresses of the last dial, used when the names cannot be looked up.
    known: Vec<SocketAddr>,
}

impl Dialer {
    pub(super) fn new(peer: u64, names: Vec<(String, u16)>) -> Dialer {
        Dialer {
            peer,
            names,
            known: Vec::new(),
        }
    }

    /// Whom it dials.
    pub(super) fn peer(&self) -> u64 {
        self.peer
    }

    /// Keeps the connection until `cancel`.
    pub(super) async fn run(mut self, context: Arc<Context>, cancel: CancellationToken) {
        let here = context.roster.here(self.peer);
        let pause_min = context.links.dial_pause;
        let pause_max = PEER_DIAL_PAUSE_MAX.max(pause_min);
        let mut pause = pause_min;
        loop {
            let begun = Instant::now();
            let mut alone_until = begun;
            let dialed = tokio::select! {
                () = cancel.cancelled() => return,
                () = context.closing.cancelled() => return,
                dialed = self.dial(Channel::Messages, &context) => dialed,
            };
            match dialed {
                Ok((wire, about)) => {
                    self.serve(wire, about, &context, &cancel).await;
                    if begun.elapsed() > pause_max {
                        pause = pause_min;
                    }
                    alone_until = Instant::now() + context.links.reconnect_delay;
                }
                Err(error) => self.complain(&error, &context),
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = context.closing.cancelled() => return,
                () = sleep_until(begun + pause) => pause = (pause * 2).min(pause_max),
                () = here.notified() => pause = pause_min,
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = context.closing.cancelled() => return,
                () = sleep_until(alone_until) => {}
            }
        }
    }

    async fn serve(&self, wire: Wire, about: About, context: &Context, cancel: &CancellationToken) {
        let token = cancel.child_token();
        match context
            .roster
            .enter(self.peer, Direction::Dialed, about, token)
        {
            Ok(place) => {
                context.complaints.settle(Subject::Dialed(self.peer));
                context.serve(wire, place).await;
            }
            Err(NoPlace::TooMany) => debug!(peer = self.peer, "no place for a connection"),
            Err(NoPlace::OlderProcess) => {
                let reason = "a process that was started later is connected as that member";
                if context
                    .complaints
                    .is_news(Subject::Dialed(self.peer), reason)
                {
                    warn!(peer = self.peer, reason, "connection to the peer closed");
                }
            }
        }
    }

    fn complain(&self, error: &DialError, context: &Context) {
        let subject = Subject::Dialed(self.peer);
        if !context.complaints.is_news(subject, &error.gist()) {
            return;
        }
        match error {
            DialError::Refused(..) => {
                warn!(peer = self.peer, reason = %error, "the peer does not belong to this member");
            }
            DialError::Tls(..) => {
                warn!(peer = self.peer, reason = %error, "no TLS with the peer, which is not connected");
            }
            _ => info!(peer = self.peer, reason = %error, "the peer is not connected"),
        }
    }

    /// Looks the peer's names up and tries its addresses one after the other: an open connection on which both
    /// sides have agreed.
    ///
    /// # Errors
    /// Why no address would do. What a peer said goes before what the network said.
    pub(super) async fn dial(
        &mut self,
        channel: Channel,
        context: &Context,
    ) -> Result<(Wire, About), DialError> {
        match resolve_all(&context.resolver, &self.names).await {
            Ok(addresses) => self.known = addresses,
            Err(error) if self.known.is_empty() => return Err(DialError::Resolve(error)),
            Err(error) => {
                debug!(peer = self.peer, %error, "the addresses of the last dial are used")
            }
        }
        let mut worst = None;
        // Nobody lives at the address that stands for all of a machine's own.
        let elsewhere = self
            .known
            .iter()
            .filter(|known| !known.ip().is_unspecified());
        for address in elsewhere {
            match self.try_address(*address, channel, context).await {
                Ok(connected) => return Ok(connected),
                Err(error) => {
                    if !matches!(worst, Some(DialError::Refused(..) | DialError::Tls(..))) {
                        worst = Some(error);
                    }
                }
            }
        }
        let nothing = std::io::Error::new(
            ErrorKind::NotFound,
            "its server line names no address that leads to it",
        );
        Err(worst.unwrap_or(DialError::Resolve(nothing)))
    }

    async fn try_address(
        &self,
        address: SocketAddr,
        channel: Channel,
        context: &Context,
    ) -> Result<(Wire, About), DialError> {
        let patience = context.links.dial_patience(self.known.len());
        let connecting = timeout(patience, TcpStream::connect(address));
        let connected = connecting
            .await
            .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        let stream = connected.map_err(|error| DialError::Connect(address, error))?;
        if stream.local_addr().is_ok_and(|own| own == address) {
            // A port of the range from which outgoing connections get theirs, with nobody behind it.
            let error = ErrorKind::ConnectionRefused.into();
            return Err(DialError::Connect(address, error));
        }
        let patience = match channel {
            Channel::Messages => PEER_UNACKNOWLEDGED_MAX,
            Channel::Image => IMAGE_PATIENCE,
        };
        if let Err(error) = socket::prepare(&stream, patience) {
            debug!(peer = self.peer, %error, "socket options not set");
        }
        let hosts: Vec<String> = self.names.iter().map(|(host, _)| host.clone()).collect();
        let secured = secure::dial(stream, &hosts, address.ip(), context).await;
        let mut wire = secured
            .map_err(|refusal| DialError::Tls(address, secure::explain_dialed(&refusal, &hosts)))?;
        let shaking = self.shake(&mut wire, channel, context);
        let answer = timeout(PEER_HANDSHAKE_PATIENCE, shaking)
            .await
            .unwrap_or_else(|_| Err(std::io::Error::from(ErrorKind::TimedOut).into()))
            .map_err(|error| of_handshake(address, error))?;
        let verdict = answer.judge(&context.identity, self.peer);
        if verdict == Verdict::Accepted {
            return Ok((wire, answer.about));
        }
        let reason = answer.explain(verdict, &context.identity.about());
        Err(DialError::Refused(address, reason))
    }

    async fn shake(
        &self,
        wire: &mut Wire,
        channel: Channel,
        context: &Context,
    ) -> Result<Answer, HandshakeError> {
        let hello = Hello {
            channel,
            from: context.identity.id(),
            to: self.peer,
            about: context.identity.about(),
        };
        wire.write_all(&hello.encode()).await?;
        wire.flush().await?;
        Answer::read(wire).await
    }
}

/// In TLS 1.3 the dialer learns only here that its certificate is refused.
fn of_handshake(address: SocketAddr, error: HandshakeError) -> DialError {
    match &error {
        HandshakeError::Tls => DialError::Tls(
            address,
            "it takes TLS alone: set sslQuorum=true here, with the files of ssl.quorum.*"
                .to_owned(),
        ),
        HandshakeError::Io(cause) => match secure::explain_broken(cause) {
            Some(reason) => DialError::Tls(address, reason),
            None => DialError::Handshake(address, error),
        },
        _ => DialError::Handshake(address, error),
    }
}
