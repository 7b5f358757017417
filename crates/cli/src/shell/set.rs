//! `set`: replaces the data of a znode.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::options::{Flag, flag, valued};
use super::{AtPath, CommandError, Output, Session, number, options, path, stat, usage};

/// Options in the order of zkCli's table.
pub const FLAGS: &[Flag] = &[
    flag("b", "Supply data in base64 format"),
    flag("s", "Print znode stats additionally"),
    valued("v", "Set with an expected version"),
];

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let [path, data, ..] = parsed.words.as_slice() else {
        return Err(usage::of("set"));
    };
    let data = if parsed.has("b") {
        STANDARD
            .decode(data)
            .map_err(|error| CommandError::failed(format!("the data are no base64: {error}")))?
    } else {
        data.as_bytes().to_vec()
    };
    let version = number::version(&parsed)?;
    path::check(path)?;
    let metadata = session
        .client()
        .set_data(path, Some(&data), version)
        .await
        .at(path)?;
    if out.wants_json() {
        return out.json(&serde_json::json!({ "path": path, "stat": stat::to_json(&metadata) }));
    }
    if parsed.has("s") {
        stat::print(&metadata, out)?;
    }
    Ok(())
}
