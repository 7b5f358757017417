//! One request to a member's administration. HTTP/1.0, so that an answer is as long as its connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use quenda_client::Tls;
use quenda_client::stream::{self, Stream};
use serde_json::Value;

/// Bytes of one line of a head, and of an answer that is not a snapshot, at most.
const TEXT_MAX: u64 = 1 << 20;

/// Lines of a head, at most.
const HEAD_LINES_MAX: usize = 100;

/// How a record of TLS begins that is a refusal, as a server that wants TLS answers to plain HTTP.
const TLS_ALERT: u8 = 0x15;

/// Where commands are asked.
pub(super) struct Endpoint {
    pub(super) address: String,
    pub(super) path: String,
    pub(super) tls: Option<Tls>,
    pub(super) authorization: String,
    pub(super) patience: Duration,
}

/// An answer whose body is still to be read.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    pub(super) body: BufReader<Box<dyn Stream>>,
}

impl Endpoint {
    /// Asks for a command.
    pub(super) fn get(&self, command: &str) -> Result<Answer> {
        let mut stream = self.open()?;
        let head = self.head("GET", command, None);
        let sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.flush());
        self.receive(stream, sent)
    }

    /// Sends a body of a known length with a command.
    pub(super) fn post(
        &self,
        command: &str,
        length: u64,
        mut copy: impl FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Answer> {
        let mut stream = self.open()?;
        let head = self.head("POST", command, Some(length));
        let sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| copy(&mut *stream))
            .and_then(|()| stream.flush());
        self.receive(stream, sent)
    }

    fn open(&self) -> Result<Box<dyn Stream>> {
        stream::connect(&self.address, self.tls.as_ref(), self.patience)
            .with_context(|| format!("cannot connect to {}", self.address))
    }

    fn head(&self, method: &str, command: &str, length: Option<u64>) -> String {
        let (path, host, auth) = (&self.path, &self.address, &self.authorization);
        let body = length.map_or(String::new(), |length| {
            format!("Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n")
        });
        format!(
            "{method} {path}/{command} HTTP/1.0\r\nHost: {host}\r\nAuthorization: {auth}\r\n{body}\r\n"
        )
    }

    /// The answer says more than a connection that was closed while something was sent.
    fn receive(&self, stream: Box<dyn Stream>, sent: io::Result<()>) -> Result<Answer> {
        let mut body = BufReader::with_capacity(256 << 10, stream);
        let answer = match self.tls {
            None => no_tls(&mut body).and_then(|()| Answer::read(body)),
            Some(_) => Answer::read(body),
        };
        match (sent, answer) {
            (_, Ok(answer)) => Ok(answer),
            (Err(error), Err(reason)) => Err(error).with_context(|| {
                let closed = format!("{} has closed the connection", self.address);
                match self.tls {
                    None => format!("{closed} ({reason:#})"),
                    Some(_) => closed,
                }
            }),
            (Ok(()), Err(error)) => {
                Err(error).with_context(|| format!("{} does not answer", self.address))
            }
        }
    }
}

impl Answer {
    fn read(mut body: BufReader<Box<dyn Stream>>) -> Result<Answer> {
        let first = line(&mut body)?;
        let mut words = first.split(' ');
        let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
        let status = words.next().and_then(|word| word.parse().ok());
        let (true, Some(status)) = (is_http, status) else {
            bail!("that is no port for administration over HTTP (or it wants TLS: --tls)");
        };
        let mut headers = Vec::new();
        loop {
            let header = line(&mut body)?;
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':') {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            if headers.len() > HEAD_LINES_MAX {
                bail!("the head of the answer has no end");
            }
        }
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is something else.
    pub(super) fn json(&mut self) -> Value {
        let mut text = Vec::new();
        let read = (&mut self.body).take(TEXT_MAX).read_to_end(&mut text);
        match read {
            Ok(_) => serde_json::from_slice(&text).unwrap_or(Value::Null),
            Err(_) => Value::Null,
        }
    }

    /// Why the answer is no success.
    pub(super) fn refusal(&mut self) -> anyhow::Error {
        let body = self.json();
        let said = body.get("error").and_then(Value::as_str);
        let reason = said.map_or_else(|| meaning(self.status).to_owned(), str::to_owned);
        let advice = match self.status {
            401 | 403 => {
                "; give an identity that has all permissions on the root (--auth digest:user:password)"
            }
            _ => "",
        };
        match self.status {
            200 => anyhow!("{reason}"),
            status => anyhow!("{status} ({reason}{advice})"),
        }
    }
}

/// Looks whether a server that was asked without TLS wants it.
fn no_tls(body: &mut impl BufRead) -> Result<()> {
    let first = body.fill_buf();
    let closed = match &first {
        Ok(bytes) => bytes.is_empty(),
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    };
    if closed {
        bail!("the connection was closed without an answer: the port may speak TLS (--tls)");
    }
    match first?.first() {
        Some(&TLS_ALERT) => bail!("the port speaks TLS: --tls, --ca FILE"),
        _ => Ok(()),
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        404 => "no such path: see --command-url",
        200 => "the answer is no snapshot",
        429 => "too soon after the last one (admin.rateLimiterIntervalInMS)",
        500 => "it failed; the server's log says why",
        503 => "it is turned off, or the member does not serve",
        _ => "refused",
    }
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(TEXT_MAX).read_until(b'\n', &mut bytes)?;
    let text = bytes.strip_suffix(b"\n").context("the answer ends early")?;
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    Ok(String::from_utf8_lossy(text).into_owned())
}
