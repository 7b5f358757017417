//! The quorum port: who comes has to say who it is, soon, and is told what is wrong.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::complaints::About as Subject;
use super::context::Context;
use super::handshake::{Answer, Channel, HandshakeError, Hello, Verdict};
use super::image_server;
use super::roster::{Direction, NoPlace, Place};
use super::socket;
use crate::calm::Calm;
use crate::limits::{
    IMAGE_PATIENCE, PEER_HANDSHAKE_PATIENCE, PEER_HANDSHAKES_MAX, PEER_UNACKNOWLEDGED_MAX,
};

/// Pause after the system could give no connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Connections that have not said who they are; the oldest gives way to a new one.
#[derive(Debug, Default)]
struct Strangers {
    waiting: Mutex<VecDeque<CancellationToken>>,
}

impl Strangers {
    fn enter(&self) -> CancellationToken {
        let token = CancellationToken::new();
        let mut waiting = self.waiting.lock();
        waiting.retain(|token| !token.is_cancelled());
        if waiting.len() >= PEER_HANDSHAKES_MAX
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.cancel();
        }
        waiting.push_back(token.clone());
        token
    }
}

/// Accepts connections until `stop`.
pub(super) async fn accept(listener: TcpListener, context: Arc<Context>, stop: CancellationToken) {
    let strangers = Strangers::default();
    let mut failed = Calm::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                let token = strangers.enter();
                let context = Arc::clone(&context);
                let tasks = context.tasks.clone();
                tasks.spawn(async move { meet(stream, address, token, &context).await });
            }
            Err(error) => {
                if let Some(count) = failed.turn(Instant::now()) {
                    warn!(count, %error, "connections of peers could not be accepted");
                }
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// One connection from its first byte to its end.
async fn meet(
    mut stream: TcpStream,
    address: SocketAddr,
    stranger: CancellationToken,
    context: &Context,
) {
    let known = tokio::select! {
        () = stranger.cancelled() => None,
        () = context.closing.cancelled() => None,
        met = timeout(PEER_HANDSHAKE_PATIENCE, shake(&mut stream, address, context)) => met.ok().flatten(),
    };
    // Its place among the strangers is free again.
    stranger.cancel();
    match known {
        Some(Known::Messages(place)) => context.serve(stream, place).await,
        Some(Known::Image(peer)) => image_server::serve(stream, peer, context).await,
        None => debug!(%address, "no handshake"),
    }
}

/// Who has come, and for what.
enum Known {
    Messages(Place),
    Image(u64),
}

async fn shake(stream: &mut TcpStream, address: SocketAddr, context: &Context) -> Option<Known> {
    let hello = match Hello::read(stream).await {
        Ok(hello) => hello,
        Err(error) => {
            turn_away(stream, address, &error, context).await;
            return None;
        }
    };
    let mut verdict = hello.judge(&context.identity);
    let mut known = None;
    if verdict == Verdict::Accepted {
        match admit(stream, &hello, context) {
            Ok(met) => known = Some(met),
            Err(refusal) => verdict = refusal,
        }
    }
    let own = context.identity.about();
    if verdict == Verdict::Accepted {
        context.complaints.settle(Subject::Accepted(hello.from));
    } else {
        let reason = hello.explain(verdict, &own);
        let subject = Subject::Accepted(hello.from);
        if context.complaints.is_news(subject, &reason) {
            warn!(peer = hello.from, %address, reason, "connection of a peer refused");
        }
    }
    if let Err(error) = answer(stream, verdict, context).await {
        debug!(peer = hello.from, %address, %error, "the peer was gone before it had its answer");
        if let Some(Known::Messages(place)) = known {
            context.roster.leave(&place);
        }
        return None;
    }
    known
}

fn admit(stream: &TcpStream, hello: &Hello, context: &Context) -> Result<Known, Verdict> {
    let patience = match hello.channel {
        Channel::Messages => PEER_UNACKNOWLEDGED_MAX,
        Channel::Image => IMAGE_PATIENCE,
    };
    if let Err(error) = socket::prepare(stream, patience) {
        debug!(peer = hello.from, %error, "socket options not set");
    }
    if hello.channel == Channel::Image {
        return Ok(Known::Image(hello.from));
    }
    let cancel = context.stop.child_token();
    let entered = context
        .roster
        .enter(hello.from, Direction::Accepted, hello.about, cancel);
    entered.map(Known::Messages).map_err(|no| match no {
        NoPlace::OlderProcess => Verdict::OlderProcess,
        NoPlace::TooMany => Verdict::TooMany,
    })
}

async fn answer(
    stream: &mut TcpStream,
    verdict: Verdict,
    context: &Context,
) -> std::io::Result<()> {
    let answer = Answer {
        verdict,
        id: context.identity.id(),
        about: context.identity.about(),
    };
    stream.write_all(&answer.encode()).await
}

/// What came is no hello of this version: a member of another version is told, a stranger is not.
async fn turn_away(
    stream: &mut TcpStream,
    address: SocketAddr,
    error: &HandshakeError,
    context: &Context,
) {
    if let HandshakeError::Io(error) = error {
        debug!(%address, %error, "connection ended before its handshake");
        return;
    }
    let reason = error.to_string();
    let subject = Subject::Stranger(address.ip());
    if context.complaints.is_news(subject, &reason) {
        warn!(%address, reason, "connection on the quorum port refused");
    }
    if matches!(error, HandshakeError::Version(_))
        && let Err(error) = answer(stream, Verdict::OtherVersion, context).await
    {
        debug!(%address, %error, "the peer was gone before it had its answer");
    }
}
