//! Walks over everything below a znode. None of them is a snapshot: others may write meanwhile.

use quenda_client::Client;
use quenda_proto::ErrorCode;

use super::{AtPath, CommandError, path};

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
    let mut waiting = vec![root.to_owned()];
    while let Some(parent) = waiting.pop() {
        let Some(mut names) = children(client, &parent, watch).await? else {
            continue;
        };
        path::sort(&mut names);
        let found: Vec<String> = names
            .iter()
            .map(|name| path::child(&parent, name))
            .collect();
        for path in &found {
            each(path).await?;
        }
        waiting.extend(found.into_iter().rev());
    }
    Ok(())
}

/// All paths of the subtree, parents before children.
pub async fn list(client: &Client, root: &str) -> Result<Vec<String>, CommandError> {
    let mut paths = vec![root.to_owned()];
    let mut next = 0;
    while let Some(parent) = paths.get(next).cloned() {
        let (names, _) = client.get_children(&parent, false).await.at(&parent)?;
        paths.extend(names.iter().map(|name| path::child(&parent, name)));
        next += 1;
    }
    Ok(paths)
}

async fn children(
    client: &Client,
    parent: &str,
    watch: bool,
) -> Result<Option<Vec<String>>, CommandError> {
    match client.get_children(parent, watch).await {
        Ok((names, _)) => Ok(Some(names)),
        Err(error) if error.code() == Some(ErrorCode::NoNode.code()) => Ok(None),
        Err(error) => Err(error).at(parent),
    }
}
