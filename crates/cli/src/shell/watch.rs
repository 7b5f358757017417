//! `watch`: follows what changes below a znode.

use quenda_client::{Client, SessionEvent, SessionState};
use quenda_proto::event::{EventType, WatcherType};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::options::{Flag, flag, valued};
use super::{AtPath, CommandError, Output, Paint, Session, get, options, path, usage, words};

/// Options.
pub const FLAGS: &[Flag] = &[
    flag("d", "with the new data"),
    flag("1", "the znode alone, not what is below it"),
    valued("n", "end after so many events"),
];

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let path = parsed.words.first().map_or("/", String::as_str);
    path::check(path)?;
    let left = parsed
        .value("n")
        .map(|text| text.parse().map_err(|_| usage::of("watch")));
    let mut follow = Follow {
        client: session.client(),
        path,
        recursive: !parsed.has("1"),
        data: parsed.has("d"),
        left: left.transpose()?.unwrap_or(u64::MAX),
    };
    let interrupted = out.interrupted();
    let mut events = session.watch_events();
    let _muted = session.mute_events();
    let kind = match follow.recursive {
        true => WatcherType::PersistentRecursive,
        false => WatcherType::Persistent,
    };
    let client = follow.client;
    // A watch of the user's own stays.
    let own = client.has_watch(path, kind.code()).await.at(path)?;
    client.add_watch(path, follow.recursive).await.at(path)?;
    let result = tokio::select! {
        result = follow.until_the_end(&mut events, out) => result,
        () = interrupted => Ok(()),
    };
    if !own && client.state().is_connected() {
        // That it is gone already is as well.
        let _gone = client.forget_watches(path, kind, true).await;
    }
    result
}

struct Follow<'a> {
    client: &'a Client,
    path: &'a str,
    recursive: bool,
    data: bool,
    left: u64,
}

impl Follow<'_> {
    async fn until_the_end(
        &mut self,
        events: &mut tokio::sync::broadcast::Receiver<SessionEvent>,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        while self.left > 0 {
            let event = match events.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(count)) => {
                    out.note(&format!("{count} events came faster than they were shown"))?;
                    continue;
                }
                Err(RecvError::Closed) => return Ok(()),
            };
            match event {
                SessionEvent::Watch(event) if self.concerns(&event.path) => {
                    self.show(event.kind, &event.path, event.zxid, out).await?;
                    self.left -= 1;
                }
                SessionEvent::State(state) => self.show_state(state, out)?,
                SessionEvent::Watch(_) | SessionEvent::Removed(..) => {}
            }
            out.flush()?;
        }
        Ok(())
    }

    /// Other watches of the session fire too.
    fn concerns(&self, path: &str) -> bool {
        match path.strip_prefix(self.path) {
            Some("") => true,
            Some(rest) => self.recursive && (self.path == "/" || rest.starts_with('/')),
            None => false,
        }
    }

    async fn show(
        &self,
        kind: EventType,
        path: &str,
        zxid: i64,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        let time = words::now_text();
        let wanted = matches!(kind, EventType::NodeCreated | EventType::NodeDataChanged);
        // It may have changed once more, or be gone.
        let found = match self.data && wanted {
            true => self.client.get_data(path, false).await.ok(),
            false => None,
        };
        if out.wants_json() {
            let mut value =
                json!({ "time": time, "event": format!("{kind:?}"), "path": path, "zxid": zxid });
            if let Some((data, stat)) = found {
                let data = get::data_to_json(data.as_deref());
                for (name, data) in data.as_object().into_iter().flatten() {
                    value[name] = data.clone();
                }
                value["dataVersion"] = stat.version.into();
            }
            return out.json(&value);
        }
        let paint = match kind {
            EventType::NodeCreated => Paint::Good,
            EventType::NodeDeleted => Paint::Bad,
            EventType::NodeDataChanged | EventType::NodeChildrenChanged => Paint::Strong,
        };
        let mut line = format!(
            "{}  {}  {}  zxid 0x{zxid:x}",
            out.paint(Paint::Dim, &time),
            out.paint(paint, &format!("{:19}", format!("{kind:?}"))),
            out.paint(Paint::Path, path),
        );
        if let Some((data, stat)) = found {
            let data = data.map_or_else(|| "null".to_owned(), |data| words::snippet(&data));
            line.push_str(&format!("  version {}  {data}", stat.version));
        }
        out.line(&line)
    }

    fn show_state(&mut self, state: SessionState, out: &mut Output) -> Result<(), CommandError> {
        let remark = match state {
            SessionState::Disconnected => "what changes until the next connection is not shown",
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => "connected",
            SessionState::Expired | SessionState::AuthFailed | SessionState::Closed => {
                self.left = 0;
                "the session is over"
            }
            SessionState::SaslAuthenticated => return Ok(()),
        };
        if out.wants_json() {
            let value = json!({ "time": words::now_text(), "state": format!("{state:?}") });
            return out.json(&value);
        }
        out.note(&format!("{}  {state:?}: {remark}", words::now_text()))
    }
}
