//! Who loads the server: requests, bytes and latency over the last minute by client, session, path and operation.
//!
//! Connections note their requests themselves ([`quenda_frontend::Observed`]) and hand the notes over in batches.
//! [`window::Window`] keeps a minute of them in bounded memory: tables are [`Sketch`]es, which name everybody whose share is
//! large however many there are. [`LoadReport`] is what an operator sees.

mod figures;
mod monitor;
mod named;
mod report;
mod reporter;
mod sketch;
mod throttle;
mod window;

pub use report::{
    Counts, Herd, Hot, HotRow, Load, LoadReport, LoadRow, LoadTotals, Misuse, MisuseKind,
    NamedRequest, SessionRow, Thresholds, WatchHot,
};

pub(crate) use figures::Heaviest;
pub(crate) use monitor::LoadMonitor;
pub(crate) use reporter::{report, watch};
use sketch::Sketch;
pub(crate) use throttle::{Throttle, Waiting};
pub(crate) use window::Requester;
