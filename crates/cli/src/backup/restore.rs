//! `quenda restore`.

use std::fs::File;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::AdminArgs;
use super::progress::{Progress, size};

/// What has to be typed.
const AGREED: &str = "restore";

/// What `quenda restore` takes.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// Snapshot to restore: of `quenda snapshot`, or a file snapshot.* of a ZooKeeper, plain, .gz or .snappy
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &RestoreArgs) -> Result<ExitCode> {
    let cannot = || format!("cannot read {}", args.file.display());
    let mut file = File::open(&args.file).with_context(cannot)?;
    let metadata = file.metadata().with_context(cannot)?;
    if !metadata.is_file() {
        bail!("{} is no file", args.file.display());
    }
    let length = metadata.len();
    if !args.yes && !agrees(args, length)? {
        crate::output::print("Nothing has changed.\n")?;
        return Ok(ExitCode::FAILURE);
    }
    let endpoint = args.admin.endpoint()?;
    let mut progress = Progress::new("sent", Some(length));
    let mut answer = endpoint.post("restore", length, |out| {
        copy(&mut file, out, length, &mut progress)
    })?;
    progress.finish();
    if answer.status != 200 {
        return Err(answer.refusal());
    }
    let told = answer.json();
    if let Some(error) = told.get("error").and_then(Value::as_str) {
        bail!("{error}");
    }
    let zxid = told.get("last_zxid").and_then(Value::as_i64);
    let zxid = zxid.map_or("unknown".to_owned(), |zxid| format!("{zxid:#x}"));
    crate::output::print(&format!(
        "restored on all members; the ensemble goes on from zxid {zxid}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// As many bytes as were announced.
fn copy(
    file: &mut File,
    out: &mut dyn Write,
    length: u64,
    progress: &mut Progress,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut left = length;
    while left > 0 {
        let wanted = left.min(buffer.len() as u64) as usize;
        let count = file.read(&mut buffer[..wanted])?;
        if count == 0 {
            return Err(io::Error::other("the file has become shorter"));
        }
        out.write_all(&buffer[..count])?;
        progress.add(count);
        left -= count as u64;
    }
    Ok(())
}

/// Whether the operator types the word that is asked for.
fn agrees(args: &RestoreArgs, length: u64) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!(
            "this replaces everything that the ensemble holds: give --yes, or run it in a terminal"
        );
    }
    let mut out = io::stdout().lock();
    write!(
        out,
        "{} ({}) takes the place of everything that the ensemble of {} holds, on all of its members.\n\
         Sessions that are not in it end; all clients are disconnected. The members of the ensemble stay.\n\
         Type \"{AGREED}\" to go on: ",
        args.file.display(),
        size(length),
        args.admin.server
    )?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == AGREED)
}
