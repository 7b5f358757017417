//! The quorum port: who comes has to say who it is, soon, and is told what is wrong.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
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
use super::wire::Wire;
use super::{secure, socket};
use crate::calm::Calm;
use crate::limits::{
    IMAGE_PATIENCE, PEER_HANDSHAKE_PATIENCE, PEER_HANDSHAKES_MAX, PEER_UNACKNOWLEDGED_MAX,
};

/// Pause after the system could give no connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Connections that have not said who they are. Where there are too many the oldest gives way to a new one, of the
/// address that has most: who opens many keeps no member out.
#[derive(Debug, Default)]
struct Strangers {
    waiting: Mutex<VecDeque<(IpAddr, CancellationToken)>>,
}

impl Strangers {
    fn enter(&self, address: IpAddr) -> CancellationToken {
        let token = CancellationToken::new();
        let mut waiting = self.waiting.lock();
        waiting.retain(|(_, token)| !token.is_cancelled());
        if waiting.len() >= PEER_HANDSHAKES_MAX
            && let Some(place) = place_to_free(&waiting)
            && let Some((_, oldest)) = waiting.remove(place)
        {
            oldest.cancel();
        }
        waiting.push_back((address, token.clone()));
        token
    }
}

fn place_to_free(waiting: &VecDeque<(IpAddr, CancellationToken)>) -> Option<usize> {
    let mut counts = HashMap::new();
    for (address, _) in waiting {
        *counts.entry(*address).or_insert(0) += 1;
    }
    let most = counts.values().copied().max()?;
    waiting
        .iter()
        .position(|(address, _)| counts[address] == most)
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
                let token = strangers.enter(address.ip());
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
    stream: TcpStream,
    address: SocketAddr,
    stranger: CancellationToken,
    context: &Context,
) {
    let known = tokio::select! {
        () = stranger.cancelled() => None,
        () = context.closing.cancelled() => None,
        met = greet(stream, address, context) => met,
    };
    // Its place among the strangers is free again.
    stranger.cancel();
    match known {
        Some((wire, Known::Messages(place))) => context.serve(wire, place).await,
        Some((wire, Known::Image(peer))) => image_server::serve(wire, peer, context).await,
        None => debug!(%address, "no handshake"),
    }
}

/// Who has come, and for what.
enum Known {
    Messages(Place),
    Image(u64),
}

/// Both handshakes: that of TLS, if there is one, and that of the members. Each has its own time.
async fn greet(stream: TcpStream, address: SocketAddr, context: &Context) -> Option<(Wire, Known)> {
    let mut wire = match secure::accept(stream, address, context).await {
        Ok(wire) => wire,
        Err(refusal) => {
            match secure::explain_accepted(&refusal) {
                Some(reason) => complain_of_stranger(address, &reason, context),
                None => debug!(%address, %refusal, "connection ended before its handshake"),
            }
            return None;
        }
    };
    let shaking = shake(&mut wire, address, context);
    let known = timeout(PEER_HANDSHAKE_PATIENCE, shaking).await.ok()??;
    Some((wire, known))
}

fn complain_of_stranger(address: SocketAddr, reason: &str, context: &Context) {
    let subject = Subject::Stranger(address.ip());
    if context.complaints.is_news(subject, reason) {
        warn!(%address, reason, "connection on the quorum port refused");
    }
}

async fn shake(wire: &mut Wire, address: SocketAddr, context: &Context) -> Option<Known> {
    let hello = match Hello::read(wire).await {
        Ok(hello) => hello,
        Err(error) => {
            turn_away(wire, address, &error, context).await;
            return None;
        }
    };
    let mut verdict = hello.judge(&context.identity);
    let mut known = None;
    if verdict == Verdict::Accepted
        && !secure::fits(wire.certificate(), hello.from, address.ip(), context).await
    {
        verdict = Verdict::OtherName;
    }
    if verdict == Verdict::Accepted {
        match admit(wire, &hello, context) {
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
    if let Err(error) = answer(wire, verdict, context).await {
        debug!(peer = hello.from, %address, %error, "the peer was gone before it had its answer");
        if let Some(Known::Messages(place)) = known {
            context.roster.leave(&place);
        }
        return None;
    }
    known
}

fn admit(wire: &Wire, hello: &Hello, context: &Context) -> Result<Known, Verdict> {
    let patience = match hello.channel {
        Channel::Messages => PEER_UNACKNOWLEDGED_MAX,
        Channel::Image => IMAGE_PATIENCE,
    };
    if let Err(error) = socket::prepare(wire.socket(), patience) {
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

async fn answer(wire: &mut Wire, verdict: Verdict, context: &Context) -> std::io::Result<()> {
    let answer = Answer {
        verdict,
        id: context.identity.id(),
        about: context.identity.about(),
    };
    wire.write_all(&answer.encode()).await?;
    wire.flush().await
}

/// What came is no hello of this version: a member of another version is told, a stranger is not.
async fn turn_away(
    wire: &mut Wire,
    address: SocketAddr,
    error: &HandshakeError,
    context: &Context,
) {
    if let HandshakeError::Io(error) = error {
        if let Some(reason) = secure::explain_broken(error) {
            complain_of_stranger(address, &reason, context);
        }
        debug!(%address, %error, "connection ended before its handshake");
        return;
    }
    let remedy = match error {
        HandshakeError::Tls => {
            ": set portUnification=true here, with the files of ssl.quorum.*, before sslQuorum=true there"
        }
        _ => "",
    };
    complain_of_stranger(address, &format!("{error}{remedy}"), context);
    if matches!(error, HandshakeError::Version(_))
        && let Err(error) = answer(wire, Verdict::OtherVersion, context).await
    {
        debug!(%address, %error, "the peer was gone before it had its answer");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_opens_many_gives_way() {
        let strangers = Strangers::default();
        let (flood, member) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let first = strangers.enter(member);
        let many: Vec<_> = (1..PEER_HANDSHAKES_MAX)
            .map(|_| strangers.enter(flood))
            .collect();
        let second = strangers.enter(member);
        strangers.enter(flood);
        let ended = many.iter().filter(|token| token.is_cancelled()).count();
        assert_eq!(ended, 2);
        assert!(
            many[0].is_cancelled() && many[1].is_cancelled(),
            "the oldest"
        );
        assert!(!first.is_cancelled() && !second.is_cancelled());
    }
}
