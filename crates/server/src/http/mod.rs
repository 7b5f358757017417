//! Bounded HTTP/1.1 listeners for operators: administration and metrics.
//!
//! - [`HttpListener`] has the port; to be opened before anything else is touched.
//! - [`HttpServer`] answers on it, in a thread and a runtime of its own, so that it answers while the threads that serve
//!   clients are busy. Connections, the time for a request's head, idle time and time without progress are bounded here;
//!   what a request's body may be is up to the routes, with [`read_body`].
//! - Each request carries a [`Caller`].

mod body;
mod connections;
mod listener;
mod patient;
mod serve;
#[cfg(test)]
mod tests;

pub use body::read_body;
pub use listener::HttpListener;
pub use serve::{Caller, HttpServer, HttpSetup, HttpTls};
