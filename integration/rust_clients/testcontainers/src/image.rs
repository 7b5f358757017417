use std::collections::BTreeMap;
use std::time::Duration;

/// An image by its name, with what its containers find in their environment.
#[derive(Default)]
pub struct GenericImage {
    environment: BTreeMap<String, String>,
}

impl GenericImage {
    /// Name and tag are of no account: the server is the one under test.
    pub fn new<S: Into<String>>(_name: S, _tag: S) -> Self {
        Self::default()
    }

    /// Sets a variable of the environment.
    pub fn with_env_var(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// A server's health is always known in the same way, see `Server::await_health`.
    pub fn with_healthcheck(self, _check: Healthcheck) -> Self {
        self
    }

    /// Every start waits for health.
    pub fn with_wait_for(self, _condition: WaitFor) -> Self {
        self
    }
}

/// How the health of a container is found out.
#[derive(Default)]
pub struct Healthcheck;

impl Healthcheck {
    /// The command.
    pub fn with_cmd<S>(self, _words: impl Iterator<Item = S>) -> Self {
        self
    }

    /// How often.
    pub fn with_interval(self, _interval: Duration) -> Self {
        self
    }

    /// How many failures are borne.
    pub fn with_retries(self, _retries: u32) -> Self {
        self
    }
}

/// What a start waits for.
pub enum WaitFor {
    /// A good answer of the health check.
    Healthcheck,
}

/// An image with all that one container of it needs.
pub struct RunnableImage<I> {
    pub(crate) image: I,
    pub(crate) volumes: BTreeMap<String, String>,
    pub(crate) network: Option<String>,
}

impl<I> From<I> for RunnableImage<I> {
    fn from(image: I) -> Self {
        Self {
            image,
            volumes: BTreeMap::new(),
            network: None,
        }
    }
}

impl<I> RunnableImage<I> {
    /// Mounts a file or folder of the host at a path of the container.
    pub fn with_volume(
        mut self,
        (host, container): (impl Into<String>, impl Into<String>),
    ) -> Self {
        self.volumes.insert(container.into(), host.into());
        self
    }

    /// Names the network.
    pub fn with_network(mut self, name: impl Into<String>) -> Self {
        self.network = Some(name.into());
        self
    }
}

impl RunnableImage<GenericImage> {
    pub(crate) fn variable(&self, name: &str) -> &str {
        self.image.environment.get(name).map_or("", String::as_str)
    }
}
