//! Files of settings, which are short.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::limits::CONFIG_FILE_MAX;

/// All of a file.
///
/// # Errors
/// It cannot be read, or is longer than any configuration; a pipe with a name, which nobody may ever write into.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    if is_named_pipe(path)? {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "it is a named pipe, and settings are read from files only",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(CONFIG_FILE_MAX + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > CONFIG_FILE_MAX {
        return Err(Error::new(
            ErrorKind::FileTooLarge,
            format!("it is longer than {CONFIG_FILE_MAX} bytes: is it a configuration?"),
        ));
    }
    Ok(bytes)
}

/// Pipes of a shell (`/dev/stdin`, `/dev/fd/63`) have somebody at their other end.
fn is_named_pipe(path: &Path) -> Result<bool> {
    let is_of_a_process = path.starts_with("/dev") || path.starts_with("/proc");
    Ok(!is_of_a_process && std::fs::metadata(path)?.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("zoo.cfg");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        let error = read(&path).expect_err("a pipe");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(read(Path::new("/dev/null")).expect("read"), b"");
    }

    #[test]
    fn what_does_not_end_is_not_read_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("zoo.cfg");
        let longest = CONFIG_FILE_MAX as usize;
        std::fs::write(&path, vec![b'#'; longest]).expect("written");
        assert_eq!(read(&path).expect("read").len(), longest);
        std::fs::write(&path, vec![b'#'; longest + 1]).expect("written");
        for path in [path.as_path(), Path::new("/dev/zero")] {
            let error = read(path).expect_err("too long");
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        }
    }
}
