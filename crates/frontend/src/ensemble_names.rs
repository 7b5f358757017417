//! By which names clients may call an ensemble: the scheme `ensemble`, which proves nothing.
//!
//! A client that was led to the wrong ensemble, by an old list of servers say, learns it before it does harm there.

use crate::world::NamedEnsemble;

/// Names of this ensemble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnsembleNames {
    /// Every name passes.
    Any,
    /// One of these.
    OneOf(Vec<String>),
}

impl EnsembleNames {
    /// Names with commas between, as `ensembleAuthName` has them.
    pub fn from_setting(text: Option<&str>) -> EnsembleNames {
        match text {
            None => EnsembleNames::Any,
            Some(text) => {
                EnsembleNames::OneOf(text.split(',').map(|name| name.trim().to_owned()).collect())
            }
        }
    }

    /// Which ensemble a client means that says so. Who says nothing means any.
    pub(crate) fn meant(&self, said: &[u8]) -> NamedEnsemble {
        match self {
            EnsembleNames::OneOf(names) if !said.is_empty() => {
                let is_own = names.iter().any(|name| name.as_bytes() == said);
                if is_own {
                    NamedEnsemble::Own
                } else {
                    NamedEnsemble::Other
                }
            }
            EnsembleNames::Any | EnsembleNames::OneOf(_) => NamedEnsemble::Any,
        }
    }
}
