//! Options of the sockets between members.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// Prepares a connection: no delay for small frames, and the system breaks it when the other machine is gone:
/// at once noticed when something is to be sent, and when nothing is.
///
/// # Errors
/// The system refuses an option.
pub(super) fn prepare(stream: &TcpStream, unacknowledged_max: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(unacknowledged_max)
        .with_interval(Duration::from_secs(1));
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(unacknowledged_max))?;
    Ok(())
}
