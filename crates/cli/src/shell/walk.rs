//! Walks over large subtrees: many requests at a time, memory for the names on the way alone. None of them is a snapshot:
//! what vanishes meanwhile is passed over.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use quenda_client::{Client, Error};
use quenda_proto::ErrorCode;
use quenda_proto::records::Stat;

use super::{AtPath, CommandError, path};

/// Requests that are on their way at a time.
pub const AHEAD: usize = 64;
/// How often one request is made again after its connection broke.
const RETRIES: usize = 5;
/// How long a walk waits for a connection.
const RECONNECT: Duration = Duration::from_secs(30);

/// A znode on the way.
#[derive(Debug)]
pub struct Found {
    /// Its path.
    pub path: String,
    /// Its metadata.
    pub stat: Stat,
    /// Names of its children, sorted. Those that are taken out are not walked.
    pub children: Vec<String>,
}

type Children = Pin<Box<dyn Future<Output = Result<(Vec<String>, Stat), Error>> + Send>>;

/// Reads of the children of many znodes.
pub struct Reads<'a> {
    client: &'a Client,
    /// Znodes that may not be read.
    pub refused: u64,
}

/// The children of one znode, asked for.
pub struct Read {
    path: String,
    reply: Children,
}

impl<'a> Reads<'a> {
    /// None yet.
    pub fn new(client: &'a Client) -> Self {
        Reads { client, refused: 0 }
    }

    /// Asks for the children of a znode.
    pub fn begin(&self, path: String) -> Read {
        let reply = Box::pin(self.client.get_children_ahead(&path));
        Read { path, reply }
    }

    /// The answer; `None` if the znode is gone or may not be read.
    pub async fn finish(&mut self, read: Read) -> Result<Option<Found>, CommandError> {
        let Read { path, mut reply } = read;
        for _ in 0..RETRIES {
            match reply.await {
                Ok((mut children, stat)) => {
                    path::sort(&mut children);
                    return Ok(Some(Found {
                        path,
                        stat,
                        children,
                    }));
                }
                Err(error) if is(&error, ErrorCode::NoNode) => return Ok(None),
                Err(error) if is(&error, ErrorCode::NoAuth) => {
                    self.refused += 1;
                    return Ok(None);
                }
                // A read may be made again.
                Err(Error::ConnectionLost(_)) => {
                    self.client.wait_connected(RECONNECT).await.at(&path)?;
                    reply = Box::pin(self.client.get_children_ahead(&path));
                }
                Err(error) => return Err(error).at(&path),
            }
        }
        Err(Error::ConnectionLost(
            "again and again during the walk".to_owned(),
        ))
        .at(&path)
    }

    /// What is to be said of znodes that were left out.
    pub fn left_out(&self) -> Option<String> {
        match self.refused {
            0 => None,
            1 => Some("1 znode may not be read, and what is below it is left out".to_owned()),
            many => Some(format!(
                "{many} znodes may not be read, and what is below them is left out"
            )),
        }
    }
}

/// Whether the server has answered with that code.
pub fn is(error: &Error, code: ErrorCode) -> bool {
    error.code() == Some(code.code())
}

/// The root of a walk: that it is missing or may not be read is an error.
pub async fn root(client: &Client, path: &str) -> Result<Found, CommandError> {
    let (mut children, stat) = client.get_children(path, false).await.at(path)?;
    path::sort(&mut children);
    Ok(Found {
        path: path.to_owned(),
        stat,
        children,
    })
}

/// Visits all of a subtree, parents before children, otherwise in no useful order. Returns what is to be said of znodes
/// that were left out.
pub async fn all(
    client: &Client,
    from: &str,
    mut each: impl AsyncFnMut(&mut Found) -> Result<(), CommandError>,
) -> Result<Option<String>, CommandError> {
    let mut reads = Reads::new(client);
    let mut root = root(client, from).await?;
    each(&mut root).await?;
    let mut waiting = vec![Names::of(root)];
    let mut asked: VecDeque<Read> = VecDeque::with_capacity(AHEAD);
    loop {
        while asked.len() < AHEAD
            && let Some(path) = next(&mut waiting)
        {
            asked.push_back(reads.begin(path));
        }
        let Some(read) = asked.pop_front() else {
            return Ok(reads.left_out());
        };
        if let Some(mut found) = reads.finish(read).await? {
            each(&mut found).await?;
            waiting.push(Names::of(found));
        }
    }
}

/// Children that are not asked about yet.
struct Names {
    parent: String,
    /// In reverse.
    names: Vec<String>,
}

impl Names {
    fn of(found: Found) -> Names {
        let mut names = found.children;
        names.reverse();
        Names {
            parent: found.path,
            names,
        }
    }
}

/// The deepest first: so that little waits.
fn next(waiting: &mut Vec<Names>) -> Option<String> {
    loop {
        let last = waiting.last_mut()?;
        match last.names.pop() {
            Some(name) => return Some(path::child(&last.parent, &name)),
            None => drop(waiting.pop()),
        }
    }
}
