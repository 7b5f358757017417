//! `locks`: who holds the locks of a subtree, who waits for them, with fencing tokens.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use quenda_client::Client;
use quenda_client::word::WordError;
use quenda_proto::ErrorCode;
use quenda_proto::records::Stat;
use serde_json::{Value, json};

use super::json_list::JsonList;
use super::lock_layout::{self, Contender, Layout, Want};
use super::options::{Flag, flag};
use super::walk::{self, AHEAD, Found};
use super::{AtPath, CommandError, Output, Paint, Session, options, path, words};

/// Options.
pub const FLAGS: &[Flag] = &[
    flag("w", "only locks that somebody waits for"),
    flag(
        "a",
        "also single ephemeral znodes of any name, and sequences of unknown libraries",
    ),
    flag("l", "list all who wait, not the first few"),
];

/// Those who wait that are shown without -l.
const WAITING_SHOWN: usize = 10;
/// How long a server may take to tell its connections.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let parsed = options::parse(FLAGS, args)?;
    let start = parsed.words.first().map_or("/", String::as_str);
    path::check(start)?;
    let (addresses, remark) = addresses(session.client()).await;
    let mut report = Report {
        client: session.client(),
        addresses,
        all: parsed.has("a"),
        contended: parsed.has("w"),
        whole: parsed.has("l"),
        now: words::now_ms(),
        list: JsonList::default(),
        locks: 0,
    };
    report.look_at_itself(start, out).await?;
    let left_out = walk::all(session.client(), start, async |found| {
        report.look(found, out).await
    });
    let left_out = left_out.await?;
    report.end(out)?;
    for text in [left_out, remark].into_iter().flatten() {
        out.note(&text)?;
    }
    Ok(())
}

/// Sessions and the addresses that they come from, as far as servers tell.
async fn addresses(client: &Client) -> (HashMap<i64, String>, Option<String>) {
    let mut found = HashMap::new();
    let mut remark = None;
    let mut asking = tokio::task::JoinSet::new();
    for server in client.servers().to_vec() {
        let client = client.clone();
        asking.spawn(async move {
            let answer = client.ask_word(&server, "cons", PATIENCE).await;
            (server, answer)
        });
    }
    while let Some(done) = asking.join_next().await {
        let Ok((server, answer)) = done else {
            continue;
        };
        match answer {
            Ok(text) if text.contains("is not executed because") => {
                remark = Some(format!(
                    "addresses of clients are shown if cons is in 4lw.commands.whitelist of {server}"
                ));
            }
            Ok(text) => found.extend(text.lines().filter_map(connection)),
            Err(WordError::Empty) => {
                remark = Some(format!("{server} does not tell the addresses of clients"));
            }
            // A member that is away has no clients.
            Err(_) => {}
        }
    }
    (found, remark)
}

/// Session and address of a line such as ` /127.0.0.1:4242[1](queued=0,…,sid=0x1000000ab,…)`.
fn connection(line: &str) -> Option<(i64, String)> {
    let (address, rest) = line.trim().strip_prefix('/')?.split_once('[')?;
    // An IPv6 address has brackets of its own in newer releases; the port is behind them.
    let (_, session) = rest.split_once("sid=0x")?;
    let digits = session.split([',', ')']).next()?;
    let session = u64::from_str_radix(digits, 16).ok()?;
    Some((session.cast_signed(), address.to_owned()))
}

struct Report<'a> {
    client: &'a Client,
    addresses: HashMap<i64, String>,
    all: bool,
    contended: bool,
    whole: bool,
    now: i64,
    list: JsonList,
    locks: u64,
}

/// One who holds a lock or wants it.
struct Party {
    contender: Contender,
    stat: Stat,
    data: Vec<u8>,
    holds: bool,
}

impl Report<'_> {
    /// A path that is itself one ephemeral znode is a lock, whatever it is called.
    async fn look_at_itself(&mut self, start: &str, out: &mut Output) -> Result<(), CommandError> {
        let (data, stat) = self.client.get_data(start, false).await.at(start)?;
        if stat.ephemeral_owner == 0 {
            return Ok(());
        }
        let party = Party {
            contender: Contender {
                name: start.rsplit('/').next().unwrap_or_default().to_owned(),
                sequence: 0,
                want: Want::Exclusive,
                layout: Layout::Plain,
            },
            stat,
            data: data.unwrap_or_default().to_vec(),
            holds: true,
        };
        self.show(start, Layout::Plain, &[party], out)
    }

    /// Shows the locks among the children, and leaves them out of the walk.
    async fn look(&mut self, found: &mut Found, out: &mut Output) -> Result<(), CommandError> {
        let contenders = lock_layout::recognise(&found.path, &found.children, self.all);
        let mut single: Vec<Contender> = Vec::new();
        let mut queues: BTreeMap<&'static str, Vec<Contender>> = BTreeMap::new();
        for contender in contenders {
            match contender.layout {
                Layout::Plain => single.push(contender),
                layout => queues.entry(layout.name()).or_default().push(contender),
            }
        }
        if self.all {
            single = self.everything_else(found, &queues);
        }
        for queue in queues.into_values() {
            let parties = self.parties(&found.path, queue).await?;
            let known: Vec<_> = parties
                .iter()
                .map(|party| party.contender.name.clone())
                .collect();
            // Large queues are not walked: each name is looked up in a sorted list.
            found
                .children
                .retain(|name| known.binary_search(name).is_err());
            self.show_queue(&found.path, parties, out).await?;
        }
        for party in self.parties(&found.path, single).await? {
            let path = path::child(&found.path, &party.contender.name);
            found.children.retain(|name| *name != party.contender.name);
            let party = Party {
                holds: true,
                ..party
            };
            self.show(&path, Layout::Plain, &[party], out)?;
        }
        Ok(())
    }

    /// Every child that is in no queue; those that are not ephemeral fall out later.
    fn everything_else(
        &self,
        found: &Found,
        queues: &BTreeMap<&'static str, Vec<Contender>>,
    ) -> Vec<Contender> {
        let queued: std::collections::HashSet<&str> = queues
            .values()
            .flatten()
            .map(|contender| contender.name.as_str())
            .collect();
        let others = found.children.iter();
        let others = others.filter(|name| !queued.contains(name.as_str()));
        let plain = |name: &String| Contender {
            name: name.clone(),
            sequence: 0,
            want: Want::Exclusive,
            layout: Layout::Plain,
        };
        others.map(plain).collect()
    }

    /// Reads the znodes of contenders; sorted by name. Those that are gone, and those that are no lock's since they are not
    /// ephemeral, fall out.
    async fn parties(
        &self,
        parent: &str,
        contenders: Vec<Contender>,
    ) -> Result<Vec<Party>, CommandError> {
        let mut parties = Vec::new();
        let mut rest = contenders.into_iter();
        let mut asked = VecDeque::new();
        loop {
            while asked.len() < AHEAD
                && let Some(contender) = rest.next()
            {
                let read = self
                    .client
                    .get_data_ahead(&path::child(parent, &contender.name));
                asked.push_back((contender, read));
            }
            let Some((contender, read)) = asked.pop_front() else {
                break;
            };
            let (data, stat) = match read.await {
                Ok((data, stat)) => (data.unwrap_or_default().to_vec(), stat),
                Err(error) if walk::is(&error, ErrorCode::NoNode) => continue,
                // What it holds is hidden; whose it is as well.
                Err(error) if walk::is(&error, ErrorCode::NoAuth) => (Vec::new(), Stat::default()),
                Err(error) => return Err(error).at(parent),
            };
            if stat.ephemeral_owner != 0 || contender.layout.is_certain() {
                parties.push(Party {
                    contender,
                    stat,
                    data,
                    holds: false,
                });
            }
        }
        parties.sort_by(|one, other| one.contender.name.cmp(&other.contender.name));
        Ok(parties)
    }

    async fn show_queue(
        &mut self,
        path: &str,
        mut parties: Vec<Party>,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        parties.sort_by(|one, other| lock_layout::order(&one.contender, &other.contender));
        let order: Vec<_> = parties
            .iter()
            .map(|party| (party.contender.clone(), party.stat.ephemeral_owner))
            .collect();
        for (party, holds) in parties.iter_mut().zip(lock_layout::holders(&order)) {
            party.holds = holds;
        }
        let Some(first) = parties.first() else {
            return Ok(());
        };
        let layout = first.contender.layout;
        if layout == Layout::CuratorSemaphore
            && let Some(folder) = path.strip_suffix("/leases")
            && let Some(taker) = self.taker_of_lease(&path::child(folder, "locks")).await?
            && let Some(newest) = parties.last_mut()
        {
            newest.holds = newest.stat.ephemeral_owner != taker;
        }
        self.show(path, layout, &parties, out)
    }

    /// The session whose turn it is to take a lease. Curator makes the znode of the lease first, and then waits until
    /// there are not too many.
    async fn taker_of_lease(&self, queue: &str) -> Result<Option<i64>, CommandError> {
        let names = match self.client.get_children(queue, false).await {
            Ok((names, _)) => names,
            Err(error) if error.code().is_some() => return Ok(None),
            Err(error) => return Err(error).at(queue),
        };
        let contenders = lock_layout::recognise(queue, &names, false);
        let first = contenders.into_iter().min_by(lock_layout::order);
        let parties = self.parties(queue, first.into_iter().collect()).await?;
        Ok(parties.first().map(|party| party.stat.ephemeral_owner))
    }

    fn show(
        &mut self,
        path: &str,
        layout: Layout,
        parties: &[Party],
        out: &mut Output,
    ) -> Result<(), CommandError> {
        let waiting = parties.iter().filter(|party| !party.holds).count();
        if self.contended && waiting == 0 {
            return Ok(());
        }
        self.locks += 1;
        if out.wants_json() {
            let value = self.describe(path, layout, parties);
            return self.list.push(&value, out);
        }
        let path = out.paint(Paint::Path, path).into_owned();
        let layout = out.paint(Paint::Dim, layout.name()).into_owned();
        out.line(&format!("{path}  {layout}"))?;
        let mut place = 0;
        for party in parties {
            let state = match party.holds {
                true => out.paint(Paint::Good, "holds    ").into_owned(),
                false => {
                    place += 1;
                    format!("waits {place:<3}")
                }
            };
            if place > WAITING_SHOWN && !self.whole {
                let rest = waiting - WAITING_SHOWN;
                return out.line(&format!("  … and {rest} more wait (-l lists them)"));
            }
            out.line(&format!("  {state}  {}", self.row(party)))?;
        }
        Ok(())
    }

    fn row(&self, party: &Party) -> String {
        let want = match party.contender.want {
            Want::Shared => "read  ",
            Want::Exclusive | Want::Lease => "",
        };
        let session = match party.stat.ephemeral_owner {
            0 => "not ephemeral: it outlives its owner".to_owned(),
            owner => format!("session 0x{owner:x}"),
        };
        let mut row = format!(
            "{want}token 0x{:x}  {session}  for {}",
            party.stat.czxid,
            words::age(self.now - party.stat.ctime)
        );
        if let Some(address) = self.addresses.get(&party.stat.ephemeral_owner) {
            row.push_str(&format!("  from {address}"));
        }
        if !party.data.is_empty() {
            row.push_str(&format!("  \"{}\"", words::snippet(&party.data)));
        }
        row
    }

    fn describe(&self, path: &str, layout: Layout, parties: &[Party]) -> Value {
        let (holding, waiting): (Vec<&Party>, Vec<&Party>) =
            parties.iter().partition(|party| party.holds);
        let list = |parties: Vec<&Party>| -> Vec<Value> {
            parties
                .iter()
                .map(|party| self.describe_one(party))
                .collect()
        };
        json!({
            "path": path,
            "layout": layout.name(),
            "holders": list(holding),
            "waiting": list(waiting),
        })
    }

    fn describe_one(&self, party: &Party) -> Value {
        let owner = party.stat.ephemeral_owner;
        json!({
            "znode": party.contender.name,
            "mode": match party.contender.want {
                Want::Exclusive => "exclusive",
                Want::Shared => "read",
                Want::Lease => "lease",
            },
            "token": party.stat.czxid,
            "session": (owner != 0).then(|| format!("0x{owner:x}")),
            "client": self.addresses.get(&owner),
            "since": party.stat.ctime,
            "ageMs": (self.now - party.stat.ctime).max(0),
            "data": words::snippet(&party.data),
        })
    }

    fn end(self, out: &mut Output) -> Result<(), CommandError> {
        if out.wants_json() {
            return self.list.end(out);
        }
        match self.locks {
            0 => out.line("no locks"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cons_name_sessions_and_addresses() {
        let line = " /127.0.0.1:4242[1](queued=0,recved=2,sent=2,sid=0x1000000ab,lop=PING,est=1)";
        let found = connection(line).expect("a session");
        assert_eq!(found, (0x1_0000_00ab, "127.0.0.1:4242".to_owned()));
        assert_eq!(
            connection(" /127.0.0.1:4243[0](queued=0,recved=1,sent=0)"),
            None
        );
        assert_eq!(connection(""), None);
        let line = " /0:0:0:0:0:0:0:1:4242[1](sid=0xff00000000000001,lop=PING)";
        let found = connection(line).expect("a session");
        assert_eq!(found.0, i64::from_be_bytes([0xff, 0, 0, 0, 0, 0, 0, 1]));
    }
}
