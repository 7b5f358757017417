//! All that is wrong with a configuration, where a start ends with the first of it.

use super::super::members::{self, NO_ID};
use super::super::{DEFAULT_CLIENT_PORT, Overrides, audit, metrics, sasl, storage, throttle, tls};
use super::super::{admin, hierarchy, links, load, quorum_tls};
use super::{Reader, STRICT_BOOLEANS, STRICT_NUMBERS, data_directory};
use crate::config::remark::ConfigError;
use crate::config::settings::Settings;

/// One part of a configuration, looked at for itself. What it needs of another part that is wrong counts as well.
type Part = fn(&mut Reader<'_>, &Overrides) -> Result<(), ConfigError>;

const PARTS: &[Part] = &[
    |reader, overrides| {
        let data = data_directory(reader, overrides)?;
        let log = reader.directory("dataLogDir", overrides.data_log_dir.as_deref());
        reader.demand_directories([Some(&data), log.as_ref()])
    },
    |reader, _| reader.tick_time().map(drop),
    |reader, _| match reader.tick_time() {
        Ok(ticks) => reader.session_bounds(ticks).map(drop),
        Err(_) => Ok(()),
    },
    |reader, _| members::demand_algorithm(reader),
    |reader, _| is_distributed(reader).map(drop),
    |reader, _| match members::servers(reader) {
        Ok(servers) => hierarchy::resolve(reader, &servers),
        Err(_) => Ok(()),
    },
    |reader, _| links::resolve(reader, &links::Limits::default()).map(drop),
    |reader, _| demand_limit(reader, "initLimit"),
    |reader, _| demand_limit(reader, "syncLimit"),
    demand_id,
    |reader, _| reader.client_port("clientPort").map(drop),
    |reader, _| reader.client_port("secureClientPort").map(drop),
    |reader, overrides| {
        // A port that is none counts as one.
        let named = |name| reader.settings.get(name).is_some();
        let by_flag = overrides.client_port.is_some();
        match named("clientPort") || by_flag || named(DEFAULT_CLIENT_PORT) {
            true => Ok(()),
            false => reader.client(None).map(drop),
        }
    },
    |reader, _| sasl::resolve(reader).map(drop),
    |reader, _| tls::resolve(reader).map(drop),
    |reader, _| match is_distributed(reader) {
        Ok(has_others) => quorum_tls::resolve(reader, has_others).map(drop),
        Err(_) => Ok(()),
    },
    |reader, _| {
        let (Ok(sasl), Ok(tls)) = (sasl::resolve(reader), tls::resolve(reader)) else {
            return Ok(());
        };
        let x509 = tls::provides_x509(reader, tls.as_ref());
        reader.enforced_schemes(&sasl, x509).map(drop)
    },
    |reader, overrides| match data_directory(reader, overrides) {
        Ok(data) => audit::resolve(reader, &data).map(drop),
        Err(_) => Ok(()),
    },
    |reader, _| metrics::resolve(reader).map(drop),
    |reader, overrides| {
        let data = data_directory(reader, overrides).ok();
        storage::resolve(reader, [data.as_deref(), None]).map(drop)
    },
    |reader, _| throttle::resolve(reader).map(drop),
    |reader, _| load::resolve(reader).map(drop),
    |reader, _| admin::resolve(reader).map(drop),
    |reader, _| reader.digest_algorithm().map(drop),
];

/// Whatever is wrong with any part.
pub(in crate::config) fn of_all_parts(
    settings: &Settings,
    overrides: &Overrides,
) -> Vec<ConfigError> {
    let mut remarks = Vec::new();
    let mut reader = Reader {
        settings,
        remarks: &mut remarks,
    };
    let mut refusals: Vec<ConfigError> = PARTS
        .iter()
        .filter_map(|part| part(&mut reader, overrides).err())
        .collect();
    let numbers = ["maxClientCnxns", "clientPortListenBacklog"];
    let numbers = numbers.into_iter().chain(STRICT_NUMBERS);
    let given = numbers.filter(|name| settings.get(name).is_some());
    refusals.extend(given.filter_map(|name| reader.strict(name).err()));
    let switches = ["reconfigEnabled", "quorumListenOnAllIPs"];
    let switches = switches.into_iter().chain(STRICT_BOOLEANS);
    refusals.extend(switches.filter_map(|name| reader.strict_bool(name).err()));
    refusals
}

fn is_distributed(reader: &mut Reader<'_>) -> Result<bool, ConfigError> {
    let servers = members::servers(reader)?;
    members::is_distributed(reader, &servers)
}

fn demand_limit(reader: &mut Reader<'_>, name: &str) -> Result<(), ConfigError> {
    match is_distributed(reader) {
        Ok(true) => members::limit(reader, name).map(drop),
        Ok(false) | Err(_) => Ok(()),
    }
}

fn demand_id(reader: &mut Reader<'_>, overrides: &Overrides) -> Result<(), ConfigError> {
    let Ok(data) = data_directory(reader, overrides) else {
        return Ok(());
    };
    let id = match overrides.my_id {
        Some(id) => Some(id),
        None => members::read_my_id(&data.join("myid"))?,
    };
    match is_distributed(reader) {
        Ok(true) if id.is_none() => Err(ConfigError::invalid(NO_ID)),
        Ok(_) | Err(_) => Ok(()),
    }
}
