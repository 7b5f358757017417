//! A wire between two members that can be cut, silenced or spoiled.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Forwards connections to one address.
pub struct Proxy {
    pub address: SocketAddr,
    wire: Arc<Wire>,
}

struct Wire {
    to: SocketAddr,
    cut: Mutex<CancellationToken>,
    /// Bytes from the far side after which all connections are cut once.
    cut_after: AtomicU64,
    /// Bytes from the far side after which one bit is flipped once.
    flip_after: AtomicU64,
    /// Bytes from the far side so far.
    carried: AtomicU64,
    /// All of them.
    bytes: Mutex<Vec<u8>>,
}

impl Proxy {
    pub async fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let wire = Arc::new(Wire {
            to,
            cut: Mutex::default(),
            cut_after: u64::MAX.into(),
            flip_after: u64::MAX.into(),
            carried: 0.into(),
            bytes: Mutex::default(),
        });
        let shared = Arc::clone(&wire);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, Arc::clone(&shared)));
            }
        });
        Proxy { address, wire }
    }

    /// Breaks all connections that are open.
    pub fn cut(&self) {
        self.wire.cut();
    }

    /// Breaks them when this many more bytes came from the far side.
    pub fn cut_after(&self, bytes: u64) {
        let at = self.carried() + bytes;
        self.wire.cut_after.store(at, Ordering::SeqCst);
    }

    /// Flips a bit when this many more bytes came from the far side.
    pub fn flip_after(&self, bytes: u64) {
        let at = self.carried() + bytes;
        self.wire.flip_after.store(at, Ordering::SeqCst);
    }

    pub fn has_cut(&self) -> bool {
        self.wire.cut_after.load(Ordering::SeqCst) == u64::MAX
    }

    pub fn has_flipped(&self) -> bool {
        self.wire.flip_after.load(Ordering::SeqCst) == u64::MAX
    }

    /// Whether these bytes have come from the far side.
    pub fn has_carried(&self, bytes: &[u8]) -> bool {
        let carried = self.wire.bytes.lock();
        carried.windows(bytes.len()).any(|window| window == bytes)
    }

    pub fn carried(&self) -> u64 {
        self.wire.carried.load(Ordering::SeqCst)
    }
}

impl Wire {
    fn cut(&self) {
        std::mem::take(&mut *self.cut.lock()).cancel();
    }

    /// Looks at bytes from the far side; false when they are not to be forwarded.
    fn pass(&self, bytes: &mut [u8]) -> bool {
        let end = self.carried.fetch_add(bytes.len() as u64, Ordering::SeqCst) + bytes.len() as u64;
        self.bytes.lock().extend_from_slice(bytes);
        if end > self.flip_after.load(Ordering::SeqCst) {
            self.flip_after.store(u64::MAX, Ordering::SeqCst);
            bytes[bytes.len() / 2] ^= 1;
        }
        if end > self.cut_after.load(Ordering::SeqCst) {
            self.cut_after.store(u64::MAX, Ordering::SeqCst);
            self.cut();
            return false;
        }
        true
    }
}

async fn carry(mut near: TcpStream, wire: Arc<Wire>) {
    let cut = wire.cut.lock().clone();
    let Ok(mut far) = TcpStream::connect(wire.to).await else {
        return;
    };
    let (mut near_read, mut near_write) = near.split();
    let (mut far_read, mut far_write) = far.split();
    let there = async {
        let copied = tokio::io::copy(&mut near_read, &mut far_write).await;
        copied.is_ok() && far_write.shutdown().await.is_ok()
    };
    let back = async {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match far_read.read(&mut buffer).await {
                Ok(0) | Err(_) => return near_write.shutdown().await.is_ok(),
                Ok(count) => {
                    let bytes = &mut buffer[..count];
                    if !wire.pass(bytes) || near_write.write_all(bytes).await.is_err() {
                        return false;
                    }
                }
            }
        }
    };
    tokio::select! {
        _ = async { tokio::join!(there, back) } => {}
        () = cut.cancelled() => {}
    }
}
