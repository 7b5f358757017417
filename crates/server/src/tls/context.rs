//! What a handshake needs, built from the files and built again when they change.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::sync::Semaphore;
use tracing::info;

use super::certificate::Certificate;
use super::counters::Counters;
use super::dialing::Dialing;
use super::error::{Problem, TlsError};
use super::reload::Fingerprint;
use super::verifier::Verifier;
use super::{ec_key, store, suites};
use crate::config::{ClientAuth, Password, StoreSettings, TlsSettings};

/// TLS of this server.
#[derive(Debug)]
pub struct Tls {
    /// The settings.
    pub settings: TlsSettings,
    /// What became of handshakes with those who have connected.
    pub counters: Counters,
    /// What became of handshakes with those who were dialed.
    pub dialed: Counters,
    /// Turns of the calculations that handshakes need: they must not take every thread that serves connections.
    pub(super) turns: Semaphore,
    current: RwLock<Current>,
    /// When the certificate in use expires, in seconds since 1970.
    expires_s: AtomicU64,
    read: Mutex<Fingerprint>,
}

/// What handshakes are carried out with.
#[derive(Debug)]
struct Current {
    accepting: Arc<ServerConfig>,
    /// `None` if nobody is dialed.
    dialing: Option<Arc<Dialing>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them is missing, does not open, or holds no key or certificate that is usable now.
    pub fn load(settings: &TlsSettings) -> Result<Tls, TlsError> {
        let read = Fingerprint::take(settings);
        let (current, expires_s) = build(settings)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Tls {
            settings: settings.clone(),
            counters: Counters::default(),
            dialed: Counters::default(),
            turns: Semaphore::new((threads / 2).max(1)),
            current: RwLock::new(current),
            expires_s: AtomicU64::new(expires_s),
            read: Mutex::new(read),
        })
    }

    /// What the next handshake with one who has connected is carried out with.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().accepting)
    }

    /// What the next handshake with one who is dialed is carried out with; `None` if nobody is.
    pub(super) fn dialing(&self) -> Option<Arc<Dialing>> {
        self.current.read().dialing.clone()
    }

    /// When the certificate in use expires, in seconds since 1970.
    pub fn expires_s(&self) -> u64 {
        self.expires_s.load(Relaxed)
    }

    /// Reads the files again if they have changed; true if they had. After an error nothing has changed, and the files
    /// are not read again before they change once more, or at the next call if it may pass by itself.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let found = Fingerprint::take(&self.settings);
        let mut read = self.read.lock();
        if *read == found {
            return Ok(false);
        }
        *read = found;
        let (fresh, expires_s) = build(&self.settings).inspect_err(|error| {
            if error.may_pass() {
                *read = Fingerprint::default();
            }
        })?;
        *self.current.write() = fresh;
        self.expires_s.store(expires_s, Relaxed);
        Ok(true)
    }
}

/// What handshakes are carried out with, and when its certificate expires.
fn build(settings: &TlsSettings) -> Result<(Current, u64), TlsError> {
    // What may have to be tried again comes before anything that is said aloud.
    let key_store = &settings.key_store;
    let key = certified_key(key_store).map_err(|error| error.named(key_store))?;
    let trusted = settings.trust_store.as_ref();
    let trusted = trusted
        .map(|store| store::read_trusted(store).map_err(|error| error.named(store)))
        .transpose()?;
    let choice = suites::choose(settings)?;
    let provider = Arc::new(CryptoProvider {
        cipher_suites: choice.suites,
        ..default_provider()
    });
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&choice.versions)?;
    let judge = trusted.map(|trusted| verifier(trusted, settings, &provider));
    let judge = judge.transpose()?;
    let builder = match &judge {
        Some(judge) if settings.client_auth != ClientAuth::None => {
            builder.with_client_cert_verifier(Arc::clone(judge) as Arc<_>)
        }
        Some(_) | None => builder.with_no_client_auth(),
    };
    let expires_s = announce(&key, &settings.key_store.path);
    let key = Arc::new(SingleCertAndKey::from(key));
    let dialing = match (settings.dialing, judge) {
        (Some(how), Some(judge)) => {
            let key = Arc::clone(&key);
            let provider = Arc::clone(&provider);
            let dialing = Dialing::new(key, judge, how.verify_host, provider, &choice.versions)?;
            Some(Arc::new(dialing))
        }
        (Some(_), None) | (None, _) => None,
    };
    let mut config = builder.with_cert_resolver(key);
    // Every connection proves its certificate anew: one that is not trusted any more is out at once.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.ignore_client_order = !settings.cipher_suites.is_empty();
    let current = Current {
        accepting: Arc::new(config),
        dialing,
    };
    Ok((current, expires_s))
}

/// The key of a store with its certificates: usable, valid now, and of one pair.
///
/// # Errors
/// They are not, or the store cannot be read.
pub fn certified_key(store: &StoreSettings) -> Result<CertifiedKey, TlsError> {
    checked(store::read_key(store)?, &store.path)
}

/// The same from two files in PEM.
///
/// # Errors
/// As [`certified_key`].
pub fn certified_pair(
    certificates: &Path,
    key: &Path,
    password: &Password,
) -> Result<CertifiedKey, TlsError> {
    checked(store::read_pair(certificates, key, password)?, key)
}

fn checked(entry: store::KeyEntry, path: &Path) -> Result<CertifiedKey, TlsError> {
    let certificate = Certificate::parse(&entry.chain[0]).map_err(|problem| problem.of(path))?;
    certificate
        .demand_validity()
        .map_err(|problem| problem.of(path))?;
    let key = any_supported_type(&entry.key)
        .or_else(|error| {
            let completed = ec_key::completed(&entry.key, &certificate.public_key());
            completed.map_or(Err(error), |key| any_supported_type(&key))
        })
        .map_err(|error| Problem::UnusableKey(error.to_string()).of(path))?;
    let is_pair = key
        .public_key()
        .is_none_or(|key| key == certificate.public_key());
    if !is_pair {
        return Err(Problem::KeyMismatch(certificate.subject_text().to_owned()).of(path));
    }
    Ok(CertifiedKey::new(entry.chain, key))
}

/// Says which certificate is used, and gives when it expires.
fn announce(key: &CertifiedKey, path: &Path) -> u64 {
    let certificate = key.cert.first().map(|own| Certificate::parse(own));
    let Some(Ok(certificate)) = certificate else {
        return 0;
    };
    info!(
        file = %path.display(),
        subject = certificate.subject_text(),
        valid_until = certificate.valid_until(),
        "TLS certificate of this server"
    );
    certificate.expires_s()
}

fn verifier(
    trusted: Vec<CertificateDer<'static>>,
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<Verifier>, TlsError> {
    let demand = settings.client_auth == ClientAuth::Need;
    let algorithms = provider.signature_verification_algorithms;
    let verifier = Verifier::new(trusted, demand, algorithms, Arc::clone(provider));
    let verifier = verifier.map_err(|error| {
        let store = settings.trust_store.as_ref();
        let path = store.map_or(Path::new("ssl.trustStore"), |store| &store.path);
        Problem::malformed("store of usable certificates", error).of(path)
    })?;
    Ok(Arc::new(verifier))
}
