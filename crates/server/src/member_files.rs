//! The configuration files follow the ensemble: after each change of the members a new dynamic file, and the static one
//! points to it, as ZooKeeper does with `reconfigEnabled`.
//!
//! The replicated configuration is what counts. The files are for the next start, and for tools that read them. A
//! thread of its own writes them, as the core must not wait for a disk; where they cannot be written the log says so.
//!
//! A crash at any moment leaves files to start from: the old static file counts with what it has always pointed to, which
//! stays, until the new one takes its place in one step. The start brings up to date what was left behind.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use quenda_tree::ensemble::Ensemble;
use tracing::{info, warn};

use crate::config::properties::{self, Pair};

/// Behind the name of a file that is being written.
const UNFINISHED: &str = ".tmp";

/// The way to the thread that writes.
#[derive(Debug)]
pub struct MemberFiles {
    wanted: Sender<Wanted>,
}

/// What the files are to say.
#[derive(Debug)]
struct Wanted {
    version: i64,
    /// The `server.N` lines.
    lines: Vec<String>,
    /// Whether the own line says where clients are served.
    has_client: bool,
}

impl MemberFiles {
    /// Starts the thread for the files around this configuration file.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(file: &Path) -> io::Result<MemberFiles> {
        let (wanted, queue) = channel();
        let file = std::path::absolute(file)?;
        crate::thread::spawn("quenda-config", move || run(&file, &queue))?;
        Ok(MemberFiles { wanted })
    }

    /// The members have changed, or are those of the start. A member that was taken out keeps the files in which it is
    /// one: without a line of its own it could not start and wait to be added again.
    pub fn follow(&self, member: u64, ensemble: &Ensemble) {
        let Some(own) = ensemble.server(member) else {
            return;
        };
        let mut lines: Vec<String> = ensemble.servers().map(|server| server.line()).collect();
        lines.sort();
        let wanted = Wanted {
            version: ensemble.version,
            lines,
            has_client: own.client.is_some(),
        };
        if self.wanted.send(wanted).is_err() {
            warn!("the configuration files are not written any more: their thread has ended");
        }
    }
}

fn run(file: &Path, queue: &Receiver<Wanted>) {
    sweep(file);
    while let Ok(mut wanted) = queue.recv() {
        while let Ok(newer) = queue.try_recv() {
            wanted = newer;
        }
        match bring_up_to_date(file, &wanted) {
            Ok(None) => {}
            Ok(Some(path)) => {
                info!(file = %path.display(), "the members are written into the configuration files");
            }
            Err(error) => warn!(
                %error, file = %file.display(),
                "the configuration files do not name the members of today: they cannot be written. The data directory has them; \
                 bring the files up to date by hand, for a start with an empty one"
            ),
        }
    }
}

/// Writes what is not there yet; the new dynamic file if there was something to write.
fn bring_up_to_date(file: &Path, wanted: &Wanted) -> io::Result<Option<PathBuf>> {
    let bytes = fs::read(file)?;
    let pairs = properties::parse(&bytes).map_err(io::Error::other)?;
    let dynamic = beside(file, &format!(".dynamic.{:x}", wanted.version));
    let content = wanted.lines.join("\n");
    let pointer = dynamic.canonicalize().unwrap_or_else(|_| dynamic.clone());
    if value(&pairs, "dynamicConfigFile").is_some_and(|path| Path::new(path) == pointer)
        && fs::read_to_string(&dynamic).is_ok_and(|found| found == content)
    {
        return Ok(None);
    }
    if pairs.iter().any(|pair| pair.key.starts_with("server.")) {
        replace(&beside(file, ".bak"), &bytes, file)?;
    }
    replace(&dynamic, content.as_bytes(), file)?;
    let pointer = dynamic.canonicalize()?;
    let text = rewritten(&bytes, &pairs, &pointer, wanted.has_client);
    // Where the file is a link, what it leads to is replaced.
    replace(&file.canonicalize()?, &text, file)?;
    Ok(Some(dynamic))
}

/// The static file without what has moved; comments and order stay. The pointer is its last line.
fn rewritten(bytes: &[u8], pairs: &[Pair], pointer: &Path, has_client: bool) -> Vec<u8> {
    let mut text = bytes.to_vec();
    let mut cut = 0;
    for pair in pairs.iter().filter(|pair| has_moved(&pair.key, has_client)) {
        let range = pair.start - cut..pair.start - cut + pair.raw.len();
        cut += range.len();
        text.drain(range);
    }
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(b'\n');
    }
    let line = properties::line("dynamicConfigFile", &pointer.to_string_lossy());
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
    text
}

fn has_moved(key: &str, has_client: bool) -> bool {
    const MOVED: [&str; 5] = [
        "server.",
        "group",
        "weight",
        "dynamicConfigFile",
        "peerType",
    ];
    const CLIENT: [&str; 2] = ["clientPort", "clientPortAddress"];
    MOVED.iter().any(|beginning| key.starts_with(beginning))
        || (has_client && CLIENT.contains(&key))
}

fn value<'a>(pairs: &'a [Pair], key: &str) -> Option<&'a str> {
    let mut lines = pairs.iter().rev();
    let pair = lines.find(|pair| pair.key == key)?;
    Some(pair.value.trim())
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Takes away what a crash has left unfinished.
fn sweep(file: &Path) {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    for file in [file, &real] {
        let Some((folder, name)) = file.parent().zip(file.file_name()) else {
            continue;
        };
        // Where nothing can be read or removed, nothing can be written either, and that is told.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if is_unfinished(
                &entry.file_name().to_string_lossy(),
                &name.to_string_lossy(),
            ) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Whether a file was to become the one with this name, or one of those beside it.
fn is_unfinished(found: &str, name: &str) -> bool {
    let rest = found.strip_prefix(name);
    let stem = rest.and_then(|rest| rest.strip_suffix(UNFINISHED));
    stem.is_some_and(|stem| {
        let version = stem.strip_prefix(".dynamic.");
        let is_version = version.is_some_and(|hex| i64::from_str_radix(hex, 16).is_ok());
        stem.is_empty() || stem == ".bak" || is_version
    })
}

/// Writes a file in one piece, with the rights of another one: whoever looks sees the old content or the new.
fn replace(path: &Path, content: &[u8], like: &Path) -> io::Result<()> {
    let unfinished = beside(path, UNFINISHED);
    let written = write_durably(&unfinished, content, like);
    let replaced = written.and_then(|()| fs::rename(&unfinished, path));
    if let Err(error) = replaced {
        // It may not have come into being.
        let _ = fs::remove_file(&unfinished);
        return Err(error);
    }
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

fn write_durably(path: &Path, content: &[u8], like: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.set_permissions(fs::metadata(like)?.permissions())?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATIC: &str = "# ours\ntickTime=2000\nserver.1=a:1:2\n\nclientPort=2181\nclientPortListenBacklog=9\n\
                          server.2 = b:1:2 \\\n  \npeerType=observer\ndataDir=/data";

    fn wanted(version: i64, has_client: bool) -> Wanted {
        Wanted {
            version,
            lines: vec![
                "server.1=a:1:2:participant".into(),
                "server.2=b:1:2:participant".into(),
            ],
            has_client,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a directory");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_members_move_out_and_the_rest_stays() {
        let folder = tempfile::tempdir().expect("a directory");
        let folder = folder.path().canonicalize().expect("a directory");
        let file = folder.join("zoo.cfg");
        fs::write(&file, STATIC).expect("is written");
        let first = folder.join("zoo.cfg.dynamic.100000000");
        let changed = bring_up_to_date(&file, &wanted(0x1_0000_0000, false)).expect("is written");
        assert_eq!(changed, Some(first.clone()));
        let text = |path: &Path| fs::read_to_string(path).expect("is there");
        assert_eq!(
            text(&first),
            "server.1=a:1:2:participant\nserver.2=b:1:2:participant"
        );
        assert_eq!(text(&folder.join("zoo.cfg.bak")), STATIC);
        assert_eq!(
            text(&file),
            format!(
                "# ours\ntickTime=2000\n\nclientPort=2181\nclientPortListenBacklog=9\ndataDir=/data\ndynamicConfigFile={}\n",
                first.display()
            )
        );
        let again = bring_up_to_date(&file, &wanted(0x1_0000_0000, false)).expect("is read");
        assert_eq!(again, None, "there is nothing new");
        bring_up_to_date(&file, &wanted(0x2_0000_0007, true)).expect("is written");
        let second = folder.join("zoo.cfg.dynamic.200000007");
        assert_eq!(
            text(&file),
            format!(
                "# ours\ntickTime=2000\n\nclientPortListenBacklog=9\ndataDir=/data\ndynamicConfigFile={}\n",
                second.display()
            )
        );
        assert_eq!(
            names(&folder),
            [
                "zoo.cfg",
                "zoo.cfg.bak",
                "zoo.cfg.dynamic.100000000",
                "zoo.cfg.dynamic.200000007"
            ]
        );
    }

    #[test]
    fn what_a_crash_has_left_unfinished_goes_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a directory");
        let stays = [
            "zoo.cfg",
            "zoo.cfg.bak",
            "zoo.cfg.dynamic.5",
            "zoo.cfg.dynamic.tmp",
            "zoo.cfg.old.tmp",
            "a.tmp",
        ];
        let goes = [
            "zoo.cfg.tmp",
            "zoo.cfg.bak.tmp",
            "zoo.cfg.dynamic.10000000a.tmp",
        ];
        for name in stays.iter().chain(&goes) {
            fs::write(folder.path().join(name), STATIC).expect("is written");
        }
        sweep(&folder.path().join("zoo.cfg"));
        let mut stays = stays.map(str::to_owned);
        stays.sort();
        assert_eq!(names(folder.path()), stays);
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_files() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("zoo.cfg");
        fs::write(&file, STATIC).expect("is written");
        // A directory in the way of the dynamic file.
        fs::create_dir(folder.path().join("zoo.cfg.dynamic.5")).expect("is made");
        bring_up_to_date(&file, &wanted(5, false)).expect_err("cannot be written");
        assert_eq!(fs::read_to_string(&file).expect("is there"), STATIC);
        assert_eq!(
            names(folder.path()),
            ["zoo.cfg", "zoo.cfg.bak", "zoo.cfg.dynamic.5"]
        );
    }
}
