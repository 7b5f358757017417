//! What a session tells, printed as zkCli prints it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quenda_client::{SessionEvent, SessionEvents, SessionState, WatchRemoved};
use quenda_proto::event::EventType;
use serde_json::json;

use super::output::Line;
use super::{Output, Session};

/// Which events are printed.
#[derive(Debug, Clone)]
pub struct Taste {
    /// `printwatches`.
    pub print: Arc<AtomicBool>,
    /// Those of the connection are left out.
    pub quiet: bool,
}

/// Prints events until the session ends.
pub async fn follow(session: Session, mut events: SessionEvents, taste: Taste, out: Output) {
    while let Some(event) = events.next().await {
        session.tell(&event);
        let of_connection = matches!(event, SessionEvent::State(_));
        let wanted = !session.is_muted()
            && taste.print.load(Ordering::Relaxed)
            && !(of_connection && taste.quiet);
        if wanted {
            out.announce(&line(&event, out.wants_json()));
        } else if of_connection {
            // The prompt tells the state.
            out.announce(&Line(String::new()));
        }
    }
}

/// The event as text for between two lines of the user.
fn line(event: &SessionEvent, as_json: bool) -> Line {
    let (state, kind, path, zxid) = parts(event);
    if as_json {
        let value =
            json!({ "event": { "state": state, "type": kind, "path": path, "zxid": zxid } });
        return Line(format!("{value}\n"));
    }
    let path = path.unwrap_or("null");
    Line(format!(
        "\nWATCHER::\n\nWatchedEvent state:{state} type:{kind} path:{path} zxid: {zxid}\n"
    ))
}

/// State, type, path and zxid.
fn parts(event: &SessionEvent) -> (&'static str, &'static str, Option<&str>, i64) {
    match event {
        SessionEvent::State(state) => (state_name(*state), "None", None, -1),
        SessionEvent::Watch(event) => {
            let kind = match event.kind {
                EventType::NodeCreated => "NodeCreated",
                EventType::NodeDeleted => "NodeDeleted",
                EventType::NodeDataChanged => "NodeDataChanged",
                EventType::NodeChildrenChanged => "NodeChildrenChanged",
            };
            ("SyncConnected", kind, Some(&event.path), event.zxid)
        }
        SessionEvent::Removed(removed, path) => {
            let kind = match removed {
                WatchRemoved::Data => "DataWatchRemoved",
                WatchRemoved::Child => "ChildWatchRemoved",
                WatchRemoved::Persistent => "PersistentWatchRemoved",
            };
            ("SyncConnected", kind, Some(path), -1)
        }
    }
}

fn state_name(state: SessionState) -> &'static str {
    match state {
        SessionState::SyncConnected => "SyncConnected",
        SessionState::ConnectedReadOnly => "ConnectedReadOnly",
        SessionState::Disconnected => "Disconnected",
        SessionState::SaslAuthenticated => "SaslAuthenticated",
        SessionState::AuthFailed => "AuthFailed",
        SessionState::Expired => "Expired",
        SessionState::Closed => "Closed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_as_zkclis() {
        let connected = SessionEvent::State(SessionState::SyncConnected);
        assert_eq!(
            line(&connected, false).0,
            "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n"
        );
        let removed = SessionEvent::Removed(WatchRemoved::Child, "/a".to_owned());
        assert_eq!(
            line(&removed, true).0,
            "{\"event\":{\"path\":\"/a\",\"state\":\"SyncConnected\",\"type\":\"ChildWatchRemoved\",\"zxid\":-1}}\n"
        );
    }
}
