//! Where users come from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use quenda_frontend::Password;
use quenda_tree::identity::is_principal;

use super::jaas::{self, Entry, Malformed};
use super::plain;
use crate::secrets_file;

/// The one login module that is there.
const DIGEST_MODULE: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";
/// How the options of that module that name users begin.
const USER_PREFIX: &str = "user_";

/// What else stands in such sections: who a client is, and what Java's own modules know.
const KNOWN_OPTIONS: [&str; 4] = ["username", "password", "debug", "refreshKrb5Config"];

/// Users by name.
pub type Users = BTreeMap<String, Password>;

/// A file with users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserSource {
    /// A JAAS file, and the section in it.
    Jaas {
        /// The file.
        path: PathBuf,
        /// The name of the section.
        section: String,
    },
    /// A file with `user: password` lines.
    Plain(PathBuf),
}

/// Why there are no users to be had.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct SourceError {
    path: PathBuf,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error(
        "line {line}: the login module {module} is not there. Only {DIGEST_MODULE} is: Kerberos (GSSAPI) and others are \
         not supported"
    )]
    Module { line: usize, module: String },
    #[error("{user} is no name of a user: an @ may stand before a realm, once")]
    Name { user: String },
}

impl SourceError {
    /// Whether it may be otherwise the next time although the file stays as it is.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.problem, Problem::Unreadable(_))
    }
}

impl UserSource {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            UserSource::Jaas { path, .. } | UserSource::Plain(path) => path,
        }
    }

    /// The key of the configuration that names the file.
    pub fn key(&self) -> &'static str {
        match self {
            UserSource::Jaas { .. } => "java.security.auth.login.config",
            UserSource::Plain(_) => "quenda.saslUsers",
        }
    }

    /// Names of options that look as if they were meant for users; `None` if there are none, or the file cannot be read.
    pub fn doubtful_options(&self) -> Option<String> {
        let UserSource::Jaas { path, section } = self else {
            return None;
        };
        let bytes = secrets_file::read(path).ok()?;
        let mut sections = jaas::parse(&String::from_utf8_lossy(&bytes)).ok()?;
        let entries = sections.remove(section)?;
        let options = entries.iter().flat_map(|entry| entry.options.keys());
        let doubtful: Vec<&str> = options
            .map(String::as_str)
            .filter(|name| !name.starts_with(USER_PREFIX) && !KNOWN_OPTIONS.contains(name))
            .collect();
        (!doubtful.is_empty()).then(|| doubtful.join(", "))
    }

    /// Reads the file; `None` if it has no section for this server.
    ///
    /// # Errors
    /// It cannot be read, or is malformed, or asks for what is not there.
    pub fn read(&self) -> Result<Option<Users>, SourceError> {
        self.users().map_err(|problem| SourceError {
            path: self.path().to_owned(),
            problem,
        })
    }

    fn users(&self) -> Result<Option<Users>, Problem> {
        let bytes = secrets_file::read(self.path()).map_err(Problem::Unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let users = match self {
            UserSource::Plain(_) => Some(plain::parse(&text)?),
            UserSource::Jaas { section, .. } => {
                let mut sections = jaas::parse(&text)?;
                let entries = sections.remove(section).unwrap_or_default();
                (!entries.is_empty())
                    .then(|| of_modules(&entries))
                    .transpose()?
            }
        };
        // Java's server drops the connection of such a user.
        match users
            .iter()
            .flat_map(Users::keys)
            .find(|user| !is_principal(user))
        {
            Some(user) => Err(Problem::Name { user: user.clone() }),
            None => Ok(users),
        }
    }
}

fn of_modules(entries: &[Entry]) -> Result<Users, Problem> {
    let mut users = Users::new();
    for entry in entries {
        if entry.module != DIGEST_MODULE {
            return Err(Problem::Module {
                line: entry.line,
                module: entry.module.clone(),
            });
        }
        for (name, value) in &entry.options {
            if let Some(user) = name.strip_prefix(USER_PREFIX) {
                users.insert(user.to_owned(), Password::new(value));
            }
        }
    }
    Ok(users)
}

impl fmt::Display for UserSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserSource::Jaas { path, section } => {
                write!(formatter, "section {section} of {}", path.display())
            }
            UserSource::Plain(path) => path.display().fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str, section: &str) -> Result<Option<Users>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jaas.conf");
        fs::write(&path, text).expect("a file");
        let section = section.to_owned();
        let source = UserSource::Jaas { path, section };
        let shown = folder.path().display().to_string();
        source
            .read()
            .map_err(|error| error.to_string().replace(&shown, ""))
    }

    const JAAS: &str = "Server {\n org.apache.zookeeper.server.auth.DigestLoginModule required\n user_a=\"1\"\n \
                        username=\"x\";\n};\nOther {\n com.sun.security.auth.module.Krb5LoginModule required;\n};";

    #[test]
    fn users_are_the_options_of_the_section() {
        let users = read(JAAS, "Server");
        let expected = Users::from([("a".to_owned(), Password::new("1"))]);
        assert_eq!(users, Ok(Some(expected)));
        assert_eq!(read(JAAS, "Client"), Ok(None));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let refusal = read(JAAS, "Other").expect_err("Kerberos");
        let expected = "/jaas.conf: line 7: the login module com.sun.security.auth.module.Krb5LoginModule is not there. ";
        assert!(refusal.starts_with(expected), "{refusal}");
        let doubtful = JAAS.replace("user_a=", "\"user_a@b@c\"=");
        let refusal = read(&doubtful, "Server").expect_err("a name");
        assert!(refusal.contains("a@b@c is no name of a user"), "{refusal}");
        let missing = UserSource::Plain("/nowhere/users".into()).read();
        let refusal = missing.expect_err("no file").to_string();
        assert!(
            refusal.starts_with("/nowhere/users: cannot be read: "),
            "{refusal}"
        );
    }
}
