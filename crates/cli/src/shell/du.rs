//! `du`: which parts of a subtree are large.

use std::collections::HashMap;

use serde_json::json;

use super::json_list::JsonList;
use super::options::{Flag, flag, valued};
use super::{CommandError, Output, Paint, Session, options, path, usage, walk, words};

/// Options.
pub const FLAGS: &[Flag] = &[
    valued("depth", "parts down to so many levels, 1 if not given"),
    valued("n", "the largest so many only"),
    flag("c", "the most znodes first, not the most bytes"),
    flag("h", "bytes in larger units"),
];

/// What a part holds.
#[derive(Debug, Default, Clone, Copy)]
struct Size {
    znodes: u64,
    bytes: u64,
}

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let start = parsed.words.first().map_or("/", String::as_str);
    path::check(start)?;
    let number = |name: &str| {
        let text = parsed.value(name);
        text.map(|text| text.parse::<usize>().map_err(|_| usage::of("du")))
            .transpose()
    };
    let depth = number("depth")?.unwrap_or(1);
    let most = number("n")?.unwrap_or(usize::MAX);
    let mut sizes: HashMap<String, Size> = HashMap::new();
    let left_out = walk::all(session.client(), start, async |found| {
        let bytes = u64::try_from(found.stat.data_length).unwrap_or(0);
        for part in parts(start, &found.path, depth) {
            let size = match sizes.get_mut(part) {
                Some(size) => size,
                None => sizes.entry(part.to_owned()).or_default(),
            };
            size.znodes += 1;
            size.bytes += bytes;
        }
        Ok(())
    })
    .await?;
    let mut sizes: Vec<(String, Size)> = sizes.into_iter().collect();
    let by_znodes = parsed.has("c");
    sizes.sort_by(|(a, left), (b, right)| {
        let key = |size: &Size| match by_znodes {
            true => (size.znodes, size.bytes),
            false => (size.bytes, size.znodes),
        };
        key(right).cmp(&key(left)).then_with(|| a.cmp(b))
    });
    sizes.truncate(most);
    print(&sizes, parsed.has("h"), out)?;
    left_out.map_or(Ok(()), |text| out.note(&text))
}

/// The root and the znodes above `path` down to a depth, itself included.
fn parts<'a>(root: &str, path: &'a str, depth: usize) -> impl Iterator<Item = &'a str> {
    let behind = if root == "/" { 0 } else { root.len() };
    let whole = path.len();
    let ends = path[behind..]
        .match_indices('/')
        .map(move |(at, _)| behind + at)
        .filter(move |end| *end > behind || behind == 0 && *end > 0)
        .chain([whole]);
    // The first end is that of the first level, unless the path is the root itself.
    let levels = ends
        .filter(move |end| *end > behind.max(1))
        .take(depth)
        .map(|end| &path[..end]);
    [&path[..behind.max(1)]].into_iter().chain(levels)
}

fn print(sizes: &[(String, Size)], human: bool, out: &mut Output) -> Result<(), CommandError> {
    if out.wants_json() {
        let mut list = JsonList::default();
        for (path, size) in sizes {
            let row = json!({ "path": path, "znodes": size.znodes, "bytes": size.bytes });
            list.push(&row, out)?;
        }
        return list.end(out);
    }
    let amount = |bytes: u64| match human {
        true => words::bytes(bytes),
        false => bytes.to_string(),
    };
    out.line(&out.paint(
        Paint::Strong,
        &format!("{:>14} {:>10}  path", "bytes", "znodes"),
    ))?;
    for (path, size) in sizes {
        let path = out.paint(Paint::Path, path).into_owned();
        out.line(&format!(
            "{:>14} {:>10}  {path}",
            amount(size.bytes),
            size.znodes
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(root: &str, path: &str, depth: usize) -> Vec<String> {
        parts(root, path, depth).map(str::to_owned).collect()
    }

    #[test]
    fn a_znode_counts_for_every_part_above_it() {
        assert_eq!(of("/", "/", 2), ["/"]);
        assert_eq!(of("/", "/a", 2), ["/", "/a"]);
        assert_eq!(of("/", "/a/b/c", 2), ["/", "/a", "/a/b"]);
        assert_eq!(of("/a", "/a", 1), ["/a"]);
        assert_eq!(of("/a", "/a/b/c", 1), ["/a", "/a/b"]);
        assert_eq!(of("/a", "/a/b/c", 0), ["/a"]);
        assert_eq!(of("/a/b", "/a/b/c/d", 9), ["/a/b", "/a/b/c", "/a/b/c/d"]);
    }
}
