//! The users that count at the moment.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use quenda_frontend::{NONCE_BYTES, Password, SaslUsers};
use tracing::error;

use super::source::{SourceError, UserSource, Users};

/// The user whom a password of the configuration is for.
const SUPER: &str = "super";

/// Users from a file, read again when it changes.
#[derive(Debug)]
pub struct Accounts {
    source: UserSource,
    /// Counts instead of the password of the user `super`, if the file has one.
    super_password: Option<Password>,
    /// `None` if the file has no section for this server.
    users: RwLock<Option<Arc<Users>>>,
    /// Whether there are any, to be asked often.
    open: AtomicBool,
    /// What the file was like when it was read.
    read: Mutex<Option<Fingerprint>>,
}

/// What became of the users.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// The file is as it was.
    None,
    /// It was read; so many users are in it, or it has no section for this server.
    Read(Option<usize>),
}

/// What a file that changes is known by.
#[derive(Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Fingerprint {
    fn take(path: &Path) -> Option<Fingerprint> {
        let found = fs::metadata(path).ok()?;
        Some(Fingerprint {
            device: found.dev(),
            inode: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

impl Accounts {
    /// Reads the file.
    ///
    /// # Errors
    /// As for [`UserSource::read`].
    pub fn load(
        source: UserSource,
        super_password: Option<Password>,
    ) -> Result<Accounts, SourceError> {
        let read = Fingerprint::take(source.path());
        let users = source.read()?;
        Ok(Accounts {
            source,
            super_password,
            open: AtomicBool::new(users.is_some()),
            users: RwLock::new(users.map(Arc::new)),
            read: Mutex::new(read),
        })
    }

    /// Where they come from.
    pub fn source(&self) -> &UserSource {
        &self.source
    }

    /// Whether anybody can authenticate: the file has a section for this server.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Reads the file again if it has changed. After an error the users are those that they were, and the file is not
    /// read again before it changes once more; at the next call if the system did not give it.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn refresh(&self) -> Result<Change, SourceError> {
        let found = Fingerprint::take(self.source.path());
        let mut read = self.read.lock();
        if found.is_some() && *read == found {
            return Ok(Change::None);
        }
        *read = found;
        let users = self.source.read().inspect_err(|error| {
            if error.may_pass() {
                *read = None;
            }
        })?;
        let users = users.map(Arc::new);
        let count = users.as_ref().map(|users| users.len());
        *self.users.write() = users;
        self.open.store(count.is_some(), Ordering::Relaxed);
        Ok(Change::Read(count))
    }
}

impl SaslUsers for Accounts {
    fn nonce(&self) -> [u8; NONCE_BYTES] {
        let mut bytes = [0; NONCE_BYTES];
        if let Err(failure) = getrandom::fill(&mut bytes) {
            // A challenge that can be foreseen would let a recorded answer in once more.
            error!(%failure, "the system gives no random bytes");
            std::process::abort();
        }
        bytes
    }

    fn password(&self, user: &str) -> Option<Password> {
        let users = self.users.read().clone()?;
        let password = users.get(user)?;
        match &self.super_password {
            Some(configured) if user == SUPER => Some(configured.clone()),
            _ => Some(password.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(path: &Path, super_password: Option<&str>) -> Accounts {
        let source = UserSource::Plain(path.to_owned());
        Accounts::load(source, super_password.map(Password::new)).expect("users")
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        fs::write(&path, "bob: 1").expect("a file");
        let accounts = accounts(&path, None);
        assert_eq!(accounts.refresh().expect("read"), Change::None);
        assert_eq!(accounts.password("bob"), Some(Password::new("1")));

        fs::write(&path, "bob: 22\neve: 3").expect("a file");
        assert_eq!(accounts.refresh().expect("read"), Change::Read(Some(2)));
        assert_eq!(accounts.password("bob"), Some(Password::new("22")));

        fs::write(&path, "bob").expect("a file");
        assert!(accounts.refresh().is_err());
        assert_eq!(accounts.refresh().expect("said once"), Change::None);
        fs::remove_file(&path).expect("removed");
        assert!(accounts.refresh().is_err());
        assert!(accounts.refresh().is_err(), "what may pass is tried again");
        assert_eq!(accounts.password("bob"), Some(Password::new("22")));

        fs::write(&path, "eve: 3").expect("a file");
        assert_eq!(accounts.refresh().expect("read"), Change::Read(Some(1)));
        assert_eq!(accounts.password("bob"), None);
    }

    #[test]
    fn the_configured_password_of_super_counts_if_there_is_such_a_user() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        fs::write(&path, "super: file\nbob: 1").expect("a file");
        let secret = Some(Password::new("configured"));
        assert_eq!(
            accounts(&path, Some("configured")).password("super"),
            secret
        );
        assert_eq!(
            accounts(&path, None).password("super"),
            Some(Password::new("file"))
        );
        fs::write(&path, "bob: 1").expect("a file");
        assert_eq!(accounts(&path, Some("configured")).password("super"), None);
    }

    #[test]
    fn no_two_nonces_are_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        fs::write(&path, "").expect("a file");
        let accounts = accounts(&path, None);
        assert_ne!(accounts.nonce(), accounts.nonce());
    }
}
