//! `ls`: names of children, or all paths of a subtree.

use quenda_proto::records::Stat;
use serde_json::{Value, json};

use super::options::{Flag, Parsed, flag};
use super::{AtPath, CommandError, Output, Session, options, path, stat, subtree, usage};

/// Options in the order of zkCli's table.
pub const FLAGS: &[Flag] = &[
    flag("?", "help"),
    flag("R", "recurse"),
    flag("s", "stat"),
    flag("w", "watch"),
];

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = read(args, out)?;
    let Some(path) = parsed.words.first() else {
        return Err(usage::of("ls"));
    };
    path::check(path)?;
    if parsed.has("R") {
        return list_subtree(session, path, parsed.has("w"), out).await;
    }
    let (mut names, metadata) = session
        .client()
        .get_children(path, parsed.has("w"))
        .await
        .at(path)?;
    path::sort(&mut names);
    print(&names, parsed.has("s").then_some(&metadata), out)
}

/// The arguments; in the old form a second word asks for a watch.
fn read(args: &[String], out: &mut Output) -> Result<Parsed, CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    if parsed.has("?") {
        out.line(&usage::help_of_ls())?;
    }
    if parsed.words.len() < 2 {
        return Ok(parsed);
    }
    out.note("'ls path [watch]' has been deprecated. Please use 'ls [-w] path' instead.")?;
    options::parse(FLAGS, &with_watch(args))
}

/// The words with `-w` in the second place, whatever is there: so zkCli reads the old form.
pub fn with_watch(args: &[String]) -> Vec<String> {
    let mut args = args.to_vec();
    if let Some(second) = args.get_mut(1) {
        "-w".clone_into(second);
    }
    args
}

fn print(names: &[String], metadata: Option<&Stat>, out: &mut Output) -> Result<(), CommandError> {
    if out.wants_json() {
        let mut value = json!({ "children": names });
        if let Some(metadata) = metadata {
            value["stat"] = stat::to_json(metadata);
        }
        return out.json(&value);
    }
    let painted: Vec<_> = names
        .iter()
        .map(|name| out.paint(super::Paint::Path, name))
        .collect();
    out.line(&format!("[{}]", painted.join(", ")))?;
    metadata.map_or(Ok(()), |metadata| stat::print(metadata, out))
}

async fn list_subtree(
    session: &Session,
    path: &str,
    watch: bool,
    out: &mut Output,
) -> Result<(), CommandError> {
    let mut paths = Vec::new();
    let json = out.wants_json();
    subtree::visit(session.client(), path, watch, async |found| {
        if json {
            paths.push(Value::from(found));
            return Ok(());
        }
        let line = out.paint(super::Paint::Path, found).into_owned();
        out.line(&line)
    })
    .await?;
    if json {
        out.json(&json!({ "paths": paths }))?;
    }
    Ok(())
}
