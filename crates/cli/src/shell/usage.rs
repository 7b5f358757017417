//! The table of commands, and the texts that are made from it.

use super::options::Flag;
use super::{
    CommandError, acl, config, create, delete, du, get, locks, ls, quota, read, set, top, tree,
    watch, watches,
};

/// One command.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, in zkCli's words where it is zkCli's.
    pub arguments: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Options that its usage lists one by one.
    pub table: &'static [Flag],
    /// Options that its help lists where its usage does not.
    pub options: &'static [Flag],
    /// Whether it changes what servers hold.
    pub writes: bool,
    /// Whether zkCli has it too.
    pub in_zkcli: bool,
}

impl Spec {
    /// The options that its arguments name, with their dashes.
    pub fn flags(&self) -> Vec<String> {
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '?';
        let words = self.arguments.split(|letter: char| !is_name(letter));
        let mut flags: Vec<String> = words
            .filter(|word| word.len() > 1 && word.starts_with('-'))
            .map(str::to_owned)
            .collect();
        flags.dedup();
        flags
    }
}

const fn reads(name: &'static str, arguments: &'static str, about: &'static str) -> Spec {
    Spec {
        name,
        arguments,
        about,
        table: &[],
        options: &[],
        writes: false,
        in_zkcli: true,
    }
}

const fn writes(name: &'static str, arguments: &'static str, about: &'static str) -> Spec {
    Spec {
        writes: true,
        ..reads(name, arguments, about)
    }
}

const fn own(name: &'static str, arguments: &'static str, about: &'static str) -> Spec {
    Spec {
        in_zkcli: false,
        ..reads(name, arguments, about)
    }
}

/// All commands, in ASCII order.
pub const COMMANDS: &[Spec] = &[
    Spec {
        options: watches::ADD_FLAGS,
        ..reads(
            "addWatch",
            "[-m mode] path # optional mode is one of [PERSISTENT, PERSISTENT_RECURSIVE] - default is PERSISTENT_RECURSIVE",
            "watch a znode, or all below it, until removewatches",
        )
    },
    reads(
        "addauth",
        "scheme auth",
        "prove an identity, such as: addauth digest user:password",
    ),
    reads("close", "", "end the session"),
    Spec {
        options: config::GET_FLAGS,
        ..reads(
            "config",
            "[-c] [-w] [-s]",
            "members of the ensemble; -c as a connect string",
        )
    },
    reads(
        "connect",
        "host:port",
        "open a session with other servers, or a new one with the same",
    ),
    Spec {
        options: create::FLAGS,
        ..writes(
            "create",
            "[-s] [-e] [-c] [-t ttl] path [data] [acl]",
            "create a znode",
        )
    },
    Spec {
        options: delete::ONE_FLAGS,
        ..writes(
            "delete",
            "[-v version] path",
            "delete a znode without children",
        )
    },
    Spec {
        options: delete::ALL_FLAGS,
        ..writes(
            "deleteall",
            "path [-b batch size]",
            "delete a znode and all below it",
        )
    },
    Spec {
        options: quota::DELETE_FLAGS,
        ..writes(
            "delquota",
            "[-n|-b|-N|-B] path",
            "lift a quota, or one limit of it",
        )
    },
    Spec {
        table: du::FLAGS,
        ..own(
            "du",
            "[-depth N] [-n N] [-c] [-h] [path]",
            "which parts below a znode are large",
        )
    },
    own("exit", "", "the same as quit"),
    own(
        "find",
        "[path] [-name glob] [-type ephemeral|persistent|sequential] [-owner session] [-size [+-]N[k|M|G]] \
         [-children [+-]N] [-mtime +-N[s|m|h|d]] [-ctime +-N[s|m|h|d]]",
        "znodes below a znode by name and metadata",
    ),
    Spec {
        table: get::FLAGS,
        ..reads("get", "[-s] [-w] [-b] [-x] path", "data of a znode")
    },
    Spec {
        options: acl::GET_FLAGS,
        ..reads("getAcl", "[-s] path", "access control list of a znode")
    },
    reads(
        "getAllChildrenNumber",
        "path",
        "number of znodes below a znode",
    ),
    reads("getEphemerals", "path", "ephemeral znodes of this session"),
    own("help", "[command]", "this text, or that of one command"),
    reads("history", "", "the last commands, with numbers for redo"),
    reads("listquota", "path", "limits and use of a quota"),
    Spec {
        table: locks::FLAGS,
        ..own(
            "locks",
            "[-w] [-a] [-l] [path]",
            "who holds locks, who waits, with fencing tokens",
        )
    },
    Spec {
        options: ls::FLAGS,
        ..reads(
            "ls",
            "[-s] [-w] [-R] path",
            "names of children; -R all paths below",
        )
    },
    reads("printwatches", "on|off", "whether watch events are printed"),
    reads("quit", "", "end the session and leave"),
    Spec {
        options: config::SET_FLAGS,
        ..writes(
            "reconfig",
            "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | \
         [-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]",
            "change the members of the ensemble",
        )
    },
    reads("redo", "cmdno", "run a command of the history again"),
    Spec {
        options: watches::REMOVE_FLAGS,
        ..reads(
            "removewatches",
            "path [-c|-d|-a] [-l]",
            "remove watches of this session",
        )
    },
    Spec {
        table: set::FLAGS,
        ..writes(
            "set",
            "path data [-s] [-v version] [-b]",
            "replace the data of a znode",
        )
    },
    Spec {
        options: acl::SET_FLAGS,
        ..writes(
            "setAcl",
            "[-s] [-v version] [-R] path acl",
            "replace the access control list of a znode",
        )
    },
    Spec {
        options: quota::SET_FLAGS,
        ..writes(
            "setquota",
            "-n|-b|-N|-B val path",
            "limit the number of znodes or bytes below a znode",
        )
    },
    Spec {
        options: read::STAT_FLAGS,
        ..reads("stat", "[-w] path", "metadata of a znode")
    },
    reads(
        "sync",
        "path",
        "wait until the server has what was committed before",
    ),
    Spec {
        table: top::FLAGS,
        ..own(
            "top",
            "[-n N] [-d seconds] [-k requests|bytes|latency] [-r rows] [-a]",
            "who loads the server",
        )
    },
    Spec {
        table: tree::FLAGS,
        ..own(
            "tree",
            "[-L depth] [-d] [-s] [path]",
            "the znodes below a znode as a picture",
        )
    },
    reads("version", "", "version of this shell"),
    Spec {
        table: watch::FLAGS,
        ..own(
            "watch",
            "[-d] [-1] [-n N] [path]",
            "follow what changes below a znode",
        )
    },
    reads("whoami", "", "identities of this connection"),
];

/// The command of that name.
pub fn find(name: &str) -> Option<&'static Spec> {
    COMMANDS.iter().find(|spec| spec.name == name)
}

/// The error for arguments that do not fit: name, arguments, table of options.
pub fn of(name: &str) -> CommandError {
    CommandError::Failed(find(name).map_or_else(|| name.to_owned(), text))
}

/// Name, arguments, table of options.
pub fn text(spec: &Spec) -> String {
    let head = format!("{} {}", spec.name, spec.arguments);
    if spec.table.is_empty() {
        return head;
    }
    // zkCli leaves an empty line behind the table.
    format!("{head}\n{}\n", table(spec.table))
}

/// Options and what they do, in columns.
pub fn table(flags: &[Flag]) -> String {
    let left = |flag: &Flag| format!(" -{}{}", flag.name, if flag.valued { " <arg>" } else { "" });
    let width = flags.iter().map(|flag| left(flag).len()).max().unwrap_or(0);
    let lines: Vec<String> = flags
        .iter()
        .map(|flag| {
            let line = format!("{:width$}   {}", left(flag), flag.about);
            line.trim_end().to_owned()
        })
        .collect();
    lines.join("\n")
}

/// What `ls -?` prints.
pub fn help_of_ls() -> String {
    format!("usage: ls [options] path\n{}", table(ls::FLAGS))
}

/// zkCli's block of all its commands.
pub fn block() -> String {
    let mut text =
        "ZooKeeper -server host:port -client-configuration properties-file cmd args".to_owned();
    for spec in COMMANDS.iter().filter(|spec| spec.in_zkcli) {
        text.push_str(&format!("\n\t{} {}", spec.name, spec.arguments));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_order_and_unique() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
