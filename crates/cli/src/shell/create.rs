//! `create`.

use quenda_client::open_acl;
use quenda_proto::ErrorCode;
use quenda_proto::mode::{CreateMode, TTL_MAX_MS};
use serde_json::json;

use super::options::{Flag, Parsed, flag, valued};
use super::{AtPath, CommandError, Output, Session, acl, options, path, usage};

/// Options.
pub const FLAGS: &[Flag] = &[
    flag("e", "ephemeral: goes with this session"),
    flag("s", "sequential: a number behind the name"),
    flag("c", "container: goes some time after its last child"),
    valued(
        "t",
        "goes when unchanged and childless for so many milliseconds",
    ),
];

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("create"))?;
    let (mode, ttl) = mode(&parsed)?;
    let data = parsed.words.get(1).map(String::as_bytes);
    let acl = match parsed.words.get(2) {
        Some(text) => acl::parse(text, out)?,
        None => open_acl(),
    };
    if mode.is_sequential() {
        path::check_sequential(path)?;
    } else {
        path::check(path)?;
    }
    let created = create(session, path, data, &acl, mode, ttl).await;
    if let Err(error) = &created
        && error.code() == Some(ErrorCode::InvalidAcl.code())
    {
        out.note(&error.exception())?;
    }
    let created = created?;
    if out.wants_json() {
        return out.json(&json!({ "created": created }));
    }
    out.note(&format!("Created {created}"))
}

async fn create(
    session: &Session,
    path: &str,
    data: Option<&[u8]>,
    acl: &[quenda_proto::records::Acl<'_>],
    mode: CreateMode,
    ttl: Option<i64>,
) -> Result<String, CommandError> {
    acl::refuse_empty(acl)?;
    let client = session.client();
    match (ttl, mode) {
        (Some(ttl), _) => client
            .create_ttl(path, data, acl, mode, ttl)
            .await
            .map(|(path, _)| path),
        (None, CreateMode::Container) => client
            .create2(path, data, acl, mode)
            .await
            .map(|(path, _)| path),
        (None, _) => client.create(path, data, acl, mode).await,
    }
    .at(path)
}

fn mode(parsed: &Parsed) -> Result<(CreateMode, Option<i64>), CommandError> {
    let (ephemeral, sequential, container) = (parsed.has("e"), parsed.has("s"), parsed.has("c"));
    if container && (ephemeral || sequential) {
        return Err(CommandError::failed(
            "-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.",
        ));
    }
    let ttl = parsed
        .value("t")
        .map(str::parse::<i64>)
        .transpose()
        .map_err(|_| CommandError::failed("-t argument must be a long value"))?;
    if ttl.is_some() && ephemeral {
        return Err(CommandError::failed(
            "TTLs cannot be used with Ephemeral znodes",
        ));
    }
    if ttl.is_some() && container {
        return Err(CommandError::failed(
            "TTLs cannot be used with Container znodes",
        ));
    }
    if ttl.is_some_and(|ttl| !(1..=TTL_MAX_MS).contains(&ttl)) {
        return Err(CommandError::failed(format!(
            "ttl must be positive and cannot be larger than: {TTL_MAX_MS}"
        )));
    }
    let mode = match (ephemeral, sequential, ttl.is_some()) {
        (true, true, _) => CreateMode::EphemeralSequential,
        (true, false, _) => CreateMode::Ephemeral,
        (false, true, true) => CreateMode::PersistentSequentialTtl,
        (false, true, false) => CreateMode::PersistentSequential,
        (false, false, true) => CreateMode::PersistentTtl,
        (false, false, false) if container => CreateMode::Container,
        (false, false, false) => CreateMode::Persistent,
    };
    Ok((mode, ttl))
}
