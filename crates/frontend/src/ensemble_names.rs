//! By which names clients may call an ensemble: the scheme `ensemble`, which proves nothing.
//!
//! A client that was led to the wrong ensemble, by an old list of servers say, learns it before it does harm there.

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

    /// Whether a client that says so means this ensemble. Who says nothing means any.
    pub(crate) fn include(&self, said: &[u8]) -> bool {
        match self {
            EnsembleNames::Any => true,
            EnsembleNames::OneOf(names) => {
                said.is_empty() || names.iter().any(|name| name.as_bytes() == said)
            }
        }
    }
}
