//! Every request record: what decodes can be encoded, and from the second time on nothing changes any more.
//! (The first time may: ill-formed text is replaced, and a character beyond the basic plane goes out as a
//! surrogate pair, which reads back as a replacement.)
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quenda_proto::records::*;
use quenda_proto::{Decode, Encode, Reader, multi};

fn round_trip<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) -> Option<BytesMut> {
    let record = T::decode(&mut Reader::new(bytes)).ok()?;
    let mut again = BytesMut::new();
    record.encode(&mut again);
    Some(again)
}

macro_rules! check {
    ($bytes:expr, $($record:ty),* $(,)?) => {$(
        if let Some(once) = round_trip::<$record>($bytes) {
            let twice = round_trip::<$record>(&once).expect("our own encoding");
            assert_eq!(round_trip::<$record>(&twice).as_deref(), Some(&twice[..]));
        }
    )*};
}

fuzz_target!(|bytes: &[u8]| {
    check!(
        bytes,
        CreateRequest,
        CreateTtlRequest,
        DeleteRequest,
        DeleteContainerRequest,
        ExistsRequest,
        GetDataRequest,
        SetDataRequest,
        GetAclRequest,
        SetAclRequest,
        SyncRequest,
        CheckVersionRequest,
        ReconfigRequest,
        CheckWatchesRequest,
        SetWatches,
        SetWatches2,
        AddWatchRequest,
        GetEphemeralsRequest,
        AuthPacket,
        GetSaslRequest,
        WhoAmIResponse,
        GetAclResponse,
    );
    let _ = multi::decode_writes(&mut Reader::new(bytes));
    let _ = multi::decode_reads(&mut Reader::new(bytes));
});
