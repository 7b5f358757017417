//! The handshake itself, on either side.

use std::io;
use std::ops::DerefMut;

use rustls::{ConnectionCommon, SideData};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::accept::Refusal;
use super::stream::Socket;

/// Carries it out to its end. `turns` are those of the calculations; `is_queued` is said of a side at which many may wait
/// for them.
pub(super) async fn shake_hands<C, D>(
    socket: &TcpStream,
    connection: &mut C,
    turns: &Semaphore,
    is_queued: bool,
) -> Result<(), Refusal>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: SideData,
{
    // What is said last before a connection is closed is the reason, to who has dialed.
    let mut greeted = !is_queued;
    loop {
        send(socket, connection).await?;
        if !connection.is_handshaking() {
            return Ok(());
        }
        socket.readable().await?;
        match connection.read_tls(&mut Socket(socket)) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(_) => calculate(socket, connection, turns, &mut greeted).await?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes a step of the handshake: what costs a millisecond of calculation at times. It is done in turns.
async fn calculate<C, D>(
    socket: &TcpStream,
    connection: &mut C,
    turns: &Semaphore,
    greeted: &mut bool,
) -> Result<(), Refusal>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: SideData,
{
    let turn = turns.acquire().await;
    if !std::mem::replace(greeted, true) && has_given_up(socket, connection)? {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let step = connection.process_new_packets();
    drop(turn);
    let Err(error) = step else {
        // Other tasks of this thread come first.
        tokio::task::yield_now().await;
        return Ok(());
    };
    // The alert that says why.
    send(socket, connection).await?;
    match error {
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            Err(Refusal::NoTls)
        }
        error => Err(Refusal::Failed(error)),
    }
}

/// Whether a client has closed the connection behind its greeting. Where thousands wait for their turns many do, to try
/// again: the turns are for those who still wait.
fn has_given_up<D: SideData>(
    socket: &TcpStream,
    connection: &mut ConnectionCommon<D>,
) -> io::Result<bool> {
    match connection.read_tls(&mut Socket(socket)) {
        Ok(count) => Ok(count == 0),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

async fn send<D: SideData>(
    socket: &TcpStream,
    connection: &mut ConnectionCommon<D>,
) -> io::Result<()> {
    while connection.wants_write() {
        match connection.write_tls(&mut Socket(socket)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
