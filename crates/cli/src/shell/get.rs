//! `get`: data of a znode.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::ls::with_watch;
use super::options::{Flag, Parsed, flag};
use super::{AtPath, CommandError, Output, Session, options, path, stat, usage};

/// Options in the order of zkCli's table.
pub const FLAGS: &[Flag] = &[
    flag("b", "Output data in base64 format"),
    flag("s", "Print znode stats additionally"),
    flag("w", "Watch for changes on the znode"),
    flag("x", "Output data in hexdump format"),
];

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = read(args, out)?;
    let path = &parsed.words[0];
    path::check(path)?;
    let (data, metadata) = session
        .client()
        .get_data(path, parsed.has("w"))
        .await
        .at(path)?;
    if out.wants_json() {
        let mut value = data_to_json(data.as_deref());
        if parsed.has("s") {
            value["stat"] = stat::to_json(&metadata);
        }
        return out.json(&value);
    }
    let shown = data.as_deref().unwrap_or(b"null");
    if parsed.has("x") {
        out.line(&hex_dump(shown))?;
    } else if parsed.has("b") {
        out.line(&STANDARD.encode(shown))?;
    } else {
        out.line(&String::from_utf8_lossy(shown))?;
    }
    if parsed.has("s") {
        stat::print(&metadata, out)?;
    }
    Ok(())
}

/// The arguments; in the old form a second word asks for a watch.
fn read(args: &[String], out: &mut Output) -> Result<Parsed, CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let parsed = if parsed.words.len() > 1 {
        out.note(
            "'get path [watch]' has been deprecated. Please use 'get [-s] [-w] path' instead.",
        )?;
        options::parse(FLAGS, &with_watch(args))?
    } else {
        parsed
    };
    if parsed.words.is_empty() {
        return Err(usage::of("get"));
    }
    Ok(parsed)
}

/// Data as text where it is text, else in base64; null where there is none.
pub fn data_to_json(data: Option<&[u8]>) -> serde_json::Value {
    match data.map(std::str::from_utf8) {
        None => json!({ "data": null }),
        Some(Ok(text)) => json!({ "data": text }),
        Some(Err(_)) => json!({ "base64": STANDARD.encode(data.unwrap_or_default()) }),
    }
}

/// Sixteen bytes a row between rules, numbers on the left, text on the right.
fn hex_dump(data: &[u8]) -> String {
    if data.is_empty() {
        return String::new();
    }
    let rule = format!("+--------+{}+{}+", "-".repeat(49), "-".repeat(16));
    let mut text = format!("         +{}+\n", "-".repeat(49));
    text.push_str("         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n");
    text.push_str(&rule);
    for (row, bytes) in data.chunks(16).enumerate() {
        let hex: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
        let plain: String = bytes
            .iter()
            .map(|byte| {
                if (0x20..0x7f).contains(byte) {
                    char::from(*byte)
                } else {
                    '.'
                }
            })
            .collect();
        text.push_str(&format!("\n|{:08x}|{hex:<48} |{plain:<16}|", row * 16));
    }
    text.push('\n');
    text.push_str(&rule);
    text
}
