//! Commands by name.

use super::{
    CommandError, Output, Session, acl, auth, config, create, delete, du, find, get, locks, ls,
    quota, read, set, top, tree, watch, watches,
};

/// Runs the command of that name; `args` are the words behind it.
pub async fn run(
    session: &Session,
    name: &str,
    args: &[String],
    out: &mut Output,
) -> Result<(), CommandError> {
    match name {
        "addWatch" => watches::add(session, args).await,
        "addauth" => auth::add(session, args, out).await,
        "config" => config::get(session, args, out).await,
        "create" => create::run(session, args, out).await,
        "delete" => delete::one(session, args, out).await,
        "deleteall" => delete::all(session, args, out).await,
        "delquota" => quota::delete(session, args, out).await,
        "du" => du::run(session, args, out).await,
        "find" => find::run(session, args, out).await,
        "get" => get::run(session, args, out).await,
        "getAcl" => acl::get(session, args, out).await,
        "getAllChildrenNumber" => read::descendants(session, args, out).await,
        "getEphemerals" => read::ephemerals(session, args, out).await,
        "listquota" => quota::list(session, args, out).await,
        "locks" => locks::run(session, args, out).await,
        "ls" => ls::run(session, args, out).await,
        "reconfig" => config::reconfig(session, args, out).await,
        "removewatches" => watches::remove(session, args).await,
        "set" => set::run(session, args, out).await,
        "setAcl" => acl::set(session, args, out).await,
        "setquota" => quota::set(session, args, out).await,
        "stat" => read::stat(session, args, out).await,
        "sync" => read::sync(session, args, out).await,
        "top" => top::run(session, args, out).await,
        "tree" => tree::run(session, args, out).await,
        "version" => read::version(args, out),
        "watch" => watch::run(session, args, out).await,
        "whoami" => read::who_am_i(session, out).await,
        _ => Err(CommandError::NotFound(name.to_owned())),
    }
}
