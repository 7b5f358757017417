//! `addWatch` and `removewatches`.

use quenda_proto::event::WatcherType;

use super::options::{Flag, flag, valued};
use super::{AtPath, CommandError, Session, options, path, usage};

/// Options of `addWatch`.
pub const ADD_FLAGS: &[Flag] = &[valued(
    "m",
    "PERSISTENT: the znode alone; PERSISTENT_RECURSIVE: all below it too",
)];
/// Options of `removewatches`.
pub const REMOVE_FLAGS: &[Flag] = &[
    flag("c", "watches for children"),
    flag("d", "watches for data and existence"),
    flag("p", "persistent watches"),
    flag("r", "persistent recursive watches"),
    flag("a", "all of them, as without an option"),
    flag("l", "forget them even if the server cannot be told"),
];

/// `addWatch`.
pub async fn add(session: &Session, args: &[String]) -> Result<(), CommandError> {
    let parsed = options::parse(ADD_FLAGS, args)?;
    let [path] = parsed.words.as_slice() else {
        return Err(usage::of("addWatch"));
    };
    let recursive = match parsed.value("m").map(str::to_uppercase).as_deref() {
        None | Some("PERSISTENT_RECURSIVE") => true,
        Some("PERSISTENT") => false,
        Some(_) => return Err(usage::of("addWatch")),
    };
    path::check(path)?;
    session.client().add_watch(path, recursive).await.at(path)
}

/// `removewatches`.
pub async fn remove(session: &Session, args: &[String]) -> Result<(), CommandError> {
    let parsed = options::parse(REMOVE_FLAGS, args)?;
    let path = parsed
        .words
        .first()
        .ok_or_else(|| usage::of("removewatches"))?;
    let kinds = [
        ("c", WatcherType::Children),
        ("d", WatcherType::Data),
        ("p", WatcherType::Persistent),
        ("r", WatcherType::PersistentRecursive),
    ];
    let kind = kinds
        .into_iter()
        .find(|(name, _)| parsed.has(name))
        .map_or(WatcherType::Any, |(_, kind)| kind);
    path::check(path)?;
    session
        .client()
        .forget_watches(path, kind, parsed.has("l"))
        .await
        .at(path)
}
