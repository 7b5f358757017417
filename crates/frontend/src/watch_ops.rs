//! Requests that manage watches directly.

use std::borrow::Cow;

use bytes::BufMut;
use quenda_proto::ErrorCode;
use quenda_proto::event::{
    ADD_WATCH_PERSISTENT, ADD_WATCH_PERSISTENT_RECURSIVE, EventType, WatcherType, put_event,
};
use quenda_proto::records::{
    AddWatchRequest, CheckWatchesRequest, RemoveWatchesRequest, SetWatches, SetWatches2,
};
use quenda_tree::Znode;

use crate::reads::{ReadContext, decode, text};
use crate::watch_kinds::WatchKinds;

/// Stands for a null path, on which ZooKeeper leaves watches as well. No znode has it: they never fire.
const NULL_PATH: &str = "\0";

fn any_path<'a>(path: &'a Option<Cow<'_, str>>) -> &'a str {
    path.as_deref().unwrap_or(NULL_PATH)
}

/// Path and permissions are not looked at: a watch may wait for anything.
pub(crate) fn add_watch(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: AddWatchRequest<'_> = decode(body)?;
    let kinds = match request.mode {
        ADD_WATCH_PERSISTENT => WatchKinds::PERSISTENT,
        ADD_WATCH_PERSISTENT_RECURSIVE => WatchKinds::RECURSIVE,
        _ => return Err(ErrorCode::MarshallingError),
    };
    cx.watch(any_path(&request.path), kinds)?;
    let frame = cx.begin(4);
    cx.out.put_i32(ErrorCode::Ok.code());
    frame.finish(cx.out);
    Ok(())
}

pub(crate) fn check_watches(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: CheckWatchesRequest<'_> = decode(body)?;
    let kinds = watcher_kinds(request.kind)?;
    let path = any_path(&request.path);
    let found = cx.world.watches.has(path, cx.connection, kinds);
    answer_found(cx, found)
}

pub(crate) fn remove_watches(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: RemoveWatchesRequest<'_> = decode(body)?;
    let kinds = watcher_kinds(request.kind)?;
    let path = any_path(&request.path);
    let found = cx.world.watches.remove(path, cx.connection, kinds);
    answer_found(cx, found)
}

fn watcher_kinds(code: i32) -> Result<WatchKinds, ErrorCode> {
    WatcherType::from_code(code)
        .map(WatchKinds::of)
        .ok_or(ErrorCode::MarshallingError)
}

fn answer_found(cx: &mut ReadContext<'_>, found: bool) -> Result<(), ErrorCode> {
    if !found {
        return Err(ErrorCode::NoWatcher);
    }
    cx.reply_empty();
    Ok(())
}

pub(crate) fn set_watches(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: SetWatches<'_> = decode(body)?;
    let seen = Seen::of(cx, request.relative_zxid);
    replay(cx, &request.data_watches, |node| data_step(node, seen))?;
    replay(cx, &request.exist_watches, exist_step)?;
    replay(cx, &request.child_watches, |node| child_step(node, seen))?;
    cx.reply_empty();
    Ok(())
}

pub(crate) fn set_watches2(cx: &mut ReadContext<'_>, body: &[u8]) -> Result<(), ErrorCode> {
    let request: SetWatches2<'_> = decode(body)?;
    let seen = Seen::of(cx, request.relative_zxid);
    replay(cx, &request.data_watches, |node| data_step(node, seen))?;
    replay(cx, &request.exist_watches, exist_step)?;
    replay(cx, &request.child_watches, |node| child_step(node, seen))?;
    leave_all(cx, &request.persistent_watches, WatchKinds::PERSISTENT)?;
    leave_all(
        cx,
        &request.persistent_recursive_watches,
        WatchKinds::RECURSIVE,
    )?;
    cx.reply_empty();
    Ok(())
}

/// How far a client that was away has followed the state.
#[derive(Clone, Copy)]
enum Seen {
    /// Up to this zxid.
    Through(i64),
    /// Only what was there before a restore: no zxid in the state tells what has changed since.
    BeforeRestore,
}

impl Seen {
    fn of(cx: &ReadContext<'_>, zxid: i64) -> Seen {
        let restored = cx.world.tree.restored();
        match restored.is_some_and(|restored| zxid < restored.zxid) {
            true => Seen::BeforeRestore,
            false => Seen::Through(zxid),
        }
    }

    fn misses(self, zxid: i64) -> bool {
        match self {
            Seen::Through(seen) => zxid > seen,
            Seen::BeforeRestore => true,
        }
    }
}

/// What becomes of one watch of a client that was away.
enum Step {
    /// It would have fired meanwhile.
    Fire(EventType),
    /// It is left again.
    Watch(WatchKinds),
}

fn data_step(node: Option<Znode<'_>>, seen: Seen) -> Step {
    match node {
        None => Step::Fire(EventType::NodeDeleted),
        Some(node) if seen.misses(node.stat().mzxid) => Step::Fire(EventType::NodeDataChanged),
        Some(_) => Step::Watch(WatchKinds::DATA),
    }
}

fn exist_step(node: Option<Znode<'_>>) -> Step {
    match node {
        None => Step::Watch(WatchKinds::DATA),
        Some(_) => Step::Fire(EventType::NodeCreated),
    }
}

fn child_step(node: Option<Znode<'_>>, seen: Seen) -> Step {
    match node {
        None => Step::Fire(EventType::NodeDeleted),
        Some(node) if seen.misses(node.stat().pzxid) => Step::Fire(EventType::NodeChildrenChanged),
        Some(_) => Step::Watch(WatchKinds::CHILD),
    }
}

/// Goes through one list in order. Events go out at once, unfiltered and with zxid −1; a null list or
/// path fails the request at its place, with what came before in effect.
fn replay<'t>(
    cx: &mut ReadContext<'t>,
    paths: &Option<Vec<Option<Cow<'_, str>>>>,
    step: impl Fn(Option<Znode<'t>>) -> Step,
) -> Result<(), ErrorCode> {
    let paths = paths.as_ref().ok_or(ErrorCode::MarshallingError)?;
    for path in paths {
        let path = text(path)?;
        match step(cx.world.tree.get(path)) {
            Step::Fire(kind) => {
                put_event(cx.out, kind, path, -1);
                cx.events += 1;
            }
            Step::Watch(kinds) => cx.watch(path, kinds)?,
        }
    }
    Ok(())
}

/// Leaves a watch on each path; these need no look at the tree.
fn leave_all(
    cx: &mut ReadContext<'_>,
    paths: &Option<Vec<Option<Cow<'_, str>>>>,
    kinds: WatchKinds,
) -> Result<(), ErrorCode> {
    for path in paths.as_ref().ok_or(ErrorCode::MarshallingError)? {
        cx.watch(any_path(path), kinds)?;
    }
    Ok(())
}
