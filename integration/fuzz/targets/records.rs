//! Every request record: what decodes encodes to something that decodes to the same value.
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
            assert_eq!(round_trip::<$record>(&once).as_deref(), Some(&once[..]));
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
