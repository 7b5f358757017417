//! How many bytes lie in the data directories, without waiting for the disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing::warn;

use crate::four_letter::DirectorySizes;
use crate::system::size_of_tree;

/// Looks at the disk in a thread of its own, one at a time: who asks while the disk does not answer gets what was seen last.
#[derive(Debug)]
pub struct DirectoryGauge {
    data: PathBuf,
    /// If it is apart from the data.
    log: Option<PathBuf>,
    state: Mutex<State>,
    measured: Condvar,
}

#[derive(Debug, Default)]
struct State {
    last: DirectorySizes,
    /// How often the disk has answered.
    answers: u64,
    /// Whether it is being asked.
    asking: bool,
}

impl DirectoryGauge {
    /// Nothing is looked at yet.
    pub fn new(data: PathBuf, log: Option<PathBuf>) -> Arc<DirectoryGauge> {
        Arc::new(DirectoryGauge {
            data,
            log,
            state: Mutex::default(),
            measured: Condvar::new(),
        })
    }

    /// The sizes now, or those seen last if the disk takes longer than `patience`; 0 if it has never answered.
    pub fn read(self: &Arc<Self>, patience: Duration) -> DirectorySizes {
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        if !state.asking {
            state.asking = self.ask();
        }
        let before = state.answers;
        while state.asking && state.answers == before {
            if self.measured.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.last
    }

    /// Starts a thread that measures; whether there is one.
    fn ask(self: &Arc<Self>) -> bool {
        let gauge = Arc::clone(self);
        let thread = std::thread::Builder::new().name("quenda-sizes".to_owned());
        match thread.spawn(move || gauge.measure()) {
            Ok(_) => true,
            Err(error) => {
                warn!(%error, "no thread to look at the data directories");
                false
            }
        }
    }

    fn measure(&self) {
        let data_bytes = size_of_tree(&self.data);
        let log_bytes = self.log.as_deref().map_or(data_bytes, size_of_tree);
        let mut state = self.state.lock();
        state.last = DirectorySizes {
            data_bytes,
            log_bytes,
        };
        state.answers += 1;
        state.asking = false;
        self.measured.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_moment() {
        let folder = tempfile::tempdir().expect("a folder");
        let gauge = DirectoryGauge::new(folder.path().to_owned(), None);
        for length in [3, 5] {
            std::fs::write(folder.path().join("file"), vec![0; length]).expect("written");
            let sizes = gauge.read(Duration::from_secs(30));
            let expected = DirectorySizes {
                data_bytes: length as u64,
                log_bytes: length as u64,
            };
            assert_eq!(sizes, expected);
        }
    }

    #[test]
    fn a_disk_that_does_not_answer_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), b"123").expect("written");
        let gauge = DirectoryGauge::new(folder.path().to_owned(), None);
        let seen = gauge.read(Duration::from_secs(30));
        // As if a thread were out there that does not come back.
        gauge.state.lock().asking = true;
        std::fs::write(folder.path().join("file"), b"12345").expect("written");
        assert_eq!(gauge.read(Duration::from_millis(1)), seen);
    }
}
