//! `getAcl` and `setAcl`, and the text form of access control lists.

use quenda_client::Error;
use quenda_proto::acl::perms;
use quenda_proto::records::{Acl, Id};
use quenda_proto::{ErrorCode, Op};
use serde_json::{Value, json};

use super::options::{Flag, flag, valued};
use super::{
    AtPath, CommandError, Output, Paint, Session, number, options, path, stat, subtree, usage,
};

/// Options of `getAcl`.
pub const GET_FLAGS: &[Flag] = &[flag("s", "with metadata")];
/// Options of `setAcl`.
pub const SET_FLAGS: &[Flag] = &[
    flag("s", "print metadata, but not with -R"),
    valued("v", "only if this is the version of the list"),
    flag("R", "all znodes below too"),
];
/// Letters of the permissions, in the order in which they are shown.
const LETTERS: [(char, i32); 5] = [
    ('c', perms::CREATE),
    ('d', perms::DELETE),
    ('r', perms::READ),
    ('w', perms::WRITE),
    ('a', perms::ADMIN),
];

/// Shows the list of a znode.
pub async fn get(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(GET_FLAGS, args)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("getAcl"))?;
    path::check(path)?;
    let (entries, metadata) = session.client().get_acl(path).await.at(path)?;
    let with_stat = parsed.has("s");
    if out.wants_json() {
        let listed: Vec<Value> = entries
            .iter()
            .map(
                |(bits, scheme, id)| json!({ "scheme": scheme, "id": id, "perms": letters(*bits) }),
            )
            .collect();
        let mut value = json!({ "acl": listed });
        if with_stat {
            value["stat"] = stat::to_json(&metadata);
        }
        return out.json(&value);
    }
    for (bits, scheme, id) in &entries {
        out.line(&format!(
            "'{},'{}\n: {}",
            escaped(scheme),
            escaped(id),
            out.paint(Paint::Strong, &letters(*bits))
        ))?;
    }
    if with_stat {
        stat::print(&metadata, out)?;
    }
    Ok(())
}

/// Replaces the list of a znode, or of all znodes of a subtree.
pub async fn set(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(SET_FLAGS, args)?;
    let [path, text, ..] = parsed.words.as_slice() else {
        return Err(usage::of("setAcl"));
    };
    let acl = parse(text, out)?;
    let version = number::version(&parsed)?;
    path::check(path)?;
    if parsed.has("R") {
        return set_below(session, path, &acl, version, out).await;
    }
    refuse_empty(&acl)?;
    let metadata = session
        .client()
        .set_acl(path, &acl, version)
        .await
        .at(path)?;
    if out.wants_json() {
        return out.json(&json!({ "path": path, "stat": stat::to_json(&metadata) }));
    }
    if parsed.has("s") {
        stat::print(&metadata, out)?;
    }
    Ok(())
}

/// What fails is told on standard output, without an end of line as zkCli does it, and the walk goes on.
async fn set_below(
    session: &Session,
    root: &str,
    acl: &[Acl<'_>],
    version: i32,
    out: &mut Output,
) -> Result<(), CommandError> {
    let client = session.client();
    subtree::visit(client, root, false, async |path| {
        let failed = match refuse_empty(acl) {
            Ok(()) => client.set_acl(path, acl, version).await.at(path).err(),
            Err(error) => Some(error),
        };
        match failed {
            None => Ok(()),
            Some(error) if out.wants_json() => {
                out.json(&json!({ "path": path, "error": error.to_string() }))
            }
            Some(error) => out.text(&error.exception()),
        }
    })
    .await
}

/// The Java client sends no empty list; the error names no path then.
pub fn refuse_empty(acl: &[Acl<'_>]) -> Result<(), CommandError> {
    if acl.is_empty() {
        let error = Error::Server {
            op: Op::SetAcl,
            code: ErrorCode::InvalidAcl.code(),
        };
        return Err(error).anywhere();
    }
    Ok(())
}

/// Reads `scheme:id:perms,…`. What is wrong in it is told and left out, as zkCli does it.
pub fn parse(text: &str, out: &mut Output) -> Result<Vec<Acl<'static>>, CommandError> {
    let mut entries = Vec::new();
    for entry in text.trim_end_matches(',').split(',') {
        let Some((scheme, rest)) = entry.split_once(':') else {
            out.note(&format!("{entry} does not have the form scheme:id:perm"))?;
            continue;
        };
        let Some((id, letters)) = rest.rsplit_once(':') else {
            out.note(&format!("{entry} does not have the form scheme:id:perm"))?;
            continue;
        };
        entries.push(Acl {
            perms: bits(letters, out)?,
            id: Id {
                scheme: Some(scheme.to_owned().into()),
                id: Some(id.to_owned().into()),
            },
        });
    }
    Ok(entries)
}

fn bits(letters: &str, out: &mut Output) -> Result<i32, CommandError> {
    let mut bits = 0;
    for letter in letters.chars() {
        match LETTERS.iter().find(|(known, _)| *known == letter) {
            Some((_, bit)) => bits |= bit,
            None => out.note(&format!("Unknown perm type: {letter}"))?,
        }
    }
    Ok(bits)
}

fn letters(bits: i32) -> String {
    LETTERS
        .iter()
        .filter(|(_, bit)| bits & bit != 0)
        .map(|(letter, _)| letter)
        .collect()
}

/// Text of a record in the CSV form of jute.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\0' => escaped.push_str("%00"),
            '\n' => escaped.push_str("%0A"),
            '\r' => escaped.push_str("%0D"),
            ',' => escaped.push_str("%2C"),
            '}' => escaped.push_str("%7D"),
            '%' => escaped.push_str("%25"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::output::captured;

    fn parsed(text: &str) -> (Vec<String>, String) {
        let (mut out, written) = captured();
        let entries = parse(text, &mut out).expect("captured output takes everything");
        let shown = entries
            .iter()
            .map(|entry| {
                format!(
                    "{}|{}|{}",
                    entry.id.scheme.as_deref().unwrap_or_default(),
                    entry.id.id.as_deref().unwrap_or_default(),
                    letters(entry.perms)
                )
            })
            .collect();
        (shown, written.err())
    }

    #[test]
    fn ids_may_hold_colons_and_letters_come_in_any_order() {
        let (entries, warnings) = parsed("world:anyone:adcwr,ip:::1:r,auth::cdrwa");
        assert_eq!(entries, ["world|anyone|cdrwa", "ip|::1|r", "auth||cdrwa"]);
        assert_eq!(warnings, "");
    }

    #[test]
    fn what_is_wrong_is_told_and_left_out() {
        let (entries, warnings) = parsed("world:anyone,digest:u:p:rx,nothing");
        assert_eq!(entries, ["digest|u:p|r"]);
        assert_eq!(
            warnings,
            "world:anyone does not have the form scheme:id:perm\nUnknown perm type: x\n\
             nothing does not have the form scheme:id:perm\n"
        );
    }

    #[test]
    fn ids_are_escaped_as_records_are() {
        assert_eq!(escaped("CN=a,O=%}\n"), "CN=a%2CO=%25%7D%0A");
    }
}
