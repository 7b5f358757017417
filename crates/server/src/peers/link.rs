//! One open connection between two members: frames both ways, signs of life, and what became of it.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::context::Context;
use super::delivery::Delivery;
use super::frame::{FrameError, Kind};
use super::handshake::other_cluster;
use super::identity::Facts;
use super::reader::Reader;
use super::roster::Place;
use super::wire::Wire;
use super::writer::Writer;
use crate::limits::{
    PEER_DELIVERED_BYTES, PEER_FRAME_MAX, PEER_PING_INTERVAL, PEER_STOP_PATIENCE, PEER_WRITE_BYTES,
};

/// What one frame in the inbox costs beside its bytes.
const FRAME_COST: usize = 64;

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("the peer closed it")]
    Closed,
    #[error("nothing was heard for {} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("{0}")]
    Broken(io::Error),
    #[error("the peer sent {0}")]
    Garbage(FrameError),
    #[error("{0}")]
    Foreign(String),
    #[error("a newer connection takes its place")]
    Replaced,
    #[error("this member stops")]
    Stopped,
}

impl End {
    fn of(error: io::Error) -> End {
        match error.kind() {
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => End::Closed,
            _ => End::Broken(error),
        }
    }
}

/// Serves an open connection until it ends.
pub(super) async fn serve(wire: Wire, place: &Place, context: &Context) -> End {
    match wire {
        Wire::Plain(mut stream) => {
            // Without a descriptor to spare all frames go through the connection's task.
            if let Ok(socket) = stream.as_fd().try_clone_to_owned() {
                place.outbox.connect(socket.into());
            }
            let (read_half, write_half) = stream.split();
            let end = serve_halves(read_half, write_half, place, context).await;
            place.outbox.disconnect();
            end
        }
        Wire::Secure(stream) => {
            let (read_half, write_half) = tokio::io::split(stream);
            serve_halves(read_half, write_half, place, context).await
        }
    }
}

async fn serve_halves(
    read_half: impl AsyncRead + Unpin,
    write_half: impl AsyncWrite + Unpin,
    place: &Place,
    context: &Context,
) -> End {
    // Whoever changes the facts from here on reaches this connection too; what was said in the handshake is
    // repeated if it has changed meanwhile.
    let mut facts = context.identity.watch();
    let mut reading = Box::pin(read(read_half, place, context));
    let mut writing = Box::pin(write(write_half, place, &mut facts));
    tokio::select! {
        end = &mut reading => end,
        end = &mut writing => {
            if matches!(end, End::Stopped) {
                // Closing with something unread would take back what was written last.
                let _ = timeout(PEER_STOP_PATIENCE, &mut reading).await;
            }
            end
        }
        () = place.cancel.cancelled() => End::Replaced,
    }
}

async fn read(stream: impl AsyncRead + Unpin, place: &Place, context: &Context) -> End {
    let mut reader = Reader::new(stream, PEER_FRAME_MAX);
    let idle_max = context.links.idle_max;
    loop {
        let mut frames = Vec::new();
        loop {
            match reader.next() {
                Ok(Some((Kind::Data, frame))) => frames.push(frame),
                Ok(Some((Kind::Ping, _))) => {}
                Ok(Some((Kind::Facts, frame))) => {
                    if let Err(end) = learn(&frame, place, context) {
                        return end;
                    }
                }
                Ok(Some((kind, _))) => return End::Garbage(FrameError::Unexpected(kind)),
                Ok(None) => break,
                Err(error) => return End::Garbage(error),
            }
        }
        if !frames.is_empty() {
            deliver(frames, place, context).await;
        }
        match timeout(idle_max, reader.fill()).await {
            Err(_) => return End::Silent(idle_max),
            Ok(Ok(0)) => return End::Closed,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return End::of(error),
        }
    }
}

/// Hands frames over once the core has dealt with enough of what came before.
async fn deliver(frames: Vec<Bytes>, place: &Place, context: &Context) {
    let cost: usize = frames.iter().map(|frame| frame.len() + FRAME_COST).sum();
    place.flow.receive(&frames);
    let permits = u32::try_from(cost.min(PEER_DELIVERED_BYTES)).unwrap_or(u32::MAX);
    // The semaphore is never closed; if it were, there would be nothing to wait for.
    let room = Arc::clone(&place.room).acquire_many_owned(permits).await;
    context.events.deliver(Delivery {
        from: place.peer,
        frames,
        _room: room.ok(),
    });
}

fn learn(mut frame: &[u8], place: &Place, context: &Context) -> Result<(), End> {
    let facts = Facts::get(&mut frame).ok_or(End::Garbage(FrameError::Unexpected(Kind::Facts)))?;
    let own = context.identity.facts();
    if !own.may_talk_to(facts) {
        return Err(End::Foreign(other_cluster(facts.cluster, own.cluster)));
    }
    if context.roster.learn(place.peer, facts) {
        context.events.up(place.peer, facts.state);
    }
    Ok(())
}

async fn write(
    stream: impl AsyncWrite + Unpin,
    place: &Place,
    facts: &mut watch::Receiver<Facts>,
) -> End {
    match write_frames(Writer::new(stream), place, facts).await {
        Ok(()) => End::Stopped,
        Err(error) => End::of(error),
    }
}

async fn write_frames(
    mut writer: Writer<impl AsyncWrite + Unpin>,
    place: &Place,
    facts: &mut watch::Receiver<Facts>,
) -> io::Result<()> {
    let mut frames = Vec::new();
    // Once at the beginning: they may have changed since the handshake.
    put_facts(&mut writer, facts);
    while place.outbox.try_take(PEER_WRITE_BYTES, &mut frames) {
        if frames.is_empty() {
            writer.flush().await?;
            place.outbox.leave();
            let occasion = wait(place, facts).await;
            if let Some(rest) = place.outbox.claim() {
                writer.rest(rest);
            }
            match occasion {
                Occasion::Frames => {}
                Occasion::Facts => put_facts(&mut writer, facts),
                Occasion::Ping => writer.frame(Kind::Ping, Bytes::new()),
            }
            continue;
        }
        for frame in frames.drain(..) {
            writer.frame(Kind::Data, frame);
        }
        writer.flush().await?;
    }
    writer.flush().await?;
    writer.shutdown().await
}

/// What there is to write for.
enum Occasion {
    Frames,
    Facts,
    Ping,
}

/// Waits for frames to be queued, for a change of the facts, or for the time of a ping.
async fn wait(place: &Place, facts: &mut watch::Receiver<Facts>) -> Occasion {
    tokio::select! {
        () = place.outbox.changed() => Occasion::Frames,
        changed = facts.changed() => match changed {
            Ok(()) => Occasion::Facts,
            // The identity is gone, and with it everything else, soon.
            Err(_) => {
                sleep(Duration::from_millis(10)).await;
                Occasion::Frames
            }
        },
        () = sleep(PEER_PING_INTERVAL) => Occasion::Ping,
    }
}

fn put_facts(writer: &mut Writer<impl AsyncWrite + Unpin>, facts: &mut watch::Receiver<Facts>) {
    let mut payload = Vec::with_capacity(Facts::BYTES);
    facts.borrow_and_update().put(&mut payload);
    writer.frame(Kind::Facts, payload.into());
}
