//! The surroundings of the process, for `envi`.

use std::fs;

const UNKNOWN: &str = "<NA>";

/// What `envi` prints beside the version. Keys of a Java runtime stay, with a stand-in, because scripts grep for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Name of this machine.
    pub host_name: String,
    /// Directory for temporary files.
    pub tmp_dir: String,
    /// Processor architecture in Java's spelling (`amd64`, `aarch64`).
    pub os_arch: String,
    /// Release of the kernel.
    pub os_version: String,
    /// Name of the user the process runs as.
    pub user_name: String,
    /// Home directory of that user.
    pub user_home: String,
    /// Working directory.
    pub user_dir: String,
}

impl Environment {
    /// Reads the surroundings of this process; what cannot be read becomes `<NA>`.
    pub fn of_this_process() -> Self {
        let user = current_user();
        Self {
            host_name: first_line("/proc/sys/kernel/hostname").unwrap_or_else(unknown),
            tmp_dir: std::env::temp_dir().display().to_string(),
            os_arch: match std::env::consts::ARCH {
                "x86_64" => "amd64".to_owned(),
                other => other.to_owned(),
            },
            os_version: first_line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
            user_name: user.as_ref().map_or_else(unknown, |user| user.name.clone()),
            user_home: user.map_or_else(unknown, |user| user.home),
            user_dir: std::env::current_dir()
                .map_or_else(|_| unknown(), |dir| dir.display().to_string()),
        }
    }

    pub(super) fn pairs(&self, version: &str, memory: &Memory) -> Vec<(&'static str, String)> {
        let pairs = [
            ("zookeeper.version", version),
            ("host.name", &self.host_name),
            ("java.version", UNKNOWN),
            ("java.vendor", UNKNOWN),
            ("java.home", UNKNOWN),
            ("java.class.path", UNKNOWN),
            ("java.library.path", UNKNOWN),
            ("java.io.tmpdir", &self.tmp_dir),
            ("java.compiler", UNKNOWN),
            ("os.name", "Linux"),
            ("os.arch", &self.os_arch),
            ("os.version", &self.os_version),
            ("user.name", &self.user_name),
            ("user.home", &self.user_home),
            ("user.dir", &self.user_dir),
            ("os.memory.free", &memory.free),
            ("os.memory.max", &memory.max),
            ("os.memory.total", &memory.total),
        ];
        let pairs = pairs.into_iter();
        pairs.map(|(key, value)| (key, value.to_owned())).collect()
    }

    pub(super) fn text(&self, version: &str, memory: &Memory) -> String {
        let mut text = String::from("Environment:\n");
        for (key, value) in self.pairs(version, memory) {
            text.push_str(key);
            text.push('=');
            text.push_str(&value);
            text.push('\n');
        }
        text
    }
}

/// Memory figures in ZooKeeper's `NNNMB` form: free on the machine, the machine's whole, and what the process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) free: String,
    pub(super) max: String,
    pub(super) total: String,
}

impl Memory {
    pub(super) fn now() -> Self {
        Self {
            free: megabytes("/proc/meminfo", "MemAvailable:"),
            max: megabytes("/proc/meminfo", "MemTotal:"),
            total: megabytes("/proc/self/status", "VmRSS:"),
        }
    }
}

/// The figure, given in kB, behind `label` in a file of `/proc`.
fn megabytes(file: &str, label: &str) -> String {
    let kilobytes = fs::read_to_string(file).ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix(label))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    kilobytes.map_or_else(unknown, |kilobytes| format!("{}MB", kilobytes / 1024))
}

struct User {
    name: String,
    home: String,
}

/// The line of `/etc/passwd` for the effective user id of this process.
fn current_user() -> Option<User> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let effective = ids.split_whitespace().nth(1)?;
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            [name, _, id, _, _, home, ..] if *id == effective => Some(User {
                name: (*name).to_owned(),
                home: (*home).to_owned(),
            }),
            _ => None,
        }
    })
}

fn first_line(file: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines()
        .next()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}
