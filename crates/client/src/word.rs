//! Four-letter words: a question of four letters to a server, its answer in text.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::{Tls, tls};

/// Bytes of an answer that are read at most.
const ANSWER_MAX: usize = 64 << 20;

/// How a TLS server begins its answer to what is no TLS.
const TLS_ALERT: [u8; 2] = [0x15, 3];

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum WordError {
    /// Nobody listens at the address.
    #[error("nobody listens there")]
    NobodyListens,
    /// The server takes too long.
    #[error("does not answer in time")]
    Silent,
    /// The connection was closed without an answer.
    #[error("closes the connection without an answer")]
    Empty,
    /// The port is for TLS, which was not asked for.
    #[error("speaks TLS: ask it with TLS (--tls), or ask the port without it")]
    SpeaksTls,
    /// TLS was not agreed on.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// Anything else.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Asks a server (`host:port`) and waits for all of its answer. Blocks; not for tasks.
///
/// # Errors
/// There is no answer in time.
pub fn ask(
    address: &str,
    word: &str,
    tls: Option<&Tls>,
    patience: Duration,
) -> Result<String, WordError> {
    let socket = Deadline {
        until: Instant::now() + patience,
        stream: None,
    };
    let socket = socket.connect(address).map_err(plain_error)?;
    let answer = match tls {
        None => exchange(socket, word).map_err(plain_error)?,
        Some(tls) => {
            let connection = tls
                .connection(address)
                .map_err(|error| WordError::Tls(error.to_string()))?;
            tls_exchange(connection, socket, word)?
        }
    };
    match answer.as_slice() {
        [] => Err(WordError::Empty),
        [first, second, ..] if tls.is_none() && [*first, *second] == TLS_ALERT => {
            Err(WordError::SpeaksTls)
        }
        answer => Ok(String::from_utf8_lossy(answer).into_owned()),
    }
}

fn tls_exchange(
    mut connection: ClientConnection,
    mut socket: Deadline,
    word: &str,
) -> Result<Vec<u8>, WordError> {
    let failed = |error: &io::Error, why: fn(&io::Error) -> String| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => WordError::Silent,
        _ => WordError::Tls(why(error)),
    };
    while connection.is_handshaking() {
        let moved = connection.complete_io(&mut socket);
        moved.map_err(|error| failed(&error, tls::handshake_reason))?;
    }
    let answer = exchange(StreamOwned::new(connection, socket), word);
    answer.map_err(|error| failed(&error, tls::reason))
}

fn plain_error(error: io::Error) -> WordError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => WordError::Silent,
        io::ErrorKind::ConnectionRefused => WordError::NobodyListens,
        _ => WordError::Io(error),
    }
}

/// Sends the word and reads all there is.
fn exchange(mut stream: impl Read + Write, word: &str) -> io::Result<Vec<u8>> {
    stream.write_all(word.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    let mut piece = vec![0; 16 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            // Closed without TLS's word of farewell, or with a word unread.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                ) =>
            {
                return Ok(answer);
            }
            Err(error) => return Err(error),
        }
        if answer.len() > ANSWER_MAX {
            return Err(io::Error::other("the answer has no end"));
        }
    }
}

/// A socket that does not wait beyond a point in time.
#[derive(Debug)]
struct Deadline {
    until: Instant,
    stream: Option<TcpStream>,
}

impl Deadline {
    /// To the first of the host's addresses that takes it.
    fn connect(mut self, address: &str) -> io::Result<Deadline> {
        let mut failure = io::Error::other("the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.left()?) {
                Ok(stream) => {
                    self.stream = Some(stream);
                    return Ok(self);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(left),
        }
    }

    fn stream(&mut self) -> io::Result<(&mut TcpStream, Duration)> {
        let left = self.left()?;
        let stream = self.stream.as_mut();
        Ok((stream.ok_or(io::ErrorKind::NotConnected)?, left))
    }
}

impl Read for Deadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (stream, left) = self.stream()?;
        stream.set_read_timeout(Some(left))?;
        stream.read(buffer)
    }
}

impl Write for Deadline {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (stream, left) = self.stream()?;
        stream.set_write_timeout(Some(left))?;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
