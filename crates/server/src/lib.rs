//! The server: threads, sockets and disks around one [`quenda_node::Member`].
//!
//! - the *core thread* ([`core`]) drives consensus and is the only one that changes the tree;
//! - the *log writer* ([`log_writer`]) makes entries durable, many with one sync;
//! - the *checkpointer* ([`checkpointer`]) writes the changed rows of the tree every few seconds;
//! - tokio's workers serve the connections ([`connection_task`]): reads from the shared tree, writes handed
//!   to the core through the [`inbox`].

mod admin;
mod audit;
pub mod backup;
mod calm;
mod checkpointer;
mod clock;
mod complaint;
pub mod config;
mod connection_task;
mod core;
mod directory_gauge;
mod ensemble_view;
mod founding;
pub mod four_letter;
#[cfg(test)]
mod golden_text;
mod held_input;
mod http;
mod image_store;
mod inbox;
mod limits;
mod lingering;
mod listener;
mod listings;
pub mod load;
mod local_sessions;
mod log_queue;
mod log_writer;
mod member_files;
mod member_status;
mod metrics;
mod neighbours;
mod node_source;
mod output_budget;
mod peers;
mod ports;
mod proposals;
mod quota_refusals;
pub mod recover;
mod registry;
mod run;
mod sasl;
mod secrets_file;
mod serve_error;
mod served;
mod shared;
pub mod status;
pub mod stores;
mod system;
mod thread;
mod tls;
mod traffic;
mod transport;
mod watches;

pub use audit::record_refused_start;
/// Who the members are.
pub use quenda_tree::ensemble;
pub use run::{check_files, serve};
pub use serve_error::ServeError;
pub use tls::TlsError;
