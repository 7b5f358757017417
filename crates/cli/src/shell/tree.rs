//! `tree`: a subtree as a picture.

use std::collections::VecDeque;

use quenda_proto::records::Stat;
use serde_json::json;

use super::json_list::JsonList;
use super::options::{Flag, flag, valued};
use super::walk::{self, AHEAD, Found, Read, Reads};
use super::{CommandError, Output, Paint, Session, options, path, usage, words};

/// Options.
pub const FLAGS: &[Flag] = &[
    valued("L", "no deeper than so many levels"),
    flag("d", "with bytes of data"),
    flag("s", "with sessions of ephemeral znodes and versions"),
];

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let start = parsed.words.first().map_or("/", String::as_str);
    path::check(start)?;
    let depth = match parsed.value("L") {
        None => usize::MAX,
        Some(text) => text
            .parse()
            .ok()
            .filter(|depth| *depth > 0)
            .ok_or_else(|| usage::of("tree"))?,
    };
    let mut picture = Picture {
        depth,
        bytes: parsed.has("d"),
        details: parsed.has("s"),
        list: JsonList::default(),
        count: 0,
    };
    picture.draw(session, start, out).await
}

struct Picture {
    depth: usize,
    bytes: bool,
    details: bool,
    list: JsonList,
    count: u64,
}

/// The children of one znode: those asked about, and those that follow.
struct Level {
    parent: String,
    rest: std::vec::IntoIter<String>,
    asked: VecDeque<(String, Read)>,
}

impl Level {
    fn of(found: Found) -> Level {
        Level {
            parent: found.path,
            rest: found.children.into_iter(),
            asked: VecDeque::new(),
        }
    }

    fn next(&mut self, reads: &Reads<'_>) -> Option<(String, Read)> {
        while self.asked.len() < AHEAD
            && let Some(name) = self.rest.next()
        {
            let read = reads.begin(path::child(&self.parent, &name));
            self.asked.push_back((name, read));
        }
        self.asked.pop_front()
    }

    fn is_at_its_end(&self) -> bool {
        self.asked.is_empty() && self.rest.len() == 0
    }
}

impl Picture {
    async fn draw(
        &mut self,
        session: &Session,
        start: &str,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        let mut reads = Reads::new(session.client());
        let root = walk::root(session.client(), start).await?;
        self.show("", start, &root, 0, out)?;
        let mut levels = vec![Level::of(root)];
        while let Some(level) = levels.last_mut() {
            let Some((name, read)) = level.next(&reads) else {
                levels.pop();
                continue;
            };
            let Some(found) = reads.finish(read).await? else {
                continue;
            };
            let indent = indent(&levels);
            let depth = levels.len();
            self.show(&indent, &name, &found, depth, out)?;
            if depth < self.depth {
                levels.push(Level::of(found));
            }
        }
        if out.wants_json() {
            std::mem::take(&mut self.list).end(out)?;
        } else {
            let word = if self.count == 1 { "znode" } else { "znodes" };
            out.line(&format!("\n{} {word}", self.count))?;
        }
        reads.left_out().map_or(Ok(()), |text| out.note(&text))
    }

    fn show(
        &mut self,
        indent: &str,
        name: &str,
        found: &Found,
        depth: usize,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        self.count += 1;
        if out.wants_json() {
            return self.list.push(&describe(found, depth), out);
        }
        let mut line = format!("{indent}{}", out.paint(Paint::Path, name));
        for remark in self.remarks(&found.stat, depth) {
            line.push_str("  ");
            line.push_str(&out.paint(Paint::Dim, &remark));
        }
        out.line(&line)
    }

    fn remarks(&self, stat: &Stat, depth: usize) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.bytes {
            remarks.push(words::bytes(u64::try_from(stat.data_length).unwrap_or(0)));
        }
        match stat.ephemeral_owner {
            0 => {}
            owner if self.details => remarks.push(format!("ephemeral of 0x{owner:x}")),
            _ => remarks.push("ephemeral".to_owned()),
        }
        if self.details {
            remarks.push(format!("version {}", stat.version));
        }
        if depth == self.depth && stat.num_children > 0 {
            remarks.push(format!("… {} below", stat.num_children));
        }
        remarks
    }
}

fn describe(found: &Found, depth: usize) -> serde_json::Value {
    json!({
        "path": found.path,
        "depth": depth,
        "dataLength": found.stat.data_length,
        "numChildren": found.stat.num_children,
        "dataVersion": found.stat.version,
        "ephemeralOwner": format!("0x{:x}", found.stat.ephemeral_owner),
    })
}

/// The lines to the left of the znode that was taken from the last level.
fn indent(levels: &[Level]) -> String {
    let Some((last, above)) = levels.split_last() else {
        return String::new();
    };
    let mut indent: String = above
        .iter()
        .map(|level| {
            if level.is_at_its_end() {
                "    "
            } else {
                "│   "
            }
        })
        .collect();
    indent.push_str(if last.is_at_its_end() {
        "└── "
    } else {
        "├── "
    });
    indent
}
