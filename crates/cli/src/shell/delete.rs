//! `delete` and `deleteall`.

use quenda_client::{Client, Transaction, TransactionResult};

use super::options::{Flag, valued};
use super::{AtPath, CommandError, Output, Session, number, options, path, subtree, usage};

/// Options of `delete`.
pub const ONE_FLAGS: &[Flag] = &[valued("v", "only if this is the version of the data")];
/// Options of `deleteall`.
pub const ALL_FLAGS: &[Flag] = &[valued(
    "b",
    "znodes deleted in one transaction, 0 for one by one; 1000 unless given",
)];
/// Deletes in one transaction, unless `-b` says otherwise.
const BATCH: usize = 1000;

/// Deletes a znode without children.
pub async fn one(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(ONE_FLAGS, args)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("delete"))?;
    if parsed.words.len() > 1 {
        // The version of the old form is ignored, by zkCli too.
        out.note("'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.")?;
    }
    let version = number::version(&parsed)?;
    path::check(path)?;
    session.client().delete(path, version).await.at(path)
}

/// Deletes a znode and everything below it, from the bottom, in transactions of many znodes.
pub async fn all(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(ALL_FLAGS, args)?;
    let path = parsed.words.first().ok_or_else(|| usage::of("deleteall"))?;
    let batch = match parsed.value("b") {
        None => BATCH,
        Some(text) => text
            .parse::<i32>()
            .map_err(|_| CommandError::failed("-b argument must be an int value"))?
            .try_into()
            .unwrap_or(0),
    };
    path::check(path)?;
    let paths = subtree::list(session.client(), path).await?;
    if batch == 0 {
        for path in paths.iter().rev() {
            session.client().delete(path, -1).await.at(path)?;
        }
        return Ok(());
    }
    if !delete_in_batches(session.client(), &paths, batch).await {
        out.note("Failed to delete some node(s) in the subtree!")?;
    }
    Ok(())
}

/// Whether all batches went through; behind one that failed no more are sent.
async fn delete_in_batches(client: &Client, paths: &[String], batch: usize) -> bool {
    let bottom_up: Vec<&String> = paths.iter().rev().collect();
    for paths in bottom_up.chunks(batch) {
        let mut transaction = Transaction::new();
        for path in paths {
            transaction = transaction.delete(path, -1);
        }
        match client.commit(transaction).await {
            Ok(results)
                if !results
                    .iter()
                    .any(|result| matches!(result, TransactionResult::Failed(_))) => {}
            Ok(_) | Err(_) => return false,
        }
    }
    true
}
