//! The last moments of a connection whose output has ended: what its client still sends is read and thrown away.
//!
//! A socket that is closed while something comes in is reset by the system. The client's next write fails then, and a
//! client that takes this for a lost connection never reads why it was sent away: that its authentication failed, or
//! that its session is closed.

use std::io;

use bytes::BytesMut;
use tokio::io::Interest;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::limits::{LINGER_BYTES, LINGER_PATIENCE, LINGERING_MAX};
use crate::transport::Transport;

static PLACES: Semaphore = Semaphore::const_new(LINGERING_MAX);

/// Waits until the client has ended its side too, or the connection is lost, or patience is.
pub async fn linger<S: Transport>(stream: &mut S) {
    let Ok(_place) = PLACES.try_acquire() else {
        return;
    };
    // However it ends, nothing is left to be done for the client.
    let _ = timeout(LINGER_PATIENCE, discard(stream)).await;
}

async fn discard<S: Transport>(stream: &mut S) -> io::Result<()> {
    let mut piece = BytesMut::with_capacity(LINGER_BYTES);
    loop {
        stream.ready(Interest::READABLE).await?;
        piece.clear();
        match stream.try_read_buf(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn ends() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("bound");
        let address = listener.local_addr().expect("address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (client.expect("connected"), accepted.expect("accepted").0)
    }

    /// Says its last words, ends, and lingers.
    async fn end(mut server: TcpStream) {
        Transport::write_all(&mut server, b"last words")
            .await
            .expect("written");
        Transport::shutdown(&mut server).await.expect("ended");
        linger(&mut server).await;
    }

    #[tokio::test]
    async fn who_sends_behind_the_end_is_not_reset() {
        let (mut client, server) = ends().await;
        let server = tokio::spawn(end(server));
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.expect("heard");
        assert_eq!(heard, b"last words");
        for _ in 0..1000 {
            AsyncWriteExt::write_all(&mut client, b"is it over?")
                .await
                .expect("taken");
            tokio::task::yield_now().await;
        }
        assert!(!server.is_finished());
        drop(client);
        server.await.expect("gone with the client");
    }

    #[tokio::test]
    async fn a_client_that_never_ends_is_left() {
        let (client, server) = ends().await;
        tokio::spawn(end(server)).await.expect("gone");
        drop(client);
    }
}
