use std::marker::PhantomData;
use std::sync::Mutex;

use crate::image::{GenericImage, RunnableImage};
use crate::server::Server;

/// Starts containers.
#[derive(Default)]
pub struct Cli;

impl Cli {
    /// Starts one and waits until it is healthy.
    pub fn run(
        &self,
        image: impl Into<RunnableImage<GenericImage>>,
    ) -> Container<'_, GenericImage> {
        let mut server = Server::new(&image.into());
        server.start();
        Container {
            port: server.port(),
            server: Mutex::new(server),
            image: PhantomData,
        }
    }
}

/// A container that runs; it ends with the value.
pub struct Container<'a, I> {
    server: Mutex<Server>,
    port: u16,
    image: PhantomData<(&'a (), I)>,
}

impl<I> Container<'_, I> {
    /// The host's port for the one port of a container.
    pub fn get_host_port(&self, _inside: u16) -> u16 {
        self.port
    }

    /// Ends the server and keeps its data.
    pub fn stop(&self) {
        self.server.lock().expect("no test panics inside").stop();
    }

    /// Starts it again, and waits until it is healthy.
    pub fn start(&self) {
        self.server.lock().expect("no test panics inside").start();
    }

    /// Where to wait for what the server says.
    pub fn stdout(&self) -> LogStream {
        LogStream { port: self.port }
    }
}

/// Logs differ from server to server; what the tests wait for in them is asked of the server itself.
pub struct LogStream {
    port: u16,
}

impl LogStream {
    /// Waits until the server is in the state that a line of ZooKeeper's log tells.
    ///
    /// # Errors
    /// It never says so.
    pub fn wait_for_message(self, message: &str) -> Result<(), String> {
        assert_eq!(
            message, "Read-only server started",
            "no other message is known here"
        );
        crate::server::await_answer(self.port, "Mode: read-only")
    }
}
