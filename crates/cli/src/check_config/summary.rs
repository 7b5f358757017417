//! What comes of a configuration, in a few lines.

use std::path::Path;

use quenda_server::config::{
    AuditFormat, ClientAuth, MetricsEndpoint, Protocol, ServerConfig, TlsSettings,
};

/// Name and value of each line.
pub fn summary(config: &ServerConfig) -> Vec<(String, String)> {
    let mut lines = lines(config);
    for server in &config.ensemble {
        lines.push((format!("server.{}", server.id), server.to_string()));
    }
    lines
}

fn lines(config: &ServerConfig) -> Vec<(String, String)> {
    let mut lines = vec![
        ("member", member(config)),
        ("clients", clients(config)),
        ("data", directories(config)),
        (
            "session timeouts",
            format!(
                "{} to {} ms",
                config.min_session_timeout_ms, config.max_session_timeout_ms
            ),
        ),
        ("connections", connections(config)),
        ("largest request", format!("{} bytes", config.max_frame)),
        ("four-letter words", words(config)),
        ("access", access(config)),
        ("administration", administration(config)),
    ];
    if let Some(endpoint) = &config.metrics.endpoint {
        lines.push(("metrics", metrics(endpoint)));
    }
    if let Some(tls) = &config.tls {
        lines.push(("TLS", self::tls(tls, "clients")));
    }
    if let Some(tls) = &config.quorum_tls {
        lines.push(("between members", between_members(tls)));
    }
    if let Some(audit) = &config.audit {
        let form = match audit.format {
            AuditFormat::Text => "text",
            AuditFormat::Json => "JSON",
        };
        lines.push(("audit log", format!("{} ({form})", audit.path.display())));
    }
    if config.reconfig_enabled {
        lines.push(("reconfig", "allowed".to_owned()));
    }
    let named = |(name, value): (&str, String)| (name.to_owned(), value);
    lines.into_iter().map(named).collect()
}

fn metrics(endpoint: &MetricsEndpoint) -> String {
    let ports = [("http", endpoint.port), ("https", endpoint.secure_port)];
    let ports = ports
        .into_iter()
        .filter_map(|(way, port)| Some((way, port?)));
    let places: Vec<String> = ports
        .map(|(way, port)| format!("{way}://{}:{port}/metrics", endpoint.address))
        .collect();
    places.join(", ")
}

fn member(config: &ServerConfig) -> String {
    let id = config.my_id;
    match (config.ensemble.len(), config.observer) {
        (0, _) => format!("{id}, runs alone"),
        (count, false) => format!("{id} of {count}, votes"),
        (count, true) => format!("{id} of {count}, observer without a vote"),
    }
}

fn clients(config: &ServerConfig) -> String {
    let place = |address: &Option<String>, port: u16| {
        format!("{}:{port}", address.as_deref().unwrap_or("*"))
    };
    let plain = config.client_port.map(|port| {
        let unified = config.tls.as_ref().is_some_and(|tls| tls.unified);
        let way = if unified {
            "with and without TLS"
        } else {
            "without TLS"
        };
        format!("{} {way}", place(&config.client_address, port))
    });
    let secure = config.tls.as_ref().and_then(|tls| {
        let port = tls.port?;
        Some(format!("{} with TLS", place(&tls.address, port)))
    });
    let all: Vec<String> = plain.into_iter().chain(secure).collect();
    let not_as_leader = config.spares_leader() && !config.observer;
    match (all.is_empty(), not_as_leader) {
        (true, _) => "no port: nobody can connect".to_owned(),
        (false, true) => format!("{}, not while this member leads", all.join(", ")),
        (false, false) => all.join(", "),
    }
}

fn directories(config: &ServerConfig) -> String {
    let shown = |path: &Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let state = match path.is_dir() {
            true => "",
            false => " (will be created)",
        };
        format!("{}{state}", absolute.display())
    };
    match &config.data_log_dir {
        Some(log) => format!("{}, log in {}", shown(&config.data_dir), shown(log)),
        None => shown(&config.data_dir),
    }
}

fn between_members(settings: &TlsSettings) -> String {
    let way = match (settings.dialing, settings.unified) {
        (Some(_), false) => "TLS alone",
        (Some(_), true) => "TLS, and without it where the other member dials so",
        (None, _) => "without TLS, and with it where the other member dials so",
    };
    format!("{way}; {}", tls(settings, "members"))
}

fn connections(config: &ServerConfig) -> String {
    let bound = |bound: u32| match bound {
        0 => "without bound".to_owned(),
        bound => bound.to_string(),
    };
    format!(
        "{} from one address, {} in all",
        bound(config.max_client_cnxns),
        bound(config.max_cnxns)
    )
}

fn words(config: &ServerConfig) -> String {
    match &config.four_letter_whitelist {
        Some(list) => format!("{list} (srvr always)"),
        None => "those that only read and stay small".to_owned(),
    }
}

fn administration(config: &ServerConfig) -> String {
    let admin = &config.admin;
    let Some(port) = admin.port else {
        return "not over HTTP".to_owned();
    };
    let scheme = match &admin.tls {
        None => "http",
        Some(tls) if tls.unified => "http and https",
        Some(_) => "https",
    };
    let address = admin.address.as_deref().unwrap_or("*");
    format!("{scheme} on {address}:{port}{}", admin.command_url)
}

fn access(config: &ServerConfig) -> String {
    if config.skip_acl {
        return "no checks: everybody may do everything (skipACL)".to_owned();
    }
    let demanded = match config.enforce_auth_schemes.is_empty() {
        true => "access lists count".to_owned(),
        false => format!(
            "access lists count, clients must authenticate by {}",
            config.enforce_auth_schemes.join(" or ")
        ),
    };
    match &config.sasl.users {
        Some(users) => format!("{demanded}; SASL users from {users}"),
        None => demanded,
    }
}

fn tls(tls: &TlsSettings, who: &str) -> String {
    let versions: Vec<&str> = tls
        .protocols
        .iter()
        .map(|version| match version {
            Protocol::Tls12 => "1.2",
            Protocol::Tls13 => "1.3",
        })
        .collect();
    let certificates = match tls.client_auth {
        ClientAuth::None => "are not asked for certificates",
        ClientAuth::Want => "may show certificates",
        ClientAuth::Need => "must show certificates",
    };
    format!(
        "{} with {} ({}), {who} {certificates}",
        versions.join(" and "),
        tls.key_store.path.display(),
        tls.key_store.format
    )
}
