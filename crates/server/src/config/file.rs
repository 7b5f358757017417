//! Files of settings, which are short.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

use crate::limits::CONFIG_FILE_MAX;

/// All of a file.
///
/// # Errors
/// It cannot be read, or is longer than any configuration.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
