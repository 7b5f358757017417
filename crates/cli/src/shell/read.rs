//! Commands that show one small thing: `stat`, `sync`, `whoami`, `getEphemerals`, `getAllChildrenNumber`,
//! `version`.

use std::time::Duration;

use quenda_server::four_letter::COMPATIBLE_VERSION;
use serde_json::{Value, json};

use super::ls::with_watch;
use super::options::{Flag, flag};
use super::{AtPath, CommandError, Output, Paint, Session, options, path, stat, usage};

/// Options of `stat`.
pub const STAT_FLAGS: &[Flag] = &[flag(
    "w",
    "watch, also for the creation of one that is missing",
)];
/// How long `sync` waits, as zkCli's.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// Metadata of a znode.
pub async fn stat(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let mut parsed = options::parse(STAT_FLAGS, args)?;
    if parsed.words.len() > 1 {
        out.note("'stat path [watch]' has been deprecated. Please use 'stat [-w] path' instead.")?;
        parsed = options::parse(STAT_FLAGS, &with_watch(args))?;
    }
    let path = parsed.words.first().ok_or_else(|| usage::of("stat"))?;
    path::check(path)?;
    let metadata = session
        .client()
        .exists(path, parsed.has("w"))
        .await
        .at(path)?;
    let metadata = metadata.ok_or_else(|| CommandError::no_node(path))?;
    if out.wants_json() {
        return out.json(&json!({ "path": path, "stat": stat::to_json(&metadata) }));
    }
    stat::print(&metadata, out)
}

/// Waits until the server has applied what was committed before.
pub async fn sync(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let parsed = options::parse(&[], args)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("sync"))?;
    path::check(path)?;
    let answer = tokio::time::timeout(SYNC_TIMEOUT, session.client().sync(path))
        .await
        .map_err(|_| CommandError::failed(format!(
            "sync was not answered within {SYNC_TIMEOUT:?}: ask `quenda status` whether there is a quorum"
        )))?
        .at(path);
    let code = match answer {
        Ok(()) => 0,
        Err(error) => match error.keeper_code() {
            Some(code) => code,
            None => return Err(error),
        },
    };
    if out.wants_json() {
        return out.json(&json!({ "path": path, "rc": code }));
    }
    match code {
        0 => out.line("Sync is OK"),
        code => out.line(&format!("Sync has failed. rc={code}")),
    }
}

/// Identities of this connection.
pub async fn who_am_i(session: &Session, out: &mut Output) -> Result<(), CommandError> {
    let identities = session.client().who_am_i().await.anywhere()?;
    if out.wants_json() {
        let listed: Vec<Value> = identities
            .iter()
            .map(|(scheme, user)| json!({ "scheme": scheme, "user": user }))
            .collect();
        return out.json(&json!({ "identities": listed }));
    }
    out.line("Auth scheme: User")?;
    for (scheme, user) in identities {
        out.line(&format!("{scheme}: {user}"))?;
    }
    Ok(())
}

/// Ephemeral znodes of this session.
pub async fn ephemerals(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let parsed = options::parse(&[], args)?;
    let prefix = parsed.words.first().map_or("/", String::as_str);
    path::check(prefix)?;
    let found = session.client().get_ephemerals(prefix).await.anywhere()?;
    if out.wants_json() {
        return out.json(&json!({ "paths": found }));
    }
    let painted: Vec<_> = found
        .iter()
        .map(|path| out.paint(Paint::Path, path))
        .collect();
    out.line(&format!("[{}]", painted.join(", ")))
}

/// Number of znodes below one.
pub async fn descendants(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let parsed = options::parse(&[], args)?;
    let path = parsed
        .words
        .first()
        .ok_or_else(|| usage::of("getAllChildrenNumber"))?;
    path::check(path)?;
    let count = session.client().count_descendants(path).await.at(path)?;
    if out.wants_json() {
        return out.json(&json!({ "path": path, "descendants": count }));
    }
    out.line(&count.to_string())
}

/// Version of this shell, in front the release of ZooKeeper whose shell it is like.
pub fn version(args: &[String], out: &mut Output) -> Result<(), CommandError> {
    if !options::parse(&[], args)?.words.is_empty() {
        return Err(usage::of("version"));
    }
    let version = format!("{COMPATIBLE_VERSION}-quenda.{}", env!("CARGO_PKG_VERSION"));
    if out.wants_json() {
        return out.json(&json!({ "version": version }));
    }
    out.line(&format!("ZooKeeper CLI version: {version}"))
}
