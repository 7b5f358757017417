//! Repository tasks: `generate` makes the Rust records from the schema, `check` verifies that generated
//! code and schema agree and that the crates depend on each other only downwards.

mod layers;
mod schema;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const SCHEMA: &str = "jute-schema/zookeeper.jute";
const RECORDS: &str = "crates/proto/src/records.rs";

fn main() -> Result<()> {
    let root = repository_root()?;
    match std::env::args().nth(1).as_deref() {
        Some("generate") => {
            std::fs::write(root.join(RECORDS), generated(&root)?)?;
            println!("wrote {RECORDS}");
        }
        Some("check") => {
            check_records(&root)?;
            layers::check(&root)?;
            println!("records and crate levels are in order");
        }
        _ => bail!("usage: quenda-xtask generate | check"),
    }
    Ok(())
}

fn repository_root() -> Result<PathBuf> {
    // As of this run: a program that was built for another checkout with the same target directory counts as fresh.
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = PathBuf::from(here.context("to be run with `cargo run -p quenda-xtask`")?);
    let root = here.ancestors().nth(2).context("no repository root")?;
    Ok(root.to_path_buf())
}

fn generated(root: &Path) -> Result<String> {
    let text = std::fs::read_to_string(root.join(SCHEMA)).with_context(|| SCHEMA.to_string())?;
    schema::to_rust(&schema::parse(&text)?)
}

fn check_records(root: &Path) -> Result<()> {
    let current = std::fs::read_to_string(root.join(RECORDS))?;
    if current != generated(root)? {
        bail!("{RECORDS} does not match {SCHEMA}: run `cargo run -p quenda-xtask -- generate`");
    }
    Ok(())
}
