//! The requests of each closed-loop workload, written straight into the output buffer.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use quenda_client::{Wire, open_acl};
use quenda_proto::jute::put_buffer;
use quenda_proto::mode::CreateMode;
use quenda_proto::multi::{put_request, put_terminator};
use quenda_proto::records::{CheckVersionRequest, ReplyHeader, SetDataRequest};
use quenda_proto::{Encode, Op};

use super::args::{BenchArgs, Workload};
use super::layout::{FOLDER, folder, znode};

/// Children of one folder in the create workload.
const CREATE_FOLDER: u64 = 1000;

/// Bytes of a Stat on the wire.
const STAT_LEN: usize = 68;

/// Which of the two latency tables a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
}

/// What the requests of all connections have in common; thousands of connections hold it once.
pub struct Material {
    /// Znodes, or for the children workload folders, that requests are spread over.
    paths: Vec<String>,
    data: Vec<u8>,
    acl: Vec<u8>,
}

impl Material {
    pub fn new(args: &BenchArgs, root: &str) -> Material {
        let paths = match args.workload {
            Workload::Create | Workload::Sequential | Workload::CreateDelete => Vec::new(),
            Workload::Children => (0..args.znodes)
                .step_by(FOLDER)
                .map(|index| folder(root, index))
                .collect(),
            _ => (0..args.znodes).map(|index| znode(root, index)).collect(),
        };
        let mut acl = BytesMut::new();
        Some(open_acl()).encode(&mut acl);
        Material {
            paths,
            data: vec![b'y'; args.size],
            acl: acl.to_vec(),
        }
    }
}

/// Makes the requests of one connection.
pub struct Requests {
    workload: Workload,
    material: Arc<Material>,
    read_below: u32,
    batch: usize,
    random: u64,
    created: u64,
    prefix: String,
    scratch: BytesMut,
}

impl Requests {
    pub fn new(
        args: &BenchArgs,
        root: &str,
        material: Arc<Material>,
        connection: usize,
    ) -> Requests {
        Requests {
            workload: args.workload,
            material,
            read_below: (args.read_ratio * f64::from(u32::MAX)) as u32,
            batch: args.batch,
            // Any odd start does; each connection walks its own way.
            random: 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(2 * connection as u64 + 1),
            created: 0,
            prefix: format!("{root}/c{connection}"),
            scratch: BytesMut::new(),
        }
    }

    /// Appends the next request.
    pub fn push(&mut self, wire: &mut Wire, xid: i32) -> Kind {
        let op = self.encode();
        wire.push_raw(xid, op, &self.scratch);
        match op {
            Op::GetData | Op::Exists | Op::GetChildren2 => Kind::Read,
            _ => Kind::Write,
        }
    }

    /// Puts the record of the next request into the scratch buffer.
    fn encode(&mut self) -> Op {
        self.scratch.clear();
        match self.workload {
            Workload::Get => self.read(Op::GetData),
            Workload::Exists => self.read(Op::Exists),
            Workload::Children => self.read(Op::GetChildren2),
            Workload::Create => self.create(CreateMode::Persistent),
            Workload::Sequential => self.create(CreateMode::PersistentSequential),
            Workload::CreateDelete => self.create_or_delete(),
            Workload::Multi => self.multi(),
            Workload::CheckSet => self.check_and_set(),
            Workload::Mixed => self.mixed(),
            Workload::Set | Workload::Watch | Workload::Sessions | Workload::Survive => self.set(),
        }
    }

    /// Whether a reply without an error code is what was asked for.
    pub fn is_right(&self, kind: Kind, header: ReplyHeader, body: &[u8]) -> bool {
        debug_assert_eq!(header.err, 0);
        match (self.workload, kind) {
            (Workload::Get | Workload::Mixed, Kind::Read) => {
                body.len() == 4 + self.material.data.len() + STAT_LEN
            }
            (Workload::Exists, _) | (Workload::Set | Workload::Mixed, Kind::Write) => {
                body.len() == STAT_LEN
            }
            // A failed transaction begins with an error result.
            (Workload::Multi, _) => begins_with(body, Op::SetData),
            (Workload::CheckSet, _) => begins_with(body, Op::Check),
            _ => true,
        }
    }

    /// xorshift64*: good enough to spread requests, and free.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn pick(&mut self) -> usize {
        (self.next_random() % self.material.paths.len() as u64) as usize
    }

    fn read(&mut self, op: Op) -> Op {
        let path = self.pick();
        put_buffer(&mut self.scratch, self.material.paths[path].as_bytes());
        self.scratch.put_u8(0);
        op
    }

    fn mixed(&mut self) -> Op {
        if self.next_random() as u32 <= self.read_below {
            self.read(Op::GetData)
        } else {
            self.set()
        }
    }

    fn set(&mut self) -> Op {
        let path = self.pick();
        put_buffer(&mut self.scratch, self.material.paths[path].as_bytes());
        put_buffer(&mut self.scratch, &self.material.data);
        self.scratch.put_i32(-1);
        Op::SetData
    }

    fn multi(&mut self) -> Op {
        for _ in 0..self.batch {
            let path = self.pick();
            self.put_set_of_transaction(path);
        }
        put_terminator(&mut self.scratch);
        Op::Multi
    }

    /// The folder of the znode is what is checked: nobody ever sets its data.
    fn check_and_set(&mut self) -> Op {
        let path = self.pick();
        let folder = self.material.paths[path].rsplit_once('/');
        let record = CheckVersionRequest {
            path: folder.map(|(folder, _)| folder.into()),
            version: 0,
        };
        put_request(&mut self.scratch, Op::Check, &record);
        self.put_set_of_transaction(path);
        put_terminator(&mut self.scratch);
        Op::Multi
    }

    fn put_set_of_transaction(&mut self, path: usize) {
        let record = SetDataRequest {
            path: Some(self.material.paths[path].as_str().into()),
            data: Some(&self.material.data),
            version: -1,
        };
        put_request(&mut self.scratch, Op::SetData, &record);
    }

    /// A folder, then its children; the server answers in order, so nothing has to be awaited.
    fn create(&mut self, mode: CreateMode) -> Op {
        let (folder, child) = (
            self.created / (CREATE_FOLDER + 1),
            self.created % (CREATE_FOLDER + 1),
        );
        self.created += 1;
        let folder = format!("{}-{folder:06}", self.prefix);
        if child == 0 {
            self.put_create(&folder, false, CreateMode::Persistent);
        } else {
            let path = format!("{folder}/n{child:04}");
            self.put_create(&path, true, mode);
        }
        Op::Create
    }

    fn create_or_delete(&mut self) -> Op {
        let path = format!("{}-{:08}", self.prefix, self.created / 2);
        self.created += 1;
        if self.created % 2 == 1 {
            self.put_create(&path, true, CreateMode::Persistent);
            return Op::Create;
        }
        put_buffer(&mut self.scratch, path.as_bytes());
        self.scratch.put_i32(-1);
        Op::Delete
    }

    fn put_create(&mut self, path: &str, with_data: bool, mode: CreateMode) {
        put_buffer(&mut self.scratch, path.as_bytes());
        if with_data {
            put_buffer(&mut self.scratch, &self.material.data);
        } else {
            self.scratch.put_i32(-1);
        }
        self.scratch.put_slice(&self.material.acl);
        self.scratch.put_i32(mode as i32);
    }
}

/// Whether the results of a transaction begin with that of such an operation.
fn begins_with(results: &[u8], op: Op) -> bool {
    results.first_chunk() == Some(&op.code().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use quenda_proto::multi::WriteOp;
    use quenda_proto::records::{CreateRequest, DeleteRequest, GetDataRequest};
    use quenda_proto::{Decode, Reader, multi};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn requests(words: &[&str]) -> Requests {
        let line = Line::parse_from([&["bench"], words].concat());
        line.args.check().expect("a line that makes sense");
        let material = Arc::new(Material::new(&line.args, "/r"));
        Requests::new(&line.args, "/r", material, 3)
    }

    #[test]
    fn reads_name_znodes_that_exist() {
        let mut requests = requests(&["get", "--znodes", "150"]);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..5000 {
            assert_eq!(requests.encode(), Op::GetData);
            let record = GetDataRequest::decode(&mut Reader::new(&requests.scratch));
            let path = record.expect("decodes").path.expect("a path");
            seen.insert(path.into_owned());
        }
        assert_eq!(seen.len(), 150, "every znode is read some time");
        assert!(seen.contains("/r/d0000001/n49"), "{seen:?}");
    }

    #[test]
    fn a_mix_keeps_its_ratio() {
        let mut requests = requests(&["mixed", "--read-ratio", "0.7"]);
        let reads = (0..10_000).filter(|_| requests.encode() == Op::GetData);
        let reads = reads.count();
        assert!((6800..7200).contains(&reads), "{reads} reads of 10000");
    }

    #[test]
    fn creates_make_each_folder_before_its_children_and_no_name_twice() {
        let mut requests = requests(&["create", "--size", "5"]);
        let mut seen = std::collections::BTreeSet::from(["/r".to_owned()]);
        for _ in 0..2500 {
            assert_eq!(requests.encode(), Op::Create);
            let record = CreateRequest::decode(&mut Reader::new(&requests.scratch));
            let path = record.expect("decodes").path.expect("a path").into_owned();
            let (parent, _) = path.rsplit_once('/').expect("absolute");
            assert!(seen.contains(parent), "{path} comes before {parent}");
            assert!(seen.insert(path));
        }
    }

    #[test]
    fn transactions_hold_the_batch_and_a_failed_one_is_noticed() {
        let mut requests = requests(&["multi", "--batch", "4"]);
        assert_eq!(requests.encode(), Op::Multi);
        let ops = multi::decode_writes(&mut Reader::new(&requests.scratch));
        assert_eq!(ops.expect("decodes").len(), 4);
        let (mut good, mut bad) = (BytesMut::new(), BytesMut::new());
        multi::put_result_header(&mut good, Op::SetData);
        multi::put_error(&mut bad, quenda_proto::ErrorCode::Ok);
        let header = ReplyHeader::default();
        assert!(requests.is_right(Kind::Write, header, &good));
        assert!(!requests.is_right(Kind::Write, header, &bad));
    }

    #[test]
    fn sequential_creates_ask_for_the_number_below_an_ordinary_folder() {
        let mut requests = requests(&["sequential"]);
        let modes: Vec<i32> = (0..3).map(|_| created(&mut requests).flags).collect();
        assert_eq!(modes, [0, 2, 2]);
    }

    fn created(requests: &mut Requests) -> CreateRequest<'_> {
        assert_eq!(requests.encode(), Op::Create);
        CreateRequest::decode(&mut Reader::new(&requests.scratch)).expect("decodes")
    }

    #[test]
    fn what_is_created_is_deleted_next() {
        let mut requests = requests(&["create-delete", "--size", "5"]);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let path = created(&mut requests).path.expect("a path").into_owned();
            assert_eq!(requests.encode(), Op::Delete);
            let record = DeleteRequest::decode(&mut Reader::new(&requests.scratch));
            let deleted = record.expect("decodes").path.expect("a path").into_owned();
            assert_eq!(deleted, path);
            assert!(seen.insert(path));
        }
    }

    #[test]
    fn a_check_is_of_what_nobody_sets() {
        let mut requests = requests(&["check-set", "--znodes", "150"]);
        assert_eq!(requests.encode(), Op::Multi);
        let ops = multi::decode_writes(&mut Reader::new(&requests.scratch)).expect("decodes");
        let [WriteOp::Check(check), WriteOp::SetData(set)] = &ops[..] else {
            panic!("{ops:?}");
        };
        assert_eq!(check.version, 0);
        let (folder, _) = set
            .path
            .as_deref()
            .and_then(|path| path.rsplit_once('/'))
            .expect("absolute");
        assert_eq!(check.path.as_deref(), Some(folder));
        let (mut good, mut bad) = (BytesMut::new(), BytesMut::new());
        multi::put_result_header(&mut good, Op::Check);
        multi::put_error(&mut bad, quenda_proto::ErrorCode::BadVersion);
        let header = ReplyHeader::default();
        assert!(requests.is_right(Kind::Write, header, &good));
        assert!(!requests.is_right(Kind::Write, header, &bad));
    }

    #[test]
    fn a_reply_of_the_wrong_length_is_noticed() {
        let requests = requests(&["get", "--size", "10"]);
        let header = ReplyHeader::default();
        assert!(requests.is_right(Kind::Read, header, &[0; 82]));
        assert!(!requests.is_right(Kind::Read, header, &[0; 81]));
    }
}
