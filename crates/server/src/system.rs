//! What the operating system says about this process and its directories.

use std::path::Path;

/// Number of open descriptors, −1 where the system does not tell.
pub fn open_files() -> i64 {
    std::fs::read_dir("/proc/self/fd").map_or(-1, |entries| entries.count() as i64)
}

/// Bound of open descriptors, −1 where the system does not tell.
pub fn max_files() -> i64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|values| values.split_whitespace().next()?.parse().ok())
        .unwrap_or(-1)
}

/// Bytes of all files below a directory; what cannot be read counts nothing.
pub fn size_of_tree(directory: &Path) -> u64 {
    let mut sum = 0;
    let mut open = vec![directory.to_path_buf()];
    while let Some(path) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&path) else {
            continue;
        };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => open.push(entry.path()),
                Ok(metadata) => sum += metadata.len(),
                Err(_) => {}
            }
        }
    }
    sum
}
