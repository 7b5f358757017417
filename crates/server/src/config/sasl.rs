//! Authentication by SASL: who may authenticate, and what becomes of those who cannot.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use quenda_frontend::Password;

use super::remark::{ConfigError, Remark};
use super::resolve::{Reader, warn_if_relative};
use crate::sasl::{SourceError, UserSource, Users};

/// What ZooKeeper calls the provider of the scheme.
pub(super) const PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";

/// A JAAS file.
const JAAS: &str = "java.security.auth.login.config";
/// A plain file of users.
const PLAIN: &str = "quenda.saslUsers";
/// The password of the user `super`.
const SUPER_PASSWORD: &str = "SASLAuthenticationProvider.superPassword";

/// Settings of authentication by SASL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaslSettings {
    /// Where the users are. `java.security.auth.login.config` and `sasl.serverconfig`, or `quenda.saslUsers`.
    pub users: Option<UserSource>,
    /// Whether the scheme sasl is there: access lists may name it. By `users`, or `authProvider.*`.
    pub enabled: bool,
    /// Users who may do everything. `superUser`, `superUser.*`.
    pub super_users: Vec<String>,
    /// The id of access lists that stands for every user. `letAnySaslUserDoX`.
    pub any_user: Option<String>,
    /// Password of the user `super`, if the file has such a user. `SASLAuthenticationProvider.superPassword`.
    pub super_password: Option<Password>,
    /// Whether a client goes on when its authentication failed. `allowSaslFailedClients`.
    pub allow_failed_clients: bool,
}

/// Reads the settings, and the file of users for the first time.
///
/// # Errors
/// Two files of users, or one that is not usable.
pub(super) fn resolve(reader: &mut Reader<'_>) -> Result<SaslSettings, ConfigError> {
    let users = source(reader)?;
    let is_provided = reader
        .settings
        .family("authProvider.")
        .any(|(_, class)| class == PROVIDER);
    let found = match &users {
        Some(source) => first_reading(source, reader)?,
        None => None,
    };
    let super_users = super_users(reader);
    if let Some(found) = &found {
        warn_of_unknown(&super_users, found, reader.remarks);
    }
    Ok(SaslSettings {
        enabled: is_provided || found.is_some(),
        users,
        super_users,
        any_user: any_user(reader),
        super_password: super_password(reader).map(Password::new),
        allow_failed_clients: reader.is_true("allowSaslFailedClients"),
    })
}

fn super_users(reader: &Reader<'_>) -> Vec<String> {
    let family = reader.settings.family("superUser");
    let users = family.filter(|(rest, _)| rest.is_empty() || rest.starts_with('.'));
    users.map(|(_, user)| user.to_owned()).collect()
}

fn any_user(reader: &Reader<'_>) -> Option<String> {
    let id = reader.settings.get("letAnySaslUserDoX");
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}

fn super_password<'a>(reader: &Reader<'a>) -> Option<&'a str> {
    let password = reader.settings.get(SUPER_PASSWORD);
    password.filter(|password| !password.is_empty())
}

fn source(reader: &mut Reader<'_>) -> Result<Option<UserSource>, ConfigError> {
    let settings = reader.settings;
    let path = |name| settings.get(name).filter(|path| !path.is_empty());
    let source = match (path(JAAS), path(PLAIN)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(ConfigError::invalid(format!(
                "{JAAS} and {PLAIN} are both set; one file has the users"
            )));
        }
        (Some(path), None) => UserSource::Jaas {
            path: jaas_path(path),
            section: settings.get_or_default("sasl.serverconfig").to_owned(),
        },
        (None, Some(path)) => UserSource::Plain(path.into()),
    };
    warn_if_relative(source.path(), reader.remarks);
    Ok(Some(source))
}

/// Java takes a URL as well, and reads `==` as "this file alone".
fn jaas_path(text: &str) -> PathBuf {
    let text = text.strip_prefix('=').unwrap_or(text);
    let path = text.strip_prefix("file:").unwrap_or(text);
    let local = path.strip_prefix("//").filter(|path| path.starts_with('/'));
    local.unwrap_or(path).into()
}

fn first_reading(
    source: &UserSource,
    reader: &mut Reader<'_>,
) -> Result<Option<Users>, ConfigError> {
    let key = source.key();
    let refusal = |error: SourceError| ConfigError::invalid(format!("{key}: SASL users: {error}"));
    let users = source.read().map_err(refusal)?;
    if is_open_to_all(source.path()) {
        reader.remarks.push(Remark::warn(format!(
            "SASL users: every user of this machine may read the passwords in {}; chmod o= it",
            source.path().display()
        )));
    }
    if let Some(options) = source.doubtful_options() {
        reader.remarks.push(Remark::warn(format!(
            "{key}: {source}: options that name no user have no effect: {options}. A user is user_NAME=\"PASSWORD\""
        )));
    }
    let problem = match &users {
        None => Some("no login module is there: SASL is off"),
        Some(users) if users.is_empty() => Some("no users are there: nobody can authenticate"),
        Some(users) if super_password(reader).is_some() && !users.contains_key("super") => Some(
            "there is no user super for SASLAuthenticationProvider.superPassword, as ZooKeeper demands too",
        ),
        Some(_) => None,
    };
    if let Some(problem) = problem {
        let text = format!("SASL users, {source}: {problem}");
        reader.remarks.push(Remark::warn(text));
    }
    Ok(users)
}

fn warn_of_unknown(super_users: &[String], users: &Users, remarks: &mut Vec<Remark>) {
    for user in super_users {
        if !user.is_empty() && !users.contains_key(user) {
            let text = format!("superUser: {user:?} is not among the users");
            remarks.push(Remark::warn(text));
        }
    }
}

/// Whether everybody on this machine may read a file.
pub(super) fn is_open_to_all(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jaas_file_may_be_named_as_java_names_it() {
        for text in [
            "/etc/jaas.conf",
            "=/etc/jaas.conf",
            "file:/etc/jaas.conf",
            "file:///etc/jaas.conf",
            "=file:/etc/jaas.conf",
        ] {
            assert_eq!(jaas_path(text), Path::new("/etc/jaas.conf"), "{text}");
        }
        assert_eq!(jaas_path("jaas.conf"), Path::new("jaas.conf"));
    }
}
