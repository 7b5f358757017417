//! Files with keys and passwords, which are read at the start and whenever they change.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// All of a file. A pipe or a device would keep the reader waiting for ever; links are followed.
///
/// # Errors
/// It cannot be read, or is something else than a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "this is no ordinary file",
        ));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_what_ends_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("key.pem"), b"key").expect("written");
        symlink(path("key.pem"), path("link")).expect("linked");
        let _socket = UnixListener::bind(path("socket")).expect("a socket");
        assert_eq!(read(&path("link")).expect("read"), b"key");
        for other in [path("socket"), folder.path().to_owned(), "/dev/zero".into()] {
            let error = read(&other).expect_err("no file").to_string();
            assert_eq!(error, "this is no ordinary file");
        }
        let missing = read(&path("none")).expect_err("nothing there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
