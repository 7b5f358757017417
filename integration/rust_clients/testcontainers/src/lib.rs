//! Stands in for the part of testcontainers that zookeeper-client's tests use: an image of ZooKeeper becomes a server
//! process, started by the `zkServer.sh` in the folder that `ZOOKEEPER_BIN_PATH` names. Where the tests mount a file into
//! the container, its place in the configuration is exchanged for the file's own; port 2181 becomes a free one, unless
//! the network is the host's.

mod container;
mod image;
mod server;

/// Starts containers.
pub mod clients {
    pub use crate::container::Cli;
}

/// What is started, and how.
pub mod core {
    pub use crate::container::{Container, LogStream};
    pub use crate::image::{Healthcheck, RunnableImage, WaitFor};
}

/// Kinds of images.
pub mod images {
    /// The only kind there is here.
    pub mod generic {
        pub use crate::image::GenericImage;
    }
}
