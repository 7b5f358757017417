//! Members of a test: a transport, and everything it told.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_node::PeerState;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::super::handshake::{Answer, Channel, Hello};
use super::super::identity::About;
use super::super::resolve::{Resolve, SystemResolver};
use super::super::{
    Delivery, Facts, Identity, ImageError, ImageSink, Images, PeerEvents, Peers, Setup, listen,
};

use crate::config::LinkSettings;
use crate::tls::Tls;

/// How long a condition may take to become true.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The cluster of most tests.
pub const CLUSTER: u64 = 0xc0ffee;

/// What a transport told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Frame(u64, Bytes),
    Up(u64, PeerState),
    Lost(u64),
    Unreachable(u64),
    Fetched(u64, bool),
}

/// Everything that a transport told, in order.
#[derive(Debug, Default)]
pub struct Events {
    all: Mutex<Vec<Event>>,
    /// Deliveries of this peer are kept, as by a core that does not get to them.
    stuck: Mutex<Option<u64>>,
    kept: Mutex<Vec<Delivery>>,
}

impl Events {
    pub fn all(&self) -> Vec<Event> {
        self.all.lock().clone()
    }

    pub fn has(&self, event: &Event) -> bool {
        self.all.lock().contains(event)
    }

    pub fn count(&self, event: &Event) -> usize {
        let all = self.all.lock();
        all.iter().filter(|known| *known == event).count()
    }

    pub fn forget(&self) {
        self.all.lock().clear();
    }

    pub fn frames_of(&self, peer: u64) -> Vec<Bytes> {
        let all = self.all.lock();
        let frames = all.iter().filter_map(|event| match event {
            Event::Frame(from, frame) if *from == peer => Some(frame.clone()),
            _ => None,
        });
        frames.collect()
    }

    pub fn keep(&self, peer: u64) {
        *self.stuck.lock() = Some(peer);
    }

    pub fn kept_bytes(&self) -> usize {
        let kept = self.kept.lock();
        let frames = kept.iter().flat_map(|delivery| &delivery.frames);
        frames.map(Bytes::len).sum()
    }

    pub fn release(&self) {
        *self.stuck.lock() = None;
        self.kept.lock().clear();
    }
}

impl PeerEvents for Events {
    fn deliver(&self, delivery: Delivery) {
        let frames = delivery.frames.iter().cloned();
        let frames = frames.map(|frame| Event::Frame(delivery.from, frame));
        self.all.lock().extend(frames);
        if *self.stuck.lock() == Some(delivery.from) {
            self.kept.lock().push(delivery);
        }
    }

    fn up(&self, peer: u64, state: PeerState) {
        self.all.lock().push(Event::Up(peer, state));
    }

    fn lost(&self, peer: u64) {
        self.all.lock().push(Event::Lost(peer));
    }

    fn unreachable(&self, peer: u64) {
        self.all.lock().push(Event::Unreachable(peer));
    }

    fn fetched(&self, index: u64, complete: bool) {
        self.all.lock().push(Event::Fetched(index, complete));
    }
}

/// A store without images.
struct NoImages;

impl Images for NoImages {
    fn read(&self, _: u64, _: u32, _: u64, _: usize) -> Result<Bytes, ImageError> {
        Err(ImageError::Gone)
    }

    fn receive(&self, _: &[u8]) -> Result<Box<dyn ImageSink>, ImageError> {
        Err(ImageError::Gone)
    }
}

/// What a member of a test is made of.
pub struct Plan {
    pub id: u64,
    pub incarnation: u64,
    pub servers: u64,
    pub facts: Facts,
    pub images: Arc<dyn Images>,
    pub resolver: Arc<dyn Resolve>,
    pub links: LinkSettings,
    pub tls: Option<Arc<Tls>>,
    pub port: u16,
}

impl Plan {
    pub fn member(id: u64) -> Plan {
        Plan {
            id,
            incarnation: 1,
            servers: 1,
            facts: member_of(CLUSTER),
            images: Arc::new(NoImages),
            resolver: Arc::new(SystemResolver),
            links: LinkSettings::default(),
            tls: None,
            port: 0,
        }
    }

    pub fn start(self) -> Member {
        let own = [(Some("127.0.0.1".to_owned()), self.port)];
        let listeners = listen(&own, &SystemResolver).expect("a port");
        self.start_on(listeners)
    }

    fn start_on(self, listeners: Vec<TcpListener>) -> Member {
        let address = listeners[0].local_addr().expect("an address");
        let events = Arc::new(Events::default());
        let identity = Identity::new(self.id, self.incarnation, self.servers, self.facts);
        let identity = Arc::new(identity);
        let setup = Setup {
            identity: Arc::clone(&identity),
            listeners,
            events: Arc::clone(&events) as Arc<dyn PeerEvents>,
            images: self.images,
            resolver: self.resolver,
            links: self.links,
            tls: self.tls,
        };
        Member {
            id: self.id,
            address,
            peers: Peers::start(setup, &Handle::current()).expect("a transport"),
            events,
            identity,
        }
    }
}

/// A member of a test.
pub struct Member {
    pub id: u64,
    pub address: SocketAddr,
    pub peers: Peers,
    pub events: Arc<Events>,
    pub identity: Arc<Identity>,
}

impl Member {
    pub fn start(id: u64) -> Member {
        Plan::member(id).start()
    }

    /// Dials exactly these.
    pub fn dial(&self, others: &[(u64, SocketAddr)]) {
        let named = |(id, address): &(u64, SocketAddr)| {
            (*id, vec![(address.ip().to_string(), address.port())])
        };
        self.peers.set_members(others.iter().map(named).collect());
    }

    /// Waits until a frame is taken for the peer, and sends it.
    pub async fn send(&self, to: u64, frame: Bytes) {
        until("a frame is taken", || self.peers.send(to, frame.clone())).await;
    }

    pub async fn until_told(&self, event: Event) {
        let told = || self.events.has(&event);
        until(&format!("member {} is told {event:?}", self.id), told).await;
    }

    pub async fn until_up(&self, peer: u64) {
        self.until_told(Event::Up(peer, PeerState::Member)).await;
    }

    pub fn is_up(&self, peer: u64) -> bool {
        self.peers.seen().iter().any(|(id, ..)| *id == peer)
    }
}

/// Dials each other, and waits until all are connected in both directions.
pub async fn connect(members: &[&Member]) {
    let all: Vec<_> = members
        .iter()
        .map(|member| (member.id, member.address))
        .collect();
    for member in members {
        member.dial(&all);
    }
    for member in members {
        for other in members.iter().filter(|other| other.id != member.id) {
            let up = Event::Up(other.id, PeerState::Member);
            let both = || member.events.count(&up) >= 2;
            until("both directions are connected", both).await;
        }
    }
}

/// Waits for a condition.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn member_of(cluster: u64) -> Facts {
    Facts {
        cluster,
        state: PeerState::Member,
    }
}

/// A member's first word, said by hand.
pub fn hello(from: u64, to: u64, incarnation: u64) -> Hello {
    Hello {
        channel: Channel::Messages,
        from,
        to,
        about: About {
            facts: member_of(CLUSTER),
            servers: 1,
            incarnation,
        },
    }
}

/// A connection by hand, and what the other side answers.
pub async fn shake(address: SocketAddr, hello: Hello) -> io::Result<(TcpStream, Answer)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&hello.encode()).await?;
    let answer = Answer::read(&mut stream).await.map_err(io::Error::other)?;
    Ok((stream, answer))
}
