//! Asking members for their state.

use std::time::Duration;

use quenda_client::Tls;
use quenda_client::word::{self, WordError};

use super::Answer;

/// The four-letter word that tells a member's state.
const WORD: &str = "qsta";

/// Asks members.
pub(super) struct Asker {
    /// How long one may take.
    pub patience: Duration,
    /// How to speak TLS, if it is to be spoken.
    pub tls: Option<Tls>,
    /// Addresses that were named. Those that were not come from the configuration, which holds the ports without TLS.
    pub given: Vec<String>,
}

impl Asker {
    /// Asks all of them at once.
    pub fn ask_all(&self, addresses: &[String]) -> Vec<Answer> {
        std::thread::scope(|scope| {
            let asking: Vec<_> = addresses
                .iter()
                .map(|address| scope.spawn(move || self.ask(address)))
                .collect();
            let answer = |thread: std::thread::ScopedJoinHandle<'_, Answer>| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("asking it failed".to_owned()))
            };
            asking.into_iter().map(answer).collect()
        })
    }

    fn ask(&self, address: &str) -> Answer {
        let mut answer = word::ask(address, WORD, self.tls.as_ref(), self.patience);
        let found = self.tls.is_some() && !self.given.iter().any(|given| given == address);
        if found && matches!(answer, Err(WordError::Tls(_))) {
            answer = word::ask(address, WORD, None, self.patience);
        }
        let text = answer.map_err(|error| match error {
            WordError::Empty if self.tls.is_none() => {
                format!("{error}: not Quenda, too many connections, or a port for TLS only (--tls)")
            }
            error => error.to_string(),
        })?;
        serde_json::from_str(&text).map_err(|error| format!("answers what is no status: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
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

    fn ask(address: &str, patience: Duration) -> Answer {
        let asker = Asker {
            patience,
            tls: None,
            given: vec![address.to_owned()],
        };
        asker.ask(address)
    }

    #[test]
    fn what_is_no_status_is_said_to_be_none() {
        let (address, server) = answering("imok");
        let error = ask(&address, Duration::from_secs(30)).expect_err("no status");
        assert!(error.starts_with("answers what is no status: "), "{error}");
        assert_eq!(server.join().expect("the server"), WORD.as_bytes());
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
