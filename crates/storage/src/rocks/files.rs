//! Small steps on directories, each of which a crash may follow.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The names in a directory; none if it does not exist.
pub(super) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// A file as it is; `None` if it does not exist.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Puts a small file there in one piece, durable but for its name: under another name first.
pub(super) fn replace(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    let unfinished = directory.join(format!("{name}.new"));
    fs::write(&unfinished, text)?;
    File::open(&unfinished)?.sync_all()?;
    step("a new file is written");
    fs::rename(&unfinished, directory.join(name))?;
    step("it has replaced the old one");
    Ok(())
}

/// Removes a directory with everything in it, or a file; whether there was one.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A place between two steps on the disk. Tests look at what a crash here would leave.
#[cfg(not(test))]
pub(super) fn step(_name: &'static str) {}

#[cfg(test)]
pub(super) use test_steps::step;

#[cfg(test)]
pub(super) mod test_steps {
    use std::cell::RefCell;

    type Hook = Box<dyn FnMut(&'static str)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    pub(in super::super) fn step(name: &'static str) {
        HOOK.with_borrow_mut(|hook| {
            if let Some(hook) = hook {
                hook(name);
            }
        });
    }

    /// Calls `hook` at each step that `work` takes on this thread.
    pub(in super::super) fn watch<T>(hook: Hook, work: impl FnOnce() -> T) -> T {
        HOOK.set(Some(hook));
        let result = work();
        HOOK.set(None);
        result
    }
}
