//! The crate levels of the design: arrows go down only, and three libraries have one owner each.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What each crate may use of the workspace.
const MAY_USE: &[(&str, &[&str])] = &[
    ("quenda-proto", &[]),
    ("quenda-tree", &["quenda-proto"]),
    ("quenda-consensus", &[]),
    ("quenda-frontend", &["quenda-proto", "quenda-tree"]),
    (
        "quenda-node",
        &[
            "quenda-proto",
            "quenda-tree",
            "quenda-consensus",
            "quenda-frontend",
        ],
    ),
    ("quenda-storage", &["quenda-tree", "quenda-consensus"]),
    (
        "quenda-sim",
        &[
            "quenda-proto",
            "quenda-tree",
            "quenda-consensus",
            "quenda-frontend",
            "quenda-node",
        ],
    ),
    ("quenda-client", &["quenda-proto"]),
    (
        "quenda-server",
        &[
            "quenda-proto",
            "quenda-tree",
            "quenda-consensus",
            "quenda-frontend",
            "quenda-node",
            "quenda-storage",
        ],
    ),
    (
        "quenda-cli",
        &["quenda-server", "quenda-client", "quenda-proto"],
    ),
    ("quenda-xtask", &[]),
];

/// Crates below `storage`: no I/O, no clock, no threads, no locks.
const PURE: &[&str] = &[
    "quenda-proto",
    "quenda-tree",
    "quenda-consensus",
    "quenda-frontend",
    "quenda-node",
];

const IMPURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "rocksdb",
    "parking_lot",
    "rand",
    "getrandom",
    "crossbeam",
    "libc",
];

/// Libraries that only one crate may name.
const OWNED: &[(&str, &str)] = &[
    ("raft", "quenda-consensus"),
    ("rocksdb", "quenda-storage"),
    ("clap", "quenda-cli"),
];

/// Source text that has no place in a pure crate.
const IMPURE_SOURCE: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "Instant::now",
    "SystemTime::now",
    "std::thread",
    "std::fs",
    "std::net",
    "std::sync::Mutex",
    "std::sync::RwLock",
];

/// Fails on the first set of edges that the design does not allow.
pub fn check(root: &Path) -> Result<()> {
    let packages = packages(root)?;
    let mut faults = Vec::new();
    for (name, dependencies) in &packages {
        let Some((_, allowed)) = MAY_USE.iter().find(|(owner, _)| owner == name) else {
            faults.push(format!("{name} has no level: add it to layers.rs"));
            continue;
        };
        check_package(name, dependencies, allowed, &mut faults);
    }
    for name in PURE {
        check_source(root, name, &mut faults)?;
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("crate levels:\n  {}", faults.join("\n  "))
}

fn check_package(name: &str, dependencies: &[String], allowed: &[&str], faults: &mut Vec<String>) {
    for dependency in dependencies {
        let inner = dependency.starts_with("quenda-");
        if inner && !allowed.contains(&dependency.as_str()) {
            faults.push(format!("{name} may not use {dependency}"));
        }
        if PURE.contains(&name) && IMPURE.contains(&dependency.as_str()) {
            faults.push(format!("{name} is pure and may not use {dependency}"));
        }
        for (library, owner) in OWNED {
            if dependency == library && name != *owner {
                faults.push(format!("only {owner} may name {library}, not {name}"));
            }
        }
    }
}

fn check_source(root: &Path, name: &str, faults: &mut Vec<String>) -> Result<()> {
    let folder = name.trim_start_matches("quenda-");
    let mut open = vec![root.join("crates").join(folder).join("src")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                open.push(entry?.path());
            }
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        for word in IMPURE_SOURCE {
            if text.contains(word) {
                faults.push(format!("{} names {word}", path.display()));
            }
        }
    }
    Ok(())
}

/// Package name → names of its normal dependencies, as cargo sees them.
fn packages(root: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("the output of cargo metadata")?;
    let mut packages = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default().to_string();
        let dependencies = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str().map(str::to_string))
            .collect();
        packages.insert(name, dependencies);
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upward_edge_is_a_fault() {
        let mut faults = Vec::new();
        let dependencies = ["quenda-node".to_string(), "rocksdb".to_string()];
        check_package("quenda-tree", &dependencies, &["quenda-proto"], &mut faults);
        assert_eq!(faults.len(), 3, "{faults:?}");
    }
}
