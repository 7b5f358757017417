//! The quorum ports that are open, and how a member moves to others while it runs.

use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::acceptor;
use super::context::Context;
use super::listen::{Own, listen};
use crate::limits::QUORUM_PORT_RETRY;

/// The open ports.
#[derive(Debug, Default)]
pub(super) struct Listening {
    open: Mutex<Vec<Open>>,
    /// Ends an attempt to move that is under way.
    moving: Mutex<CancellationToken>,
    /// Held by the attempt that is under way.
    turn: AsyncMutex<()>,
}

#[derive(Debug)]
struct Open {
    port: u16,
    stop: CancellationToken,
}

impl Listening {
    /// Accepts connections on these sockets too. To be called inside the runtime.
    ///
    /// # Errors
    /// The sockets cannot be used.
    pub(super) fn add(
        &self,
        listeners: Vec<TcpListener>,
        context: &Arc<Context>,
    ) -> io::Result<()> {
        for listener in listeners {
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let stop = context.closing.child_token();
            let accepting = acceptor::accept(listener, Arc::clone(context), stop.clone());
            context.tasks.spawn(accepting);
            self.open.lock().push(Open { port, stop });
        }
        Ok(())
    }

    /// The ports that are open.
    fn ports(&self) -> BTreeSet<u16> {
        self.open.lock().iter().map(|open| open.port).collect()
    }

    /// Another move takes the place of one that is not through: the token that ends it.
    pub(super) fn begin_move(&self, context: &Context) -> CancellationToken {
        let token = context.closing.child_token();
        std::mem::replace(&mut *self.moving.lock(), token.clone()).cancel();
        token
    }

    /// Opens the ports that are missing, as often as it takes, and then closes those that are not wanted.
    pub(super) async fn move_to(
        &self,
        wanted: Vec<Own>,
        context: &Arc<Context>,
        token: CancellationToken,
    ) {
        let _turn = self.turn.lock().await;
        let ports: BTreeSet<u16> = wanted.iter().map(|(_, port)| *port).collect();
        if self.ports() == ports {
            return;
        }
        let mut complaint = None;
        loop {
            let opened = tokio::select! {
                () = token.cancelled() => return,
                opened = self.open_missing(&wanted, context) => opened,
            };
            let Err(error) = opened else {
                break;
            };
            let reason = error.to_string();
            if complaint.as_ref() != Some(&reason) {
                warn!(
                    ?ports,
                    reason,
                    "the configuration gives this member another quorum port, which cannot be opened: those that are \
                     open stay so until it can"
                );
                complaint = Some(reason);
            }
            tokio::select! {
                () = token.cancelled() => return,
                () = sleep(QUORUM_PORT_RETRY) => {}
            }
        }
        self.keep(&ports);
        info!(
            ?ports,
            "the quorum ports are those that the configuration gives this member"
        );
    }

    /// Closes all others.
    fn keep(&self, ports: &BTreeSet<u16>) {
        self.open.lock().retain(|open| {
            let stays = ports.contains(&open.port);
            if !stays {
                open.stop.cancel();
            }
            stays
        });
    }

    async fn open_missing(&self, wanted: &[Own], context: &Arc<Context>) -> io::Result<()> {
        let open = self.ports();
        let missing = wanted.iter().filter(|(_, port)| !open.contains(port));
        let missing: Vec<Own> = missing.cloned().collect();
        let resolver = Arc::clone(&context.resolver);
        // Looking a name up may take its time.
        let listeners = spawn_blocking(move || listen(&missing, &*resolver)).await;
        self.add(listeners.map_err(io::Error::other)??, context)
    }
}
