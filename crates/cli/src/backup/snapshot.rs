//! `quenda snapshot`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use super::AdminArgs;
use super::http::Answer;
use super::progress::{Progress, size};

/// What `quenda snapshot` takes.
#[derive(Debug, clap::Args)]
pub struct SnapshotArgs {
    #[command(flatten)]
    admin: AdminArgs,
    /// File to write; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

pub(super) fn run(args: &SnapshotArgs) -> Result<ExitCode> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout && !args.force && args.output.exists() {
        bail!(
            "{} is there already (--force replaces it)",
            args.output.display()
        );
    }
    let mut answer = args.admin.endpoint()?.get("snapshot?streaming=true")?;
    // A member that does not serve says so with status 200, as ZooKeeper does.
    let zxid = match answer.header("last_zxid") {
        Some(zxid) if answer.status == 200 => zxid.to_owned(),
        _ => return Err(answer.refusal()),
    };
    let total = answer
        .header("snapshot_size")
        .and_then(|text| text.parse().ok());
    if to_stdout {
        let mut out = io::stdout().lock();
        receive(&mut answer, &mut out, total)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = write_file(&args.output, |file| receive(&mut answer, file, total))?;
    crate::output::print(&format!(
        "snapshot of zxid {zxid}: {} in {}\n",
        size(bytes),
        args.output.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// The file is there when it is whole and on the disk.
fn write_file(path: &Path, fill: impl FnOnce(&mut File) -> Result<u64>) -> Result<u64> {
    let mut name = path
        .file_name()
        .context("the output is no file")?
        .to_owned();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    let cannot = || format!("cannot write {}", unfinished.display());
    let mut options = OpenOptions::new();
    // Data and access lists are not for everybody.
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(&unfinished)
        .with_context(cannot)?;
    let filled = fill(&mut file).and_then(|bytes| {
        file.sync_all().with_context(cannot)?;
        fs::rename(&unfinished, path).with_context(cannot)?;
        Ok(bytes)
    });
    if filled.is_err() {
        // What is left of it is of no use; that it stays is no worse than the error that is told.
        let _ = fs::remove_file(&unfinished);
    }
    filled
}

fn receive(answer: &mut Answer, out: &mut dyn Write, total: Option<u64>) -> Result<u64> {
    let mut progress = Progress::new("received", total);
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = answer
            .body
            .read(&mut buffer)
            .context("the connection broke off")?;
        if count == 0 {
            break;
        }
        out.write_all(&buffer[..count])?;
        progress.add(count);
    }
    let bytes = progress.finish();
    match total {
        Some(total) if total != bytes => {
            bail!("the connection broke off: {bytes} of {total} bytes have come")
        }
        _ => Ok(bytes),
    }
}
