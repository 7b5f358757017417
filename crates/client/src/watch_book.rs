//! The watches that a session has left, as a client has to know them to set them again on its next connection.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use quenda_proto::event::{ADD_WATCH_PERSISTENT_RECURSIVE, EventType, WatcherType};
use quenda_proto::records::{
    AddWatchRequest, ExistsRequest, GetChildren2Request, GetDataRequest, RemoveWatchesRequest,
    SetWatches2,
};
use quenda_proto::{Decode, ErrorCode, Op, Reader};

use crate::{Error, Reply, WatchRemoved};

/// Bytes of paths in one request that sets watches again, about.
const CHUNK_BYTES: usize = 128 * 1024;

/// Kinds of watches, in the order of the lists of setWatches2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Exist,
    Child,
    Persistent,
    Recursive,
}

const KINDS: [Kind; 5] = [
    Kind::Data,
    Kind::Exist,
    Kind::Child,
    Kind::Persistent,
    Kind::Recursive,
];

/// Paths by kind of watch, as the server names them.
#[derive(Debug, Default)]
pub(crate) struct WatchBook {
    paths: [BTreeSet<String>; 5],
}

impl WatchBook {
    /// Takes note of what a request that was answered has left.
    pub fn answered(&mut self, op: Op, record: &Bytes, result: &Result<Reply, Error>) {
        let kind = match (op, result) {
            (Op::GetData, Ok(_)) | (Op::Exists, Ok(_)) => Kind::Data,
            (Op::GetChildren | Op::GetChildren2, Ok(_)) => Kind::Child,
            (Op::Exists, Err(error)) if error.code() == Some(ErrorCode::NoNode.code()) => {
                Kind::Exist
            }
            (Op::AddWatch, Ok(_)) => return self.added(record),
            _ => return,
        };
        let mut reader = Reader::new(record);
        let asked = match op {
            Op::GetData => GetDataRequest::decode(&mut reader).map(|r| (r.path, r.watch)),
            Op::Exists => ExistsRequest::decode(&mut reader).map(|r| (r.path, r.watch)),
            _ => GetChildren2Request::decode(&mut reader).map(|r| (r.path, r.watch)),
        };
        if let Ok((Some(path), true)) = asked {
            self.paths[kind as usize].insert(path.into_owned());
        }
    }

    fn added(&mut self, record: &Bytes) {
        let Ok(request) = AddWatchRequest::decode(&mut Reader::new(record)) else {
            return;
        };
        let kind = match request.mode {
            ADD_WATCH_PERSISTENT_RECURSIVE => Kind::Recursive,
            _ => Kind::Persistent,
        };
        self.paths[kind as usize].extend(request.path.map(Cow::into_owned));
    }

    /// Takes note of an event: it uses up what fires once.
    pub fn fired(&mut self, event: EventType, path: &str) {
        let used: &[Kind] = match event {
            EventType::NodeCreated | EventType::NodeDataChanged => &[Kind::Data, Kind::Exist],
            EventType::NodeDeleted => &[Kind::Data, Kind::Exist, Kind::Child],
            EventType::NodeChildrenChanged => &[Kind::Child],
        };
        for kind in used {
            self.paths[*kind as usize].remove(path);
        }
    }

    /// Whether there is a watch of that kind at the path.
    pub fn holds(&self, path: &str, kind: WatcherType) -> bool {
        kinds_of(kind)
            .iter()
            .any(|kind| self.paths[*kind as usize].contains(path))
    }

    /// Takes note of a removal; tells what was removed.
    pub fn removed(&mut self, record: &Bytes) -> Vec<(WatchRemoved, String)> {
        let Ok(request) = RemoveWatchesRequest::decode(&mut Reader::new(record)) else {
            return Vec::new();
        };
        let path = request.path.unwrap_or_default().into_owned();
        let Some(asked) = WatcherType::from_code(request.kind) else {
            return Vec::new();
        };
        let mut gone: Vec<(WatchRemoved, String)> = Vec::new();
        for kind in kinds_of(asked) {
            let word = match kind {
                Kind::Data | Kind::Exist => WatchRemoved::Data,
                Kind::Child => WatchRemoved::Child,
                Kind::Persistent | Kind::Recursive => WatchRemoved::Persistent,
            };
            let there = self.paths[*kind as usize].remove(&path);
            if there && gone.iter().all(|(before, _)| *before != word) {
                gone.push((word, path.clone()));
            }
        }
        gone
    }

    /// Requests that set all of them again, of a bounded size each.
    pub fn requests(&self, relative_zxid: i64) -> Vec<SetWatches2<'static>> {
        let mut requests = Vec::new();
        let mut current = empty(relative_zxid);
        let mut bytes = 0;
        for kind in KINDS {
            for path in &self.paths[kind as usize] {
                if bytes > CHUNK_BYTES {
                    requests.push(std::mem::replace(&mut current, empty(relative_zxid)));
                    bytes = 0;
                }
                bytes += path.len();
                let list = match kind {
                    Kind::Data => &mut current.data_watches,
                    Kind::Exist => &mut current.exist_watches,
                    Kind::Child => &mut current.child_watches,
                    Kind::Persistent => &mut current.persistent_watches,
                    Kind::Recursive => &mut current.persistent_recursive_watches,
                };
                list.get_or_insert_default().push(Some(path.clone().into()));
            }
        }
        if bytes > 0 {
            requests.push(current);
        }
        requests
    }
}

/// What a removal means.
fn kinds_of(asked: WatcherType) -> &'static [Kind] {
    match asked {
        WatcherType::Children => &[Kind::Child],
        WatcherType::Data => &[Kind::Data, Kind::Exist],
        WatcherType::Any => &KINDS,
        WatcherType::Persistent => &[Kind::Persistent],
        WatcherType::PersistentRecursive => &[Kind::Recursive],
    }
}

fn empty(relative_zxid: i64) -> SetWatches2<'static> {
    SetWatches2 {
        relative_zxid,
        data_watches: Some(Vec::new()),
        exist_watches: Some(Vec::new()),
        child_watches: Some(Vec::new()),
        persistent_watches: Some(Vec::new()),
        persistent_recursive_watches: Some(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use quenda_proto::Encode;

    use super::*;

    fn encoded(record: &impl Encode) -> Bytes {
        let mut out = BytesMut::new();
        record.encode(&mut out);
        out.freeze()
    }

    fn ok() -> Result<Reply, Error> {
        Ok(Reply {
            zxid: 1,
            body: Bytes::new(),
        })
    }

    fn read(path: &str, watch: bool) -> Bytes {
        encoded(&GetDataRequest {
            path: Some(path.into()),
            watch,
        })
    }

    fn failed(op: Op, code: ErrorCode) -> Result<Reply, Error> {
        Err(Error::Server {
            op,
            code: code.code(),
        })
    }

    fn texts(list: &Option<Vec<Option<Cow<'_, str>>>>) -> Vec<String> {
        let list = list.as_ref().expect("a list").iter();
        list.map(|path| path.clone().expect("a path").into_owned())
            .collect()
    }

    #[test]
    fn reads_leave_watches_by_their_outcome() {
        let mut book = WatchBook::default();
        book.answered(Op::GetData, &read("/data", true), &ok());
        book.answered(Op::GetData, &read("/unwatched", false), &ok());
        book.answered(
            Op::GetData,
            &read("/absent", true),
            &failed(Op::GetData, ErrorCode::NoNode),
        );
        book.answered(Op::Exists, &read("/there", true), &ok());
        book.answered(
            Op::Exists,
            &read("/not-there", true),
            &failed(Op::Exists, ErrorCode::NoNode),
        );
        book.answered(Op::GetChildren2, &read("/folder", true), &ok());
        for (path, mode) in [("/one", 0), ("/tree", 1)] {
            let record = encoded(&AddWatchRequest {
                path: Some(path.into()),
                mode,
            });
            book.answered(Op::AddWatch, &record, &ok());
        }
        let requests = book.requests(77);
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].relative_zxid, 77);
        assert_eq!(texts(&requests[0].data_watches), ["/data", "/there"]);
        assert_eq!(texts(&requests[0].exist_watches), ["/not-there"]);
        assert_eq!(texts(&requests[0].child_watches), ["/folder"]);
        assert_eq!(texts(&requests[0].persistent_watches), ["/one"]);
        assert_eq!(texts(&requests[0].persistent_recursive_watches), ["/tree"]);
    }

    #[test]
    fn events_use_up_what_fires_once() {
        let mut book = WatchBook::default();
        book.answered(Op::GetData, &read("/a", true), &ok());
        book.answered(Op::GetChildren, &read("/a", true), &ok());
        let record = encoded(&AddWatchRequest {
            path: Some("/a".into()),
            mode: 0,
        });
        book.answered(Op::AddWatch, &record, &ok());
        book.fired(EventType::NodeDataChanged, "/a");
        assert!(!book.holds("/a", WatcherType::Data));
        assert!(book.holds("/a", WatcherType::Children));
        book.fired(EventType::NodeDeleted, "/a");
        assert!(!book.holds("/a", WatcherType::Children));
        assert!(book.holds("/a", WatcherType::Persistent));
    }

    #[test]
    fn a_removal_tells_what_was_there() {
        let mut book = WatchBook::default();
        book.answered(Op::GetData, &read("/a", true), &ok());
        book.answered(
            Op::Exists,
            &read("/a", true),
            &failed(Op::Exists, ErrorCode::NoNode),
        );
        book.answered(Op::GetChildren, &read("/a", true), &ok());
        let any = encoded(&RemoveWatchesRequest {
            path: Some("/a".into()),
            kind: 3,
        });
        let at = |word| (word, "/a".to_owned());
        assert_eq!(
            book.removed(&any),
            [at(WatchRemoved::Data), at(WatchRemoved::Child)]
        );
        assert_eq!(book.removed(&any), []);
        assert!(book.requests(0).is_empty());
    }

    #[test]
    fn many_watches_travel_in_several_requests() {
        let mut book = WatchBook::default();
        let name = "x".repeat(1000);
        for number in 0..300 {
            book.answered(Op::GetData, &read(&format!("/{name}{number}"), true), &ok());
        }
        let requests = book.requests(1);
        let counts: Vec<_> = requests
            .iter()
            .map(|one| texts(&one.data_watches).len())
            .collect();
        assert_eq!(counts.iter().sum::<usize>(), 300);
        assert_eq!(requests.len(), 3, "{counts:?}");
    }
}
