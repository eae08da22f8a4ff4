//! SMB Direct messages: the exchanges of the specification, round trips of any values, and decoding
//! of any bytes.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_wire::smbd::{
    BufferDescriptorV1, DataTransfer, NegotiateRequest, NegotiateResponse, TransferFlags, VERSION_1,
};
use smbeam_wire::{DecodeError, Status};
use support::hex;

/// The client's first message in \[MS-SMBD\] 4.1.
const REQUEST: &str = "0001000100000a00000400000004000000000200";

/// The server's response to it.
const RESPONSE: &str = "00010001000100000a000a000000000000001000000400000004000000000200";

/// A data transfer of 8 bytes that grants and requests ten credits, as in \[MS-SMBD\] 4.1.
const TRANSFER: &str = "0a000a0000000000000000001800000008000000";

/// A descriptor of 1 MiB of memory.
const DESCRIPTOR: &str = "00100000d75500000102030400001000";

fn written(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

#[test]
fn a_request_is_twenty_bytes() {
    let request = NegotiateRequest {
        min_version: VERSION_1,
        max_version: VERSION_1,
        credits_requested: 10,
        preferred_send_size: 1024,
        max_receive_size: 1024,
        max_fragmented_size: 131_072,
    };
    assert_eq!(NegotiateRequest::decode(&hex(REQUEST)), Ok(request));
    assert_eq!(written(|bytes| request.encode(bytes)), hex(REQUEST));
}

#[test]
fn a_response_is_thirty_two_bytes() {
    let response = NegotiateResponse {
        min_version: VERSION_1,
        max_version: VERSION_1,
        negotiated_version: VERSION_1,
        credits_requested: 10,
        credits_granted: 10,
        status: Status::SUCCESS,
        max_read_write_size: 1 << 20,
        preferred_send_size: 1024,
        max_receive_size: 1024,
        max_fragmented_size: 131_072,
    };
    assert_eq!(NegotiateResponse::decode(&hex(RESPONSE)), Ok(response));
    assert_eq!(written(|bytes| response.encode(bytes)), hex(RESPONSE));
}

#[test]
fn data_stand_at_a_multiple_of_eight() {
    let transfer = DataTransfer {
        credits_requested: 10,
        credits_granted: 10,
        flags: TransferFlags::NONE,
        remaining_data_length: 0,
        data_offset: 24,
        data_length: 8,
    };
    let message = hex(&format!("{TRANSFER}000000000102030405060708"));
    assert_eq!(DataTransfer::decode(&message), Ok(transfer));
    assert_eq!(message[transfer.data()], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(written(|bytes| transfer.encode(bytes)), hex(TRANSFER));
}

#[test]
fn data_that_are_not_there_are_refused() {
    let whole = hex(&format!("{TRANSFER}000000000102030405060708"));
    for length in 0..whole.len() {
        assert!(DataTransfer::decode(&whole[..length]).is_err(), "{length}");
    }
    let with = |at: usize, value: u32| {
        let mut message = whole.clone();
        message[at..at + 4].copy_from_slice(&value.to_le_bytes());
        DataTransfer::decode(&message).is_ok()
    };
    let offsets = [24, 0, 8, 16, 20, 23, 25, 32, 40, u32::MAX - 7, u32::MAX];
    assert_eq!(
        offsets.map(|value| with(12, value)),
        offsets.map(|value| value == 24)
    );
    let lengths = [0, 1, 8, 9, u32::MAX - 23, u32::MAX];
    assert_eq!(
        lengths.map(|value| with(16, value)),
        lengths.map(|value| value <= 8)
    );
}

#[test]
fn descriptors_come_one_after_the_other() {
    let list = &hex(DESCRIPTOR)[..];
    let descriptor = BufferDescriptorV1 {
        offset: 0x55D7_0000_1000,
        token: 0x0403_0201,
        length: 0x0010_0000,
    };
    assert_eq!(BufferDescriptorV1::decode_list(list), Ok(vec![descriptor]));
    assert_eq!(written(|bytes| descriptor.encode(bytes)), list);
    assert_eq!(BufferDescriptorV1::decode_list(&[]), Ok(vec![]));
    for length in (1..16).chain([17, 31]) {
        let list = [list, list].concat();
        let refused = BufferDescriptorV1::decode_list(&list[..length]);
        assert!(
            matches!(refused, Err(DecodeError::Truncated { .. })),
            "{length}"
        );
    }
}

#[test]
fn lengths_of_descriptors_add_up_without_overflow() {
    let longest = BufferDescriptorV1 {
        offset: u64::MAX,
        token: 0,
        length: u32::MAX,
    };
    let total = BufferDescriptorV1::total(&[longest; 3]);
    assert_eq!(total, 3 * u64::from(u32::MAX));
}

proptest! {
    #[test]
    fn requests((min_version, max_version, credits_requested) in any::<(u16, u16, u16)>(),
        (preferred_send_size, max_receive_size, max_fragmented_size) in any::<(u32, u32, u32)>(),
        rest in vec(any::<u8>(), 0..5),
    ) {
        let request = NegotiateRequest {
            min_version,
            max_version,
            credits_requested,
            preferred_send_size,
            max_receive_size,
            max_fragmented_size,
        };
        let mut message = written(|bytes| request.encode(bytes));
        prop_assert_eq!(message.len(), NegotiateRequest::LEN);
        message.extend(rest);
        prop_assert_eq!(NegotiateRequest::decode(&message), Ok(request));
    }

    #[test]
    fn responses(versions in any::<[u16; 3]>(), credits in any::<[u16; 2]>(),
        sizes in any::<[u32; 5]>(),
        rest in vec(any::<u8>(), 0..5),
    ) {
        let response = NegotiateResponse {
            min_version: versions[0],
            max_version: versions[1],
            negotiated_version: versions[2],
            credits_requested: credits[0],
            credits_granted: credits[1],
            status: Status(sizes[0]),
            max_read_write_size: sizes[1],
            preferred_send_size: sizes[2],
            max_receive_size: sizes[3],
            max_fragmented_size: sizes[4],
        };
        let mut message = written(|bytes| response.encode(bytes));
        prop_assert_eq!(message.len(), NegotiateResponse::LEN);
        message.extend(rest);
        prop_assert_eq!(NegotiateResponse::decode(&message), Ok(response));
    }

    #[test]
    fn transfers((credits_requested, credits_granted, flags) in any::<(u16, u16, u16)>(),
        (remaining_data_length, padding) in (any::<u32>(), 0_u32..4),
        data in vec(any::<u8>(), 1..200),
    ) {
        let transfer = DataTransfer {
            credits_requested,
            credits_granted,
            flags: TransferFlags(flags),
            remaining_data_length,
            data_offset: DataTransfer::DATA_OFFSET + 8 * padding,
            data_length: data.len() as u32,
        };
        let mut message = written(|bytes| transfer.encode(bytes));
        prop_assert_eq!(message.len(), DataTransfer::LEN);
        message.resize(transfer.data_offset as usize, 0);
        message.extend(&data);
        prop_assert_eq!(DataTransfer::decode(&message), Ok(transfer));
        prop_assert_eq!(&message[transfer.data()], &data[..]);
    }

    #[test]
    fn descriptors(list in vec(any::<(u64, u32, u32)>(), 0..8)) {
        let list: Vec<_> = list
            .into_iter()
            .map(|(offset, token, length)| BufferDescriptorV1 { offset, token, length })
            .collect();
        let mut bytes = Vec::new();
        list.iter().for_each(|descriptor| descriptor.encode(&mut bytes));
        prop_assert_eq!(bytes.len(), BufferDescriptorV1::LEN * list.len());
        prop_assert_eq!(BufferDescriptorV1::decode_list(&bytes), Ok(list));
    }

    #[test]
    fn any_bytes(message in vec(any::<u8>(), 0..80)) {
        let _ = NegotiateRequest::decode(&message);
        let _ = NegotiateResponse::decode(&message);
        let _ = BufferDescriptorV1::decode_list(&message);
        if let Ok(transfer) = DataTransfer::decode(&message) {
            let data = message.get(transfer.data());
            prop_assert!(transfer.data_length == 0 || data.is_some());
        }
    }
}
