//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Exit code of a program that Ctrl-C ended: 128 and the number of SIGINT.
const EXIT_CODE: i32 = 130;

/// Counts how often Ctrl-C was pressed. Clones share it.
#[derive(Debug, Clone)]
pub struct Interrupts {
    pressed: watch::Sender<u64>,
    busy: Arc<AtomicBool>,
    /// On a terminal it ends the command alone; otherwise the program.
    interactive: bool,
}

impl Interrupts {
    /// None so far.
    pub fn new(interactive: bool) -> Self {
        Interrupts {
            pressed: watch::Sender::new(0),
            busy: Arc::default(),
            interactive,
        }
    }

    /// For those who end on it.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.pressed.subscribe()
    }

    /// Whether it was pressed.
    pub fn any(&self) -> bool {
        *self.pressed.borrow() > 0
    }

    /// Counts from now on. A program that just waits for input ends, and one that is told twice.
    pub async fn listen(self) {
        while tokio::signal::ctrl_c().await.is_ok() {
            if !self.interactive && (self.any() || !self.busy.load(Ordering::Relaxed)) {
                std::process::exit(EXIT_CODE);
            }
            self.pressed.send_modify(|count| *count += 1);
        }
    }

    /// Waits for something that ends on Ctrl-C by itself.
    pub async fn during<T>(&self, act: impl Future<Output = T>) -> T {
        self.busy.store(true, Ordering::Relaxed);
        let result = act.await;
        self.busy.store(false, Ordering::Relaxed);
        result
    }
}
