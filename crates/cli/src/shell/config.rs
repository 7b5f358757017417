//! `config` and `reconfig`: the members of the ensemble.

use quenda_proto::records::Stat;
use serde_json::json;

use super::options::{Flag, Parsed, flag, valued};
use super::{AtPath, CommandError, Output, Session, options, stat, usage};

/// The znode that holds the configuration.
const CONFIG: &str = "/zookeeper/config";
/// Options of `config`.
pub const GET_FLAGS: &[Flag] = &[
    flag("s", "with metadata"),
    flag("w", "watch"),
    flag("c", "version and connect string of the client addresses"),
];
/// Options of `reconfig`.
pub const SET_FLAGS: &[Flag] = &[
    flag("s", "print metadata"),
    valued(
        "v",
        "only if this is the version of the configuration, in hex",
    ),
    valued("file", "a file with the lines of all members"),
    valued("members", "the lines of all members, with commas between"),
    valued(
        "add",
        "lines of members that join or change, with commas between",
    ),
    valued("remove", "ids of members that leave, with commas between"),
];

/// Shows the configuration.
pub async fn get(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(GET_FLAGS, args)?;
    let (data, metadata) = session
        .client()
        .get_config(parsed.has("w"))
        .await
        .at(CONFIG)?;
    let text = data.map_or_else(
        || "null".to_owned(),
        |data| String::from_utf8_lossy(&data).into_owned(),
    );
    let servers = connect_string(&text);
    if out.wants_json() {
        let mut value = json!({ "config": text, "connect": servers.1, "version": servers.0 });
        if parsed.has("s") {
            value["stat"] = stat::to_json(&metadata);
        }
        return out.json(&value);
    }
    if parsed.has("c") {
        out.line(&format!("{} {}", servers.0, servers.1))?;
    } else {
        out.line(&text)?;
    }
    print_stat(&parsed, &metadata, out)
}

/// Version and client addresses in a configuration; a server without a client address leaves an empty place.
fn connect_string(config: &str) -> (String, String) {
    let mut version = String::new();
    let mut addresses = Vec::new();
    for (key, value) in config.lines().filter_map(|line| line.split_once('=')) {
        let (key, value) = (key.trim(), value.trim());
        if key == "version" {
            value.clone_into(&mut version);
        } else if key.starts_with("server.") {
            addresses.push(client_address(value));
        }
    }
    (version, addresses.join(","))
}

/// What stands behind the semicolon of a server line; a port alone is one on all addresses.
fn client_address(server: &str) -> String {
    match server.rsplit_once(';').map(|(_, client)| client.trim()) {
        None | Some("") => String::new(),
        Some(port) if !port.contains(':') => format!("0.0.0.0:{port}"),
        Some(address) => address.replace(['[', ']'], ""),
    }
}

/// Changes the members.
pub async fn reconfig(
    session: &Session,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    let parsed = options::parse(SET_FLAGS, args)?;
    let change = change(&parsed)?;
    let Change {
        joining,
        leaving,
        members,
        version,
    } = change;
    let changed = session
        .client()
        .reconfig(
            joining.as_deref(),
            leaving.as_deref(),
            members.as_deref(),
            version,
        )
        .await;
    // zkCli names an empty path here.
    let (data, metadata) = changed.at("")?;
    let data = data.unwrap_or_default();
    let config = String::from_utf8_lossy(&data);
    if out.wants_json() {
        return out.json(&json!({ "config": config, "stat": stat::to_json(&metadata) }));
    }
    out.line(&format!("Committed new configuration:\n{config}"))?;
    print_stat(&parsed, &metadata, out)
}

/// What is asked for.
struct Change {
    joining: Option<String>,
    leaving: Option<String>,
    members: Option<String>,
    version: i64,
}

fn change(parsed: &Parsed) -> Result<Change, CommandError> {
    let whole = parsed.has("file") || parsed.has("members");
    let steps = parsed.has("add") || parsed.has("remove");
    if !whole && !steps {
        return Err(usage::of("reconfig"));
    }
    let version = match parsed.value("v") {
        None => -1,
        Some(text) => i64::from_str_radix(text, 16).map_err(|_| {
            CommandError::failed("-v must be followed by a long (configuration version)")
        })?,
    };
    if whole && steps {
        return Err(CommandError::failed(
            "Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes \
             is not allowed)",
        ));
    }
    if parsed.has("file") && parsed.has("members") {
        return Err(CommandError::failed(
            "Can't use -file and -members together (conflicting non-incremental modes)",
        ));
    }
    let lower = |name: &str| parsed.value(name).map(str::to_lowercase);
    let members = match parsed.value("file") {
        Some(file) => Some(members_of(file)?),
        None => lower("members"),
    };
    Ok(Change {
        joining: lower("add"),
        leaving: lower("remove"),
        members,
        version,
    })
}

/// The server lines of a file; the server judges what they say.
fn members_of(file: &str) -> Result<String, CommandError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| CommandError::failed(format!("Error processing {file}: {error}")))?;
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', '!']))
        .collect();
    if !lines.iter().any(|line| line.starts_with("server.")) {
        return Err(CommandError::failed(format!(
            "Error processing {file}: it has no line server.N=host:port:port;port"
        )));
    }
    Ok(lines.join("\n"))
}

fn print_stat(parsed: &Parsed, metadata: &Stat, out: &mut Output) -> Result<(), CommandError> {
    if parsed.has("s") {
        stat::print(metadata, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_strings_keep_empty_places() {
        let config = "server.1=a:1:2:participant;0.0.0.0:2181\nserver.2=b:1:2:participant\nserver.3=c:1:2;[::1]:7\n\
                      version=100000000";
        assert_eq!(
            connect_string(config),
            ("100000000".to_owned(), "0.0.0.0:2181,,::1:7".to_owned())
        );
        assert_eq!(connect_string(""), (String::new(), String::new()));
    }
}
