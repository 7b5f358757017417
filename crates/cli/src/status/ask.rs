//! Asking members for their state.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use super::Answer;

/// The four-letter word that tells a member's state.
const WORD: &[u8] = b"qsta";

/// Bytes of an answer that are read at most.
const ANSWER_MAX: u64 = 4 << 20;

/// How a TLS server begins its answer to what is no TLS.
const TLS_ALERT: u8 = 0x15;

/// Asks all of them at once.
pub(super) fn ask_all(addresses: &[String], patience: Duration) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let asking: Vec<_> = addresses
            .iter()
            .map(|address| scope.spawn(move || ask(address, patience)))
            .collect();
        let answer = |thread: std::thread::ScopedJoinHandle<'_, Answer>| {
            thread
                .join()
                .unwrap_or_else(|_| Err("asking it failed".to_owned()))
        };
        asking.into_iter().map(answer).collect()
    })
}

fn ask(address: &str, patience: Duration) -> Answer {
    let text = exchange(address, patience).map_err(|error| reason(&error))?;
    if text.is_empty() {
        return Err(
            "closes the connection without an answer: not Quenda, or too many connections"
                .to_owned(),
        );
    }
    serde_json::from_str(&text).map_err(|error| match text.as_bytes() {
        [TLS_ALERT, 3, ..] => {
            "speaks TLS, which this command does not: ask the member's clientPort".to_owned()
        }
        _ => format!("answers what is no status: {error}"),
    })
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "does not answer in time".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        _ => error.to_string(),
    }
}

/// Sends the word and reads all there is.
fn exchange(address: &str, patience: Duration) -> io::Result<String> {
    let deadline = Instant::now() + patience;
    let mut stream = connect(address, deadline)?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(WORD)?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut piece)? {
            0 => break,
            len => answer.extend_from_slice(&piece[..len]),
        }
        if answer.len() as u64 > ANSWER_MAX {
            return Err(io::Error::other("the answer has no end"));
        }
    }
    String::from_utf8(answer).map_err(io::Error::other)
}

/// To the first of the host's addresses that takes it.
fn connect(address: &str, deadline: Instant) -> io::Result<TcpStream> {
    let mut failure = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn answering(text: &'static str) -> (String, std::thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut word = [0; 4];
            stream.read_exact(&mut word).expect("a word");
            stream.write_all(text.as_bytes()).expect("the client reads");
            word.to_vec()
        });
        (address, server)
    }

    #[test]
    fn what_is_no_status_is_said_to_be_none() {
        let (address, server) = answering("imok");
        let error = ask(&address, Duration::from_secs(30)).expect_err("no status");
        assert!(error.starts_with("answers what is no status: "), "{error}");
        assert_eq!(server.join().expect("the server"), WORD);
        let (address, _server) = answering("\u{15}\u{3}\u{3}\0\u{2}\u{2}2");
        let error = ask(&address, Duration::from_secs(30)).expect_err("no status");
        assert!(error.starts_with("speaks TLS"), "{error}");
        let (address, _server) = answering("");
        let error = ask(&address, Duration::from_secs(30)).expect_err("no status");
        assert!(error.starts_with("closes the connection"), "{error}");
    }

    #[test]
    fn a_member_that_is_silent_costs_no_more_than_the_patience() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let error = ask(&address, Duration::from_millis(50)).expect_err("silent");
        assert_eq!(error, "does not answer in time");
        drop(listener);
        let error = ask(&address, Duration::from_secs(30)).expect_err("closed");
        assert_eq!(error, "nobody listens there");
    }
}
