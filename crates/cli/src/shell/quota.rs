//! `setquota`, `listquota`, `delquota`: limits are data of znodes below /zookeeper/quota, which this shell writes and
//! servers heed.

use std::collections::BTreeMap;

use quenda_client::{Client, open_acl};
use quenda_proto::ErrorCode;
use quenda_proto::mode::CreateMode;
use serde_json::{Value, json};

use super::options::{Flag, Parsed, flag, missing_group, valued};
use super::{AtPath, CommandError, Output, Session, options, path, subtree, usage};

const ROOT: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";
/// Options of `setquota`, in the words of zkCli.
pub const SET_FLAGS: &[Flag] = &[
    valued("n", "num soft quota"),
    valued("b", "bytes soft quota"),
    valued("N", "num hard quota"),
    valued("B", "bytes hard quota"),
];
/// Options of `delquota`, in the words of zkCli.
pub const DELETE_FLAGS: &[Flag] = &[
    flag("n", "num soft quota"),
    flag("b", "bytes soft quota"),
    flag("N", "num hard quota"),
    flag("B", "bytes hard quota"),
];
/// Options and the limits they name.
const KEYS: [(&str, &str); 4] = [
    ("n", "count"),
    ("b", "bytes"),
    ("N", "countHardLimit"),
    ("B", "byteHardLimit"),
];

/// Limits or figures of a quota: numbers by name, −1 for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Figures(BTreeMap<String, i64>);

impl Figures {
    fn parse(text: &str) -> Result<Self, CommandError> {
        let mut figures = BTreeMap::new();
        for pair in text.split([',', ';']).filter(|pair| !pair.is_empty()) {
            let mut parts = pair.split('=');
            let key = parts.next().unwrap_or_default();
            let value = match parts.next().unwrap_or_default() {
                "" => -1,
                number => number.parse().map_err(|_| {
                    CommandError::failed(format!(
                        "\"{text}\" below {ROOT} is no quota: delete the quota with delquota and set it again"
                    ))
                })?,
            };
            figures.insert(key.to_owned(), value);
        }
        Ok(Figures(figures))
    }

    fn get(&self, key: &str) -> i64 {
        self.0.get(key).copied().unwrap_or(-1)
    }

    fn set(&mut self, key: &str, value: i64) {
        self.0.insert(key.to_owned(), value);
    }

    fn to_json(&self) -> Value {
        json!(self.0)
    }
}

/// `count` and `bytes` first; the sign behind them makes old parsers pass over the rest.
impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "count={},bytes={}", self.get("count"), self.get("bytes"))?;
        let others = self
            .0
            .iter()
            .filter(|(key, _)| *key != "count" && *key != "bytes");
        for (index, (key, value)) in others.enumerate() {
            let sign = if index == 0 { "=" } else { "" };
            write!(f, "{sign};{key}={value}")?;
        }
        Ok(())
    }
}

fn quota_path(path: &str) -> String {
    format!("{ROOT}{path}")
}

fn limits_path(path: &str) -> String {
    format!("{ROOT}{path}/{LIMITS}")
}

fn stats_path(path: &str) -> String {
    format!("{ROOT}{path}/{STATS}")
}

async fn figures(client: &Client, path: &str) -> Result<Figures, CommandError> {
    let (data, _) = client.get_data(path, false).await.at(path)?;
    Figures::parse(&String::from_utf8_lossy(&data.unwrap_or_default()))
}

/// `setquota`.
pub async fn set(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(SET_FLAGS, args)?;
    options::at_most_one(&parsed)?;
    if !KEYS.iter().any(|(name, _)| parsed.has(name)) {
        return Err(missing_group(SET_FLAGS));
    }
    let path = parsed.words.first().ok_or_else(|| usage::of("setquota"))?;
    if path.starts_with(ROOT) {
        return out.note(&format!("cannot set a quota under the path: {ROOT}"));
    }
    let (key, limit) = match wanted_limit(&parsed) {
        Ok(limit) => limit,
        Err(text) => return out.note(text),
    };
    path::check(path)?;
    let client = session.client();
    if client.exists(path, false).await.at(path)?.is_none() {
        return Err(CommandError::failed(format!("{path} does not exist.")));
    }
    refuse_quota_below(client, path).await?;
    refuse_quota_above(client, path).await?;
    create_parents(client, path).await?;
    let limits_path = limits_path(path);
    if client
        .exists(&limits_path, false)
        .await
        .at(&limits_path)?
        .is_none()
    {
        return create_quota(client, path, key, limit, out).await;
    }
    let mut limits = figures(client, &limits_path).await?;
    limits.set(key, limit);
    warn(&limits, &figures(client, &stats_path(path)).await?, out)?;
    client
        .set_data(&limits_path, Some(limits.to_string().as_bytes()), -1)
        .await
        .at(&limits_path)?;
    Ok(())
}

/// The limit that the one option sets; what is wrong with it is told and is no failure, as in zkCli.
fn wanted_limit(parsed: &Parsed) -> Result<(&'static str, i64), &'static str> {
    const NO_NUMBER: &str = "NumberFormatException happens when parsing the option value";
    let given = KEYS
        .iter()
        .find_map(|(name, key)| Some((*key, parsed.value(name)?)));
    let (key, text) = given.ok_or(NO_NUMBER)?;
    if key.starts_with("count") {
        match text.parse::<i32>() {
            Err(_) => Err(NO_NUMBER),
            Ok(..=0) => Err("the num quota must be greater than zero"),
            Ok(limit) => Ok((key, limit.into())),
        }
    } else {
        match text.parse::<i64>() {
            Err(_) => Err(NO_NUMBER),
            Ok(..0) => Err("the bytes quota must be greater than or equal to zero"),
            Ok(limit) => Ok((key, limit)),
        }
    }
}

async fn create_quota(
    client: &Client,
    path: &str,
    key: &str,
    limit: i64,
    out: &mut Output,
) -> Result<(), CommandError> {
    let mut limits = Figures::default();
    for (_, key) in KEYS {
        limits.set(key, -1);
    }
    limits.set(key, limit);
    let unused = "count=0,bytes=0".to_owned();
    for (path, text) in [
        (limits_path(path), limits.to_string()),
        (stats_path(path), unused),
    ] {
        client
            .create(
                &path,
                Some(text.as_bytes()),
                &open_acl(),
                CreateMode::Persistent,
            )
            .await
            .at(&path)?;
    }
    let limits = figures(client, &limits_path(path)).await?;
    warn(&limits, &figures(client, &stats_path(path)).await?, out)
}

fn warn(limits: &Figures, used: &Figures, out: &mut Output) -> Result<(), CommandError> {
    for (what, soft, hard) in [
        ("count", "count", "countHardLimit"),
        ("bytes", "bytes", "byteHardLimit"),
    ] {
        let used = used.get(what);
        let exceeded = |limit: i64| limit > -1 && limit < used;
        if exceeded(limits.get(soft)) || exceeded(limits.get(hard)) {
            let text = format!(
                "[Warning]: the {what} quota you create is less than the existing {what}:{used}"
            );
            if out.wants_json() {
                out.json(&json!({ "warning": text }))?;
            } else {
                out.line(&text)?;
            }
        }
    }
    Ok(())
}

async fn refuse_quota_below(client: &Client, path: &str) -> Result<(), CommandError> {
    let root = quota_path(path);
    let walk = subtree::visit(client, &root, false, async |found| {
        let is_limits = found
            .strip_suffix(LIMITS)
            .and_then(|rest| rest.strip_suffix('/'));
        match is_limits.filter(|owner| *owner != root) {
            Some(owner) => Err(CommandError::failed(format!(
                "{path} has a child {} which has a quota",
                &owner[ROOT.len()..]
            ))),
            None => Ok(()),
        }
    });
    match walk.await {
        Err(error) if error.code() == Some(ErrorCode::NoNode.code()) => Ok(()),
        result => result,
    }
}

async fn refuse_quota_above(client: &Client, path: &str) -> Result<(), CommandError> {
    for (end, _) in path.match_indices('/').skip(1) {
        let above = &path[..end];
        let limits = limits_path(above);
        if client.exists(&limits, false).await.at(&limits)?.is_some() {
            return Err(CommandError::failed(format!(
                "{path} has a parent {above} which has a quota"
            )));
        }
    }
    Ok(())
}

/// The znodes from the root of all quotas down to that of this path.
async fn create_parents(client: &Client, path: &str) -> Result<(), CommandError> {
    let quota_path = quota_path(path);
    let ends = quota_path
        .match_indices('/')
        .map(|(end, _)| end)
        .chain([quota_path.trim_end_matches('/').len()]);
    for end in ends.skip(1) {
        let parent = &quota_path[..end];
        if client.exists(parent, false).await.at(parent)?.is_some() {
            continue;
        }
        let created = client
            .create(parent, None, &open_acl(), CreateMode::Persistent)
            .await;
        match created.at(parent) {
            // Another was faster.
            Err(error) if error.code() == Some(ErrorCode::NodeExists.code()) => {}
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// `listquota`.
pub async fn list(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let parsed = options::parse(&[], args)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("listquota"))?;
    let limits_path = limits_path(path);
    if !out.wants_json() {
        out.note(&format!("absolute path is {limits_path}"))?;
    }
    path::check(&limits_path)?;
    let listed = async {
        let limits = figures(session.client(), &limits_path).await?;
        Ok((limits, figures(session.client(), &stats_path(path)).await?))
    };
    let (limits, used) = match listed.await {
        Err(error) if is_no_node(&error) => {
            return out.note(&format!("quota for {path} does not exist."));
        }
        other => other?,
    };
    if out.wants_json() {
        return out
            .json(&json!({ "path": path, "limits": limits.to_json(), "used": used.to_json() }));
    }
    out.line(&format!("Output quota for {path} {limits}"))?;
    out.line(&format!("Output stat for {path} {used}"))
}

fn is_no_node(error: &CommandError) -> bool {
    error.code() == Some(ErrorCode::NoNode.code())
}

/// `delquota`.
pub async fn delete(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let parsed = options::parse(DELETE_FLAGS, args)?;
    options::at_most_one(&parsed)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("delquota"))?;
    let client = session.client();
    let limits_path = limits_path(path);
    path::check(&limits_path)?;
    if client
        .exists(&limits_path, false)
        .await
        .at(&limits_path)?
        .is_none()
    {
        return out.line(&format!("Quota does not exist for {path}"));
    }
    let lifted = async {
        match KEYS.iter().find(|(name, _)| parsed.has(name)) {
            None => remove(client, path).await,
            Some((_, key)) => {
                let mut limits = figures(client, &limits_path).await?;
                limits.set(key, -1);
                let text = limits.to_string();
                client
                    .set_data(&limits_path, Some(text.as_bytes()), -1)
                    .await
                    .at(&limits_path)?;
                Ok(())
            }
        }
    };
    match lifted.await {
        Err(error) if is_no_node(&error) => out.note(&format!("quota for {path} does not exist.")),
        result => result,
    }
}

/// Deletes both znodes of a quota, and those above that have become empty.
async fn remove(client: &Client, path: &str) -> Result<(), CommandError> {
    let mut parent = quota_path(path);
    let (names, _) = client.get_children(&parent, false).await.at(&parent)?;
    for name in names {
        let child = path::child(&parent, &name);
        client.delete(&child, -1).await.at(&child)?;
    }
    while parent != ROOT {
        let (names, _) = client.get_children(&parent, false).await.at(&parent)?;
        if !names.is_empty() {
            break;
        }
        client.delete(&parent, -1).await.at(&parent)?;
        let end = parent.rfind('/').unwrap_or(0);
        parent.truncate(end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_quotas_keep_their_odd_form() {
        let text = "count=20,bytes=1000=;byteHardLimit=2000;countHardLimit=30";
        let figures = Figures::parse(text).expect("a quota");
        assert_eq!(figures.get("countHardLimit"), 30);
        assert_eq!(figures.to_string(), text);
        assert_eq!(
            Figures::parse("count=2,bytes=5").expect("old").to_string(),
            "count=2,bytes=5"
        );
        assert_eq!(
            Figures::parse("").expect("empty").to_string(),
            "count=-1,bytes=-1"
        );
        assert!(Figures::parse("count=,bytes=x=").is_err());
    }
}
