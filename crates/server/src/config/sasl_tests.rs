//! Configurations of authentication.

use std::path::PathBuf;

use quenda_frontend::Password;

use super::tests::Case;
use super::*;
use crate::sasl::UserSource;

const PROVIDER: &str =
    "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n";
const JAAS: &str = "java.security.auth.login.config=DIR/jaas.conf\n";
const SECTION: &str = "Server {\n org.apache.zookeeper.server.auth.DigestLoginModule required\n user_super=\"s\"\n \
                       user_bob=\"b\";\n};\n";

/// A file with `text`, beside a JAAS file.
fn case(text: &str, jaas: &str) -> Case {
    let case = Case::with(text);
    case.write("jaas.conf", jaas);
    case.close_to_others("jaas.conf");
    case
}

fn warnings(case: &Case) -> Vec<String> {
    let remarks = case.remarks().into_iter();
    let warnings = remarks.filter(|remark| remark.level == Level::Warn);
    warnings.map(|remark| remark.text).collect()
}

#[test]
fn users_of_a_jaas_file_make_the_scheme() {
    let case = case(JAAS, SECTION);
    assert_eq!(case.remarks(), []);
    let sasl = case.config().sasl;
    let source = UserSource::Jaas {
        path: case.path("jaas.conf"),
        section: "Server".to_owned(),
    };
    assert_eq!(sasl.users, Some(source));
    assert!(sasl.enabled && !sasl.allow_failed_clients);
    assert_eq!((sasl.super_users, sasl.super_password), (vec![], None));
}

#[test]
fn all_that_can_be_said_is_read() {
    let case = case(
        &format!(
            "{JAAS}sasl.serverconfig=Other\nsuperUser=bob\nsuperUser.2=ben\nsuperUsers=eve\n\
             SASLAuthenticationProvider.superPassword=secret\nallowSaslFailedClients=true\n\
             DigestAuthenticationProvider.digestAlg=SHA-256\nsessionRequireClientSASLAuth=true\n"
        ),
        &SECTION.replace("Server", "Other"),
    );
    assert_eq!(
        warnings(&case),
        [
            "superUsers is no key that ZooKeeper knows; it has no effect. Did you mean superUser?",
            "superUser: \"ben\" is not among the users"
        ]
    );
    let config = case.config();
    assert_eq!(config.sasl.super_users, ["bob", "ben"]);
    assert_eq!(config.sasl.super_password, Some(Password::new("secret")));
    assert!(config.sasl.allow_failed_clients);
    assert_eq!(config.digest_algorithm, DigestAlgorithm::Sha256);
    assert_eq!(config.enforce_auth_schemes, ["sasl"]);
    assert!(!format!("{config:?}").contains("secret"));
}

#[test]
fn a_password_of_super_that_is_empty_is_none() {
    let text = format!("{JAAS}SASLAuthenticationProvider.superPassword=\n");
    assert_eq!(case(&text, SECTION).config().sasl.super_password, None);
}

#[test]
fn the_plain_file_and_the_flags() {
    let mut plain = case("quenda.saslUsers=DIR/users\n", "");
    plain.write("users", "bob: b\n");
    plain.close_to_others("users");
    let users = Some(UserSource::Plain(plain.path("users")));
    let sasl = plain.config().sasl;
    assert_eq!((sasl.users, sasl.enabled), (users.clone(), true));

    plain.write("zoo.cfg", "dataDir=DIR\nclientPort=2181\n");
    plain.overrides.sasl_users = Some(plain.path("users"));
    assert_eq!(plain.config().sasl.users, users);
    plain.overrides.jaas = Some(PathBuf::from("/etc/jaas.conf"));
    assert!(
        plain.refusal().contains("are both set"),
        "{}",
        plain.refusal()
    );
}

#[test]
fn javas_flags_name_the_jaas_file_and_its_section() {
    let mut case = case("", &SECTION.replace("Server", "Other"));
    let path = case.path("jaas.conf").display().to_string();
    let flags =
        format!("-Djava.security.auth.login.config={path} -Dzookeeper.sasl.serverconfig=Other");
    case.environment.server_jvmflags = Some(flags);
    assert!(case.config().sasl.enabled);
}

#[test]
fn a_file_without_a_section_is_said_and_goes_on() {
    let without = case(JAAS, "Client { x required; };");
    assert!(!without.config().sasl.enabled);
    let warnings = warnings(&without);
    assert!(warnings[0].contains("section Server of ") && warnings[0].contains("SASL is off"));
    assert!(case(&format!("{JAAS}{PROVIDER}"), "").config().sasl.enabled);
}

#[test]
fn what_is_doubtful_is_warned_of() {
    let warning = |text: &str, jaas: &str, part: &str| {
        let case = case(&format!("{JAAS}{text}"), jaas);
        let warnings = warnings(&case);
        assert!(
            warnings.iter().any(|text| text.contains(part)),
            "{part}: {warnings:?}"
        );
    };
    let module = "Server { org.apache.zookeeper.server.auth.DigestLoginModule required; };";
    warning("", module, "nobody can authenticate");
    let without = SECTION.replace("user_super", "user_ann");
    warning(
        "SASLAuthenticationProvider.superPassword=x",
        &without,
        "no user super",
    );
    let open = Case::with(JAAS);
    open.write("jaas.conf", SECTION);
    assert!(warnings(&open)[0].contains("may read the passwords"));

    let mut shown = case(JAAS, SECTION);
    let name = "zookeeper.SASLAuthenticationProvider.superPassword";
    shown.overrides.properties = vec![(name.to_owned(), "secret".to_owned())];
    let warnings = warnings(&shown);
    assert!(
        warnings[0].contains(name) && !warnings[0].contains("secret"),
        "{warnings:?}"
    );
}

#[test]
fn a_broken_file_stops_the_start_with_its_line() {
    let broken = case(JAAS, "Server {\n x required\n};\n").refusal();
    assert!(broken.contains("jaas.conf: line 3: wanted "), "{broken}");
    let kerberos = "Server {\n com.sun.security.auth.module.Krb5LoginModule required;\n};\n";
    let refusal = case(JAAS, kerberos).refusal();
    assert!(refusal.contains("Kerberos (GSSAPI)"), "{refusal}");
    let missing = Case::with(JAAS).refusal();
    assert!(missing.contains("jaas.conf: cannot be read: "), "{missing}");
}

#[test]
fn nobody_can_be_asked_for_what_nobody_can_prove() {
    for text in [
        "sessionRequireClientSASLAuth=true",
        "enforce.auth.enabled=true\nenforce.auth.schemes=sasl,digest",
    ] {
        let refusal = Case::with(text).refusal();
        assert!(
            refusal.contains("no authentication provider for the scheme sasl"),
            "{refusal}"
        );
        let config = case(&format!("{text}\n{PROVIDER}"), "").config();
        assert_eq!(config.enforce_auth_schemes[0], "sasl");
    }
}
