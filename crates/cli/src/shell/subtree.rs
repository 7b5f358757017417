//! zkCli's walks over everything below a znode, in its order, with many requests at a time. None of them is a snapshot:
//! others may write meanwhile.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;

use quenda_client::{Client, Error};
use quenda_proto::ErrorCode;
use quenda_proto::records::Stat;

use super::walk::{self, AHEAD};
use super::{AtPath, CommandError, path};

type Children<'a> = Pin<Box<dyn Future<Output = Result<(Vec<String>, Stat), Error>> + Send + 'a>>;

/// A znode whose children come later.
struct Waiting<'a> {
    path: String,
    /// Once it is asked for.
    children: Option<Children<'a>>,
}

/// Visits the znode, then the children of each znode in order before what is below them: the order of zkCli's
/// recursive commands. What vanishes meanwhile is passed over.
pub async fn visit(
    client: &Client,
    root: &str,
    watch: bool,
    mut each: impl AsyncFnMut(&str) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    path::check(root)?;
    client.get_data(root, watch).await.at(root)?;
    each(root).await?;
    let mut waiting = vec![Waiting {
        path: root.to_owned(),
        children: None,
    }];
    while !waiting.is_empty() {
        ask_ahead(client, watch, &mut waiting);
        let Some(Waiting {
            path: parent,
            children: Some(children),
        }) = waiting.pop()
        else {
            break;
        };
        let mut names = match children.await {
            Ok((names, _)) => names,
            Err(error) if walk::is(&error, ErrorCode::NoNode) => continue,
            Err(error) => return Err(error).at(&parent),
        };
        path::sort(&mut names);
        let found: Vec<String> = names
            .iter()
            .map(|name| path::child(&parent, name))
            .collect();
        for path in &found {
            each(path).await?;
        }
        waiting.extend(found.into_iter().rev().map(|path| Waiting {
            path,
            children: None,
        }));
    }
    Ok(())
}

/// Asks for the children of the next ones, which are at the end.
fn ask_ahead<'a>(client: &'a Client, watch: bool, waiting: &mut [Waiting<'a>]) {
    for next in waiting.iter_mut().rev().take(AHEAD) {
        if next.children.is_none() {
            next.children = Some(ask(client, watch, &next.path));
        }
    }
}

/// Watches are few: they are left one by one, as they come up.
fn ask<'a>(client: &'a Client, watch: bool, path: &str) -> Children<'a> {
    if !watch {
        return Box::pin(client.get_children_ahead(path));
    }
    let path = path.to_owned();
    Box::pin(async move { client.get_children(&path, true).await })
}

/// All paths of the subtree, parents before children.
pub async fn list(client: &Client, root: &str) -> Result<Vec<String>, CommandError> {
    let mut paths = vec![root.to_owned()];
    let mut asked: VecDeque<(String, Children<'_>)> = VecDeque::with_capacity(AHEAD);
    let mut next = 0;
    loop {
        while asked.len() < AHEAD
            && let Some(path) = paths.get(next)
        {
            asked.push_back((path.clone(), ask(client, false, path)));
            next += 1;
        }
        let Some((parent, children)) = asked.pop_front() else {
            return Ok(paths);
        };
        let (names, _) = children.await.at(&parent)?;
        paths.extend(names.iter().map(|name| path::child(&parent, name)));
    }
}
