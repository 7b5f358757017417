//! Records and commands to bytes and back.

use bytes::BytesMut;
use quenda_proto::records::{CreateRequest, SetDataRequest, Stat};
use quenda_proto::{Decode, Encode, Op, Reader};
use quenda_tree::command::{Batch, Command, Origin, Request, Switches, start_batch};

use crate::frames;
use crate::work::{Work, nothing, work};

struct Records {
    create: BytesMut,
    set: BytesMut,
    stat: BytesMut,
    out: BytesMut,
}

impl Records {
    fn new() -> Records {
        let bytes = |encode: &dyn Fn(&mut BytesMut)| {
            let mut bytes = BytesMut::new();
            encode(&mut bytes);
            bytes
        };
        let set = SetDataRequest {
            path: Some("/services/payments/leader".into()),
            data: Some(&[7; 100]),
            version: 3,
        };
        Records {
            create: bytes(&|out| {
                frames::create_record("/services/payments/n-0000000012", &[7; 100], 0).encode(out);
            }),
            set: bytes(&|out| set.encode(out)),
            stat: bytes(&|out| Stat::default().encode(out)),
            out: BytesMut::new(),
        }
    }

    /// Each is read and written again.
    fn turn(&mut self, operations: usize) {
        for _ in 0..operations {
            self.out.clear();
            again::<CreateRequest<'_>>(&self.create, &mut self.out);
            again::<SetDataRequest<'_>>(&self.set, &mut self.out);
            again::<Stat>(&self.stat, &mut self.out);
        }
    }
}

fn again<'a, T: Decode<'a> + Encode>(bytes: &'a [u8], out: &mut BytesMut) {
    let record = T::decode(&mut Reader::new(bytes)).expect("a record");
    record.encode(out);
}

/// A batch of commands, as it goes through the log.
fn commands(out: &mut BytesMut, operations: usize) {
    let data = [7; 100];
    let body = {
        let mut body = BytesMut::new();
        let record = frames::create_record("/services/payments/n-0000000012", &data, 0);
        record.encode(&mut body);
        body
    };
    out.clear();
    start_batch(1, out);
    for number in 0..operations {
        let command = Command::Request(Request {
            origin: Origin {
                member: 1,
                connection: number as u64,
            },
            session: 0x0100_0000_0000_0001,
            generation: 1,
            identities: Vec::new(),
            switches: Switches::default(),
            op: Op::Create.code(),
            local: false,
            body: &body,
        });
        command.encode(out);
    }
    let read = Batch::open(out).expect("a batch");
    assert_eq!(read.filter(Result::is_ok).count(), operations);
}

pub fn all() -> Vec<Work> {
    vec![
        work(
            "three records, both ways",
            1000,
            Records::new,
            nothing,
            Records::turn,
        ),
        work(
            "commands, both ways",
            1000,
            BytesMut::new,
            nothing,
            commands,
        ),
    ]
}
