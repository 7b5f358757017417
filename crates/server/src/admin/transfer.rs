//! Moving the leadership to another member.

use std::sync::Arc;
use std::time::Duration;

use quenda_node::TransferRefusal;
use tokio::time::{Instant, sleep};
use tracing::info;

use super::Admin;
use super::json::{Fields, field};
use crate::limits::{ASK_PATIENCE, TRANSFER_PATIENCE};

/// Why the leadership is where it was.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TransferError {
    /// What was asked for makes no sense.
    #[error("to: {0} is not the id of a member")]
    Id(String),
    /// It cannot be done here, or now.
    #[error("{0}")]
    Refused(TransferRefusal),
    /// Another member leads than the one asked for.
    #[error("member {0} leads instead")]
    Another(u64),
    /// It has not come about.
    #[error(
        "member {0} has not taken over in time; whoever leads now is shown by the command leader"
    )]
    Late(u64),
    /// The thread that would do it is held up.
    #[error("the member is held up (by its disk?) and does not answer")]
    Busy,
}

impl TransferError {
    pub(super) fn status(&self) -> u16 {
        match self {
            TransferError::Id(_) => 400,
            TransferError::Refused(_) | TransferError::Another(_) => 409,
            TransferError::Late(_) | TransferError::Busy => 503,
        }
    }
}

/// Hands the leadership over, to the member with the id `to` or else the fittest, and waits until that leads.
pub(super) async fn transfer(
    admin: &Arc<Admin>,
    to: Option<&str>,
) -> Result<Fields, TransferError> {
    let parse = |text: &str| {
        let id = text.parse();
        id.map_err(|_| TransferError::Id(text.to_owned()))
    };
    let to: Option<u64> = to.map(parse).transpose()?;
    let shared = Arc::clone(&admin.shared);
    let ordered = tokio::task::spawn_blocking(move || {
        shared
            .inbox
            .ask(ASK_PATIENCE, move |member| member.hand_over_to(to))
    });
    let heir = match ordered.await {
        Ok(Some(ordered)) => ordered.map_err(TransferError::Refused)?,
        Ok(None) | Err(_) => return Err(TransferError::Busy),
    };
    info!(
        to = heir,
        "the leadership is handed over, as the operator wishes"
    );
    wait_for(admin, heir).await?;
    Ok(vec![
        field("leader_before", admin.shared.member),
        field("leader", heir),
    ])
}

async fn wait_for(admin: &Admin, heir: u64) -> Result<(), TransferError> {
    let member = admin.shared.member;
    let deadline = Instant::now() + TRANSFER_PATIENCE;
    loop {
        let leader = admin.shared.ensemble.read().leader;
        match leader {
            Some(leader) if leader == heir => return Ok(()),
            Some(leader) if leader != member => return Err(TransferError::Another(leader)),
            _ if Instant::now() >= deadline => return Err(TransferError::Late(heir)),
            _ => sleep(Duration::from_millis(20)).await,
        }
    }
}
