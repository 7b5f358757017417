//! One session and the connections it has one after the other, as ZooKeeper's own client goes about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quenda_client::{ConnectOptions, Error, Session, Wire, code_name, open_acl};
use quenda_proto::mode::CreateMode;
use quenda_proto::records::{CreateRequest, ExistsRequest, ExistsResponse, ReplyHeader};
use quenda_proto::{Decode, ErrorCode, Op, Reader, XID_PING};
use tokio::sync::{Semaphore, watch};

use super::tally::{AtEnd, Tally};

/// xid of the only request that is in flight beside pings.
const XID: i32 = 1;

/// How long a session takes at most to look for its ephemeral and to end.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// What all sessions have in common.
pub struct Plan {
    pub hosts: Vec<String>,
    pub options: ConnectOptions,
    /// Each attempt to go on elsewhere waits a random part of this.
    pub reconnect_spread: Duration,
}

pub struct Survivor {
    plan: Arc<Plan>,
    tally: Arc<Tally>,
    host: usize,
    ephemeral: Option<String>,
    last_zxid: i64,
    random: u64,
}

/// How a search for another server ended.
enum Search {
    Found(Wire),
    Expired,
    OutOfTime,
}

impl Survivor {
    pub fn new(
        number: usize,
        ephemeral: Option<String>,
        plan: Arc<Plan>,
        tally: Arc<Tally>,
    ) -> Survivor {
        Survivor {
            host: number % plan.hosts.len(),
            plan,
            tally,
            ephemeral,
            last_zxid: 0,
            random: 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(2 * number as u64 + 1),
        }
    }

    /// Opens the session and keeps it until the end, or until a server says that it has expired.
    pub async fn live(mut self, opening: Arc<Semaphore>, mut end: watch::Receiver<()>) {
        // Nobody closes the semaphore.
        let Ok(permit) = opening.acquire_owned().await else {
            return;
        };
        let mut wire = match self.open().await {
            Ok(wire) => wire,
            Err(error) => return self.tally.error(format!("cannot open: {error}")),
        };
        drop(permit);
        loop {
            let Err(error) = self.hold(&mut wire, &mut end).await else {
                return self.finish(wire).await;
            };
            let session = wire.session();
            drop(wire);
            self.tally.broke(self.host, &error);
            let since = Instant::now();
            wire = match self.search(session, &mut end).await {
                Search::Found(wire) => wire,
                Search::Expired => return self.tally.ended(AtEnd::Expired),
                Search::OutOfTime => return self.tally.ended(AtEnd::Without),
            };
            self.tally.moved(self.host, since.elapsed());
        }
    }

    async fn open(&mut self) -> Result<Wire, Error> {
        let start = Instant::now();
        let mut wire = Wire::connect(&self.plan.hosts[self.host], &self.plan.options).await?;
        let took = start.elapsed();
        if let Some(path) = self.ephemeral.clone() {
            let request = CreateRequest {
                path: Some(path.into()),
                data: Some(&[]),
                acl: Some(open_acl()),
                flags: CreateMode::Ephemeral as i32,
            };
            wire.push(XID, Op::Create, &request);
            self.answer(&mut wire, |header, _| match header.err {
                0 => Ok(()),
                code => Err(Error::Server {
                    op: Op::Create,
                    code,
                }),
            })
            .await?;
        }
        self.tally.opened(self.host, took);
        Ok(wire)
    }

    /// Pings until the end, which is `Ok`, or until the connection breaks or is silent for too long.
    async fn hold(&mut self, wire: &mut Wire, end: &mut watch::Receiver<()>) -> Result<(), Error> {
        let timeout = wire.session().timeout;
        let period = timeout / 3;
        let mut heard = tokio::time::Instant::now();
        let mut pings = tokio::time::interval_at(heard + period, period);
        loop {
            tokio::select! {
                _ = end.changed() => return Ok(()),
                () = tokio::time::sleep_until(heard + timeout * 2 / 3) => {
                    return Err(Error::ConnectionLost("silence".to_owned()));
                }
                _ = pings.tick() => {
                    wire.push_bare(XID_PING, Op::Ping);
                    wire.flush_now()?;
                }
                result = wire.exchange() => {
                    result?;
                    heard = tokio::time::Instant::now();
                    let last_zxid = &mut self.last_zxid;
                    wire.drain(|header, _| {
                        *last_zxid = header.zxid.max(*last_zxid);
                        Ok::<(), Error>(())
                    })?;
                }
            }
        }
    }

    /// Tries the servers one by one. There is no giving up: only a server may say that a session has ended.
    async fn search(&mut self, session: Session, end: &mut watch::Receiver<()>) -> Search {
        tokio::select! {
            biased;
            found = self.try_servers(session) => found.map_or(Search::Expired, Search::Found),
            _ = end.changed() => Search::OutOfTime,
        }
    }

    /// A connection; `None` when a server said that the session has expired.
    async fn try_servers(&mut self, session: Session) -> Option<Wire> {
        let options = ConnectOptions {
            connect_timeout: session.timeout / self.plan.hosts.len() as u32,
            resume: Some(session),
            ..self.plan.options.clone()
        };
        loop {
            self.choose_another();
            tokio::time::sleep(self.plan.reconnect_spread.mul_f64(self.next_part())).await;
            let options = ConnectOptions {
                last_zxid_seen: self.last_zxid,
                ..options.clone()
            };
            let start = Instant::now();
            match Wire::connect(&self.plan.hosts[self.host], &options).await {
                Ok(wire) => {
                    self.tally.resumed(start.elapsed());
                    return Some(wire);
                }
                Err(Error::SessionExpired(_)) => return None,
                Err(error) => self.tally.refused(&error),
            }
        }
    }

    fn choose_another(&mut self) {
        let others = self.plan.hosts.len() - 1;
        if others > 0 {
            let step = 1 + (self.next_part() * others as f64) as usize;
            self.host = (self.host + step) % self.plan.hosts.len();
        }
    }

    /// From 0 to just below 1, by xorshift64*.
    fn next_part(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let mantissa = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        mantissa as f64 / (1u64 << 53) as f64
    }

    /// Looks for the ephemeral, then ends the session.
    async fn finish(mut self, mut wire: Wire) {
        let last_words = self.last_words(&mut wire);
        match tokio::time::timeout(LAST_WORDS, last_words).await {
            Ok(Ok(at_end)) => self.tally.ended(at_end),
            Ok(Err(error)) => self.tally.error(format!("at the end: {error}")),
            Err(_) => self.tally.error("at the end: no reply".to_owned()),
        }
    }

    async fn last_words(&mut self, wire: &mut Wire) -> Result<AtEnd, Error> {
        let at_end = match self.ephemeral.take() {
            Some(path) if !self.owns(wire, &path).await? => AtEnd::WithoutEphemeral,
            _ => AtEnd::Connected,
        };
        wire.push_bare(XID, Op::CloseSession);
        self.answer(wire, |_, _| Ok(())).await?;
        Ok(at_end)
    }

    async fn owns(&mut self, wire: &mut Wire, path: &str) -> Result<bool, Error> {
        let id = wire.session().id;
        let request = ExistsRequest {
            path: Some(path.into()),
            watch: false,
        };
        wire.push(XID, Op::Exists, &request);
        self.answer(wire, |header, body| match header.err {
            0 => Ok(ExistsResponse::decode(&mut Reader::new(body))?
                .stat
                .ephemeral_owner
                == id),
            code if code == ErrorCode::NoNode.code() => Ok(false),
            code => Err(Error::ConnectionLost(code_name(code))),
        })
        .await
    }

    /// The answer to the request that is in flight.
    async fn answer<T>(
        &mut self,
        wire: &mut Wire,
        read: impl Fn(ReplyHeader, &[u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        loop {
            wire.exchange().await?;
            let last_zxid = &mut self.last_zxid;
            wire.drain(|header, body| {
                *last_zxid = header.zxid.max(*last_zxid);
                if header.xid == XID {
                    answer = Some(read(header, body)?);
                }
                Ok::<(), Error>(())
            })?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }
}
