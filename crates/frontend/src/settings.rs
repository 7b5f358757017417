//! What an operator can set about the client protocol.

use quenda_proto::acl::SASL;
use quenda_tree::command::Switches;
use quenda_tree::identity::DigestAlgorithm;

use crate::ensemble_names::EnsembleNames;
use crate::gates::Throttling;
use crate::limits::Limits;
use crate::observe::Observation;

/// Settings that all connections of a member share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Shortest session timeout in milliseconds (`minSessionTimeout`). Default 4 000.
    pub session_timeout_min_ms: i32,
    /// Longest session timeout in milliseconds (`maxSessionTimeout`). Default 40 000.
    pub session_timeout_max_ms: i32,
    /// `user:hash` of the digest identity that passes every check
    /// (`DigestAuthenticationProvider.superDigest`). Default none.
    pub super_digest: Option<String>,
    /// Hash of the digest scheme (`DigestAuthenticationProvider.digestAlg`). Default SHA-1.
    pub digest_algorithm: DigestAlgorithm,
    /// Whether the digest scheme exists (`DigestAuthenticationProvider.enabled`). Default true.
    pub digest_enabled: bool,
    /// Whether the scheme of certificates (`x509`) exists: clients can prove theirs, and access lists may name them.
    /// Default false.
    pub x509_enabled: bool,
    /// Subject of the certificate that passes every check (`X509AuthenticationProvider.superUser`). Default none.
    pub x509_super_user: Option<String>,
    /// Whether the scheme of SASL users (`sasl`) exists: access lists may name them. Default false.
    pub sasl_enabled: bool,
    /// SASL users who pass every check (`superUser`). Default none.
    pub sasl_super_users: Vec<String>,
    /// The SASL id of access lists that stands for every SASL user (`letAnySaslUserDoX`). Default none.
    pub sasl_any_user: Option<String>,
    /// Whether a connection goes on, as nobody, when its authentication by SASL failed
    /// (`allowSaslFailedClients`); not if SASL is required. Default false.
    pub allow_sasl_failed_clients: bool,
    /// By which names clients may call this ensemble (`ensembleAuthName`), if the scheme `ensemble` exists. Default none.
    pub ensemble_names: Option<EnsembleNames>,
    /// Schemes of which a connection needs one before it may do anything (`enforce.auth.schemes`);
    /// empty to ask for none. Default empty.
    pub enforce_auth: Vec<String>,
    /// Permissions are not checked (`skipACL`). Default false.
    pub skip_acl: bool,
    /// Whether a write that this member sees to be forbidden is refused before it is proposed (`enableEagerACLCheck`).
    /// Default false.
    pub eager_acl_check: bool,
    /// Hard quotas are enforced (`enforceQuota`). Default false.
    pub enforce_quota: bool,
    /// Whether znodes with a time to live can be created (`extendedTypesEnabled`). Default true.
    pub ttl_enabled: bool,
    /// Whether reconfig is served at all (`reconfigEnabled`). Default false.
    pub reconfig_enabled: bool,
    /// Whether an ensemble may not shrink to one voter (`standaloneEnabled`). Default true.
    pub standalone_enabled: bool,
    /// Whether every read waits for a barrier, so that it is linearizable and not only sequentially
    /// consistent. Costs a round to a majority, shared by all reads that arrive together, and no write of
    /// the log. Default false.
    pub linearizable_reads: bool,
    /// Whether a local session becomes one of the cluster when it creates an ephemeral znode
    /// (`localSessionsUpgradingEnabled`). Default false.
    pub local_sessions_upgrading: bool,
    /// Which requests are named one by one.
    pub observation: Observation,
    /// Bounds of what waits.
    pub throttling: Throttling,
    /// Bounds.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            session_timeout_min_ms: 4_000,
            session_timeout_max_ms: 40_000,
            super_digest: None,
            digest_algorithm: DigestAlgorithm::default(),
            digest_enabled: true,
            x509_enabled: false,
            x509_super_user: None,
            sasl_enabled: false,
            sasl_super_users: Vec::new(),
            sasl_any_user: None,
            allow_sasl_failed_clients: false,
            ensemble_names: None,
            enforce_auth: Vec::new(),
            skip_acl: false,
            eager_acl_check: false,
            enforce_quota: false,
            ttl_enabled: true,
            reconfig_enabled: false,
            standalone_enabled: true,
            linearizable_reads: false,
            local_sessions_upgrading: false,
            observation: Observation::default(),
            throttling: Throttling::default(),
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// The timeout that a client gets for the one it asked for, both in milliseconds.
    pub fn negotiate_timeout(&self, wanted_ms: i32) -> i32 {
        wanted_ms
            .max(self.session_timeout_min_ms)
            .min(self.session_timeout_max_ms)
    }

    pub(crate) fn requires_sasl(&self) -> bool {
        self.enforce_auth.iter().any(|scheme| scheme == SASL)
    }

    pub(crate) fn switches(&self) -> Switches {
        Switches {
            skip_acl: self.skip_acl,
            enforce_quota: self.enforce_quota,
            reconfig_enabled: self.reconfig_enabled,
            standalone_enabled: self.standalone_enabled,
            x509: self.x509_enabled,
            sasl: self.sasl_enabled,
            without_digest: !self.digest_enabled,
            without_ttl: !self.ttl_enabled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_clamped() {
        let settings = Settings::default();
        for (wanted, given) in [
            (-5, 4_000),
            (1, 4_000),
            (10_000, 10_000),
            (1_000_000, 40_000),
        ] {
            assert_eq!(settings.negotiate_timeout(wanted), given);
        }
    }
}
