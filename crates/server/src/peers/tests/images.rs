//! Images from one member to another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use quenda_node::PeerState;
use tokio::sync::Semaphore;

use super::super::{Facts, ImageError, ImageSink, Images};
use super::harness::{CLUSTER, Event, Member, Plan, member_of, until};
use super::proxy::Proxy;
use super::secure::{secured, settings};
use crate::config::LinkSettings;
use crate::limits::IMAGE_CHUNK_BYTES;
use crate::tls::Tls;

const INDEX: u64 = 77;

/// A store with one image, and one that receives it. The manifest is the lengths of its files.
#[derive(Default)]
struct Shelf {
    files: Mutex<HashMap<(u64, u32), Vec<u8>>>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    /// How many sinks there were: only the last one may write.
    sinks: Arc<AtomicU64>,
    finished: Arc<AtomicU64>,
    read: AtomicU64,
}

fn files() -> Vec<Vec<u8>> {
    let lengths = [
        1,
        IMAGE_CHUNK_BYTES,
        0,
        5 * IMAGE_CHUNK_BYTES + 17,
        100,
        3 << 20,
    ];
    let mut state = 1u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    lengths
        .iter()
        .map(|length| (0..*length).map(|_| byte()).collect())
        .collect()
}

fn manifest() -> Bytes {
    let lengths = files().into_iter().map(|file| file.len() as u64);
    let bytes: Vec<u8> = lengths.flat_map(u64::to_be_bytes).collect();
    bytes.into()
}

impl Shelf {
    fn full() -> Shelf {
        let shelf = Shelf::default();
        for (number, file) in files().into_iter().enumerate() {
            shelf.files.lock().insert((INDEX, number as u32), file);
        }
        shelf
    }

    fn shorten(&self, file: u32) {
        let mut files = self.files.lock();
        files.get_mut(&(INDEX, file)).expect("a file").truncate(100);
    }
}

impl Images for Shelf {
    fn read(&self, index: u64, file: u32, offset: u64, max: usize) -> Result<Bytes, ImageError> {
        let files = self.files.lock();
        let bytes = files.get(&(index, file)).ok_or(ImageError::Gone)?;
        let begin = bytes.len().min(offset as usize);
        let end = bytes.len().min(begin + max);
        self.read.fetch_add((end - begin) as u64, Ordering::SeqCst);
        Ok(Bytes::copy_from_slice(&bytes[begin..end]))
    }

    fn receive(&self, manifest: &[u8]) -> Result<Box<dyn ImageSink>, ImageError> {
        let lengths = manifest.chunks(8).map(|bytes| {
            let bytes = bytes.try_into().expect("eight bytes");
            u64::from_be_bytes(bytes) as usize
        });
        let lengths: Vec<usize> = lengths.collect();
        let mut received = self.received.lock();
        *received = vec![Vec::new(); lengths.len()];
        Ok(Box::new(Sink {
            number: self.sinks.fetch_add(1, Ordering::SeqCst) + 1,
            sinks: Arc::clone(&self.sinks),
            lengths,
            received: Arc::clone(&self.received),
            finished: Arc::clone(&self.finished),
        }))
    }
}

struct Sink {
    number: u64,
    sinks: Arc<AtomicU64>,
    lengths: Vec<usize>,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    finished: Arc<AtomicU64>,
}

impl ImageSink for Sink {
    fn next(&self) -> Option<(u32, u64, usize)> {
        let received = self.received.lock();
        let pairs = self.lengths.iter().zip(received.iter()).enumerate();
        let mut missing = pairs.filter(|(_, (length, file))| file.len() < **length);
        let (number, (length, file)) = missing.next()?;
        Some((number as u32, file.len() as u64, length - file.len()))
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), ImageError> {
        let mut received = self.received.lock();
        if self.number != self.sinks.load(Ordering::SeqCst) {
            return Err(ImageError::Failed("a newer one is received".to_owned()));
        }
        let kept = &mut received[file as usize];
        assert_eq!(kept.len() as u64, offset, "a piece out of order");
        assert!(bytes.len() <= IMAGE_CHUNK_BYTES);
        kept.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), ImageError> {
        self.finished.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

struct Pair {
    source: Member,
    shelf: Arc<Shelf>,
    receiver: Member,
    target: Arc<Shelf>,
    proxy: Proxy,
}

async fn pair() -> Pair {
    pair_with(None).await
}

async fn pair_with(tls: Option<Arc<Tls>>) -> Pair {
    let shelf = Arc::new(Shelf::full());
    let target = Arc::new(Shelf::default());
    let plan = |id, images: &Arc<Shelf>| Plan {
        images: Arc::clone(images) as Arc<dyn Images>,
        tls: tls.clone(),
        ..Plan::member(id)
    };
    let source = plan(1, &shelf).start();
    let receiver = plan(2, &target).start();
    let proxy = Proxy::start(source.address).await;
    receiver.dial(&[(1, proxy.address)]);
    Pair {
        source,
        shelf,
        receiver,
        target,
        proxy,
    }
}

impl Pair {
    async fn expect_all(&self) {
        self.receiver.until_told(Event::Fetched(INDEX, true)).await;
        assert!(*self.target.received.lock() == files(), "the files differ");
        assert_eq!(self.target.finished.load(Ordering::SeqCst), 1);
        let told = Event::Fetched(INDEX, true);
        assert_eq!(self.receiver.events.count(&told), 1);
    }

    fn read(&self) -> u64 {
        self.shelf.read.load(Ordering::SeqCst)
    }
}

fn size() -> u64 {
    files().iter().map(|file| file.len() as u64).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_arrives_whole() {
    for tls in [None, Some(secured(&settings()))] {
        let pair = pair_with(tls).await;
        pair.receiver.peers.fetch(1, INDEX, manifest());
        pair.expect_all().await;
        assert_eq!(pair.read(), size(), "nothing was read twice");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_over_tls_goes_on_where_it_broke_and_shows_nothing() {
    let pair = pair_with(Some(secured(&settings()))).await;
    pair.receiver.until_up(1).await;
    pair.proxy.cut_after(1 << 20);
    pair.receiver.peers.fetch(1, INDEX, manifest());
    until("the wire is cut", || pair.proxy.has_cut()).await;
    pair.proxy.flip_after(1 << 20);
    until("a bit is flipped", || pair.proxy.has_flipped()).await;
    pair.expect_all().await;
    let plain = &files()[3][..64];
    assert!(!pair.proxy.has_carried(plain), "it can be read on the wire");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_goes_on_where_it_broke() {
    let pair = pair().await;
    pair.receiver.until_up(1).await;
    let mut breaks = 0;
    pair.proxy.cut_after(1 << 20);
    pair.receiver.peers.fetch(1, INDEX, manifest());
    while !pair.receiver.events.has(&Event::Fetched(INDEX, true)) {
        if pair.proxy.has_cut() {
            breaks += 1;
            pair.proxy.cut_after(3 << 20);
        }
        tokio::task::yield_now().await;
    }
    pair.expect_all().await;
    assert!(breaks >= 3, "{breaks} breaks");
    // What was on its way when it broke comes again, and no more: some pieces and what the sockets hold.
    assert!(pair.read() < size() + breaks * (12 << 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spoiled_piece_is_not_kept() {
    let pair = pair().await;
    pair.receiver.until_up(1).await;
    pair.proxy.flip_after(2 << 20);
    pair.receiver.peers.fetch(1, INDEX, manifest());
    pair.expect_all().await;
    assert!(pair.proxy.has_flipped());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_starts_again_is_found_again() {
    let pair = pair().await;
    pair.receiver.until_up(1).await;
    pair.proxy.cut_after(2 << 20);
    pair.receiver.peers.fetch(1, INDEX, manifest());
    until("it is under way", || pair.proxy.has_cut()).await;
    pair.source.peers.stop().await;
    let again = Plan {
        incarnation: 2,
        port: pair.source.address.port(),
        images: Arc::clone(&pair.shelf) as Arc<dyn Images>,
        ..Plan::member(1)
    };
    let _again = again.start();
    pair.expect_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_is_gone_is_told() {
    let pair = pair().await;
    pair.shelf.files.lock().remove(&(INDEX, 3));
    pair.receiver.peers.fetch(1, INDEX, manifest());
    pair.receiver.until_told(Event::Fetched(INDEX, false)).await;
    assert_eq!(pair.target.finished.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_too_short_is_told() {
    let pair = pair().await;
    pair.shelf.shorten(3);
    pair.receiver.peers.fetch(1, INDEX, manifest());
    pair.receiver.until_told(Event::Fetched(INDEX, false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_fetched_from_the_cluster_that_offers_it() {
    let shelf = Arc::new(Shelf::full());
    let theirs = Plan {
        images: Arc::clone(&shelf) as Arc<dyn Images>,
        facts: member_of(CLUSTER + 1),
        ..Plan::member(1)
    };
    let theirs = theirs.start();
    let empty = Plan {
        images: Arc::new(Shelf::default()),
        facts: Facts {
            cluster: 0,
            state: PeerState::Joining,
        },
        ..Plan::member(2)
    };
    let empty = empty.start();
    // The member of our cluster dials; our line for it leads to that of another one, which was started earlier.
    let ours = Plan {
        incarnation: 2,
        ..Plan::member(1)
    };
    let ours = ours.start();
    ours.dial(&[(2, empty.address)]);
    empty.until_up(1).await;
    empty.dial(&[(1, theirs.address)]);
    empty.peers.fetch(1, INDEX, manifest());
    empty.until_told(Event::Fetched(INDEX, false)).await;
    assert_eq!(shelf.read.load(Ordering::SeqCst), 0, "nothing was read");
}

/// `initLimit`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_stands_still_is_given_up_when_the_settings_say() {
    let receiver = Plan {
        images: Arc::new(Shelf::default()),
        links: LinkSettings {
            image_patience: Duration::from_millis(300),
            ..LinkSettings::default()
        },
        ..Plan::member(2)
    };
    let receiver = receiver.start();
    let source = Plan::member(1).start();
    receiver.dial(&[(1, source.address)]);
    receiver.until_up(1).await;
    source.peers.stop().await;
    receiver.peers.fetch(1, INDEX, manifest());
    receiver.until_told(Event::Fetched(INDEX, false)).await;
}

/// A source whose reads wait for a permit each.
struct Gated {
    shelf: Shelf,
    gate: Semaphore,
    /// Reads under way, now and at most.
    waiting: AtomicU64,
    most: AtomicU64,
}

impl Images for Gated {
    fn read(&self, index: u64, file: u32, offset: u64, max: usize) -> Result<Bytes, ImageError> {
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(waiting, Ordering::SeqCst);
        let permit = tokio::runtime::Handle::current().block_on(self.gate.acquire());
        permit.expect("open").forget();
        let bytes = self.shelf.read(index, file, offset, max);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        bytes
    }

    fn receive(&self, manifest: &[u8]) -> Result<Box<dyn ImageSink>, ImageError> {
        self.shelf.receive(manifest)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_member_is_fed_at_a_time_and_its_newest_request_counts() {
    let gated = Arc::new(Gated {
        shelf: Shelf::full(),
        gate: Semaphore::new(2),
        waiting: AtomicU64::new(0),
        most: AtomicU64::new(0),
    });
    let plan = Plan {
        images: Arc::clone(&gated) as Arc<dyn Images>,
        ..Plan::member(1)
    };
    let source = plan.start();
    let receiver = |id| {
        let shelf = Arc::new(Shelf::default());
        let plan = Plan {
            images: Arc::clone(&shelf) as Arc<dyn Images>,
            ..Plan::member(id)
        };
        let member = plan.start();
        member.dial(&[(1, source.address)]);
        (member, shelf)
    };
    let ((two, of_two), (three, of_three)) = (receiver(2), receiver(3));
    two.peers.fetch(1, INDEX, manifest());
    until("the first one is fed", || {
        !of_two.received.lock().is_empty() && !of_two.received.lock()[0].is_empty()
    })
    .await;
    three.peers.fetch(1, INDEX, manifest());
    until("the second one has asked", || {
        of_three.received.lock().len() > 1
    })
    .await;
    // The first one asks anew: it does not wait for itself. Only that request has an end.
    two.peers.fetch(1, INDEX, manifest());
    gated.gate.add_permits(1 << 20);
    two.until_told(Event::Fetched(INDEX, true)).await;
    three.until_told(Event::Fetched(INDEX, true)).await;
    assert_eq!(two.events.count(&Event::Fetched(INDEX, true)), 1);
    assert!(*of_two.received.lock() == files());
    assert!(*of_three.received.lock() == files());
}

/// `leader.maxConcurrentSnapSyncs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_members_are_fed_at_a_time_as_the_settings_say() {
    let gated = Arc::new(Gated {
        shelf: Shelf::full(),
        gate: Semaphore::new(0),
        waiting: AtomicU64::new(0),
        most: AtomicU64::new(0),
    });
    let plan = Plan {
        images: Arc::clone(&gated) as Arc<dyn Images>,
        links: LinkSettings {
            image_feeds: 2,
            ..LinkSettings::default()
        },
        ..Plan::member(1)
    };
    let source = plan.start();
    let receivers = [2, 3, 4].map(|id| {
        let shelf = Arc::new(Shelf::default());
        let plan = Plan {
            images: Arc::clone(&shelf) as Arc<dyn Images>,
            ..Plan::member(id)
        };
        let member = plan.start();
        member.dial(&[(1, source.address)]);
        member.peers.fetch(1, INDEX, manifest());
        (member, shelf)
    });
    let has_some = |shelf: &Shelf| shelf.received.lock().iter().any(|file| !file.is_empty());
    let fed = || {
        let shelves = receivers.iter().map(|(_, shelf)| shelf);
        shelves.filter(|shelf| has_some(shelf)).count()
    };
    // Each file begins with a read, and two receivers wait for one each: a permit that is left is the third's.
    let waiting = || gated.waiting.load(Ordering::SeqCst);
    until("two of them wait for a piece", || waiting() == 2).await;
    gated.gate.add_permits(2);
    until("two of them have it", || fed() == 2).await;
    gated.gate.add_permits(1 << 20);
    for (member, shelf) in &receivers {
        member.until_told(Event::Fetched(INDEX, true)).await;
        assert!(*shelf.received.lock() == files());
    }
    assert_eq!(gated.most.load(Ordering::SeqCst), 2, "at one time");
}
