//! Requests on files with invalid values in every field: no handler panics, and every open that a
//! failed request made is closed. Offsets below the header, lengths beyond the end, and wrong
//! structure sizes have crashed other servers.

use alloc::vec;
use alloc::vec::Vec;

use wire::access::{CreateDisposition, CreateOptions, FileAttributes};
use wire::create_context::{RawContext, name};
use wire::fscc::InfoType;
use wire::header::HEADER_LEN;
use wire::query_info::QueryInfoFlags;
use wire::read::{Channel, ReadFlags};
use wire::smbd::BufferDescriptorV1;
use wire::text::utf16;
use wire::{FileId, Utf16, flush, query_directory, query_info, read, set_info, write};

use super::{ALL, Start, World, pieces, rdma, request};
use crate::effect::Delivery;
use crate::server;
use crate::server::step::Step;

/// Patterns that are written over each place of a message.
const SPOILS: [&[u8]; 9] = [
    &[0],
    &[0xFF],
    &[0x40],
    &[0, 0],
    &[0xFF, 0xFF],
    &[0, 0, 0, 0x80],
    &[0xFF; 4],
    &[0xFF; 8],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
];

fn message(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = vec![0; HEADER_LEN];
    encode(&mut message);
    message
}

fn world() -> (World, FileId) {
    let mut world = World::new();
    world.carrier = rdma();
    world.disk.add_file("a", FileAttributes::NONE);
    let id = world.open("a", ALL);
    (world, id)
}

/// Runs a request spoiled at each place, and cut at each place.
fn spoil<S>(start: Start<S>, encode: impl Fn(FileId, &mut Vec<u8>))
where
    Step: From<S>,
{
    let (_, id) = world();
    let whole = message(|out| encode(id, out));
    for at in HEADER_LEN..whole.len() {
        for pattern in SPOILS {
            let mut spoiled = whole.clone();
            let end = spoiled.len().min(at + pattern.len());
            spoiled[at..end].copy_from_slice(&pattern[..end - at]);
            run(start, &spoiled);
        }
        run(start, &whole[..at]);
    }
}

fn run<S>(start: Start<S>, message: &[u8])
where
    Step: From<S>,
{
    let (mut world, _) = world();
    let _ = world.run_message(start, message);
    let in_table = world.session.opens.lock().len();
    assert_eq!(world.disk.open_count(), in_table, "an open leaks");
    for plan in &world.disk.reads {
        if let Delivery::Remote(pieces) = &plan.delivery {
            assert_eq!(BufferDescriptorV1::total(pieces), u64::from(plan.length));
        }
    }
}

#[test]
fn create_survives() {
    let name = utf16("new");
    let mut request = request(&name);
    request.create_disposition = CreateDisposition::OVERWRITE_IF;
    request.create_options = CreateOptions::NON_DIRECTORY_FILE;
    for name in [name::MAXIMAL_ACCESS, name::ON_DISK_ID] {
        request.contexts.push(RawContext { name, data: &[] });
    }
    let data = &4096_u64.to_le_bytes();
    let name = name::ALLOCATION_SIZE;
    request.contexts.push(RawContext { name, data });
    spoil(server::create::start, |_, out| request.encode(out));
}

#[test]
fn close_and_flush_survive() {
    spoil(server::close::start, |file_id, out| {
        let flags = wire::close::CloseFlags::POSTQUERY_ATTRIB;
        wire::close::Request { flags, file_id }.encode(out);
    });
    spoil(server::flush::start, |file_id, out| {
        let reserved = 0;
        flush::Request { reserved, file_id }.encode(out);
    });
}

#[test]
fn read_and_write_survive() {
    spoil(server::read::start, |file_id, out| {
        let request = read::Request {
            padding: 0,
            flags: ReadFlags::NONE,
            length: 16,
            offset: 0,
            file_id,
            minimum_count: 0,
            channel: Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
        };
        request.encode(out);
    });
    spoil(server::write::start, |file_id, out| {
        let request = write::Request {
            offset: 0,
            file_id,
            channel: Channel::NONE,
            remaining_bytes: 0,
            channel_info: &[],
            flags: write::WriteFlags::NONE,
            data_offset: 0,
            data: b"some bytes",
        };
        request.encode(out);
    });
}

/// With an SMB Direct connection, so that the server reads the memory segments.
#[test]
fn channels_of_read_and_write_survive() {
    let info = pieces(&[(0x1000, 7, 8), (0x2000, 8, 8)]);
    spoil(server::read::start, |file_id, out| {
        let request = read::Request {
            padding: 0,
            flags: ReadFlags::NONE,
            length: 16,
            offset: 0,
            file_id,
            minimum_count: 0,
            channel: Channel::RDMA_V1_INVALIDATE,
            remaining_bytes: 0,
            channel_info: &info,
        };
        request.encode(out);
    });
    spoil(server::write::start, |file_id, out| {
        let request = write::Request {
            offset: 0,
            file_id,
            channel: Channel::RDMA_V1,
            remaining_bytes: 16,
            channel_info: &info,
            flags: write::WriteFlags::NONE,
            data_offset: 0,
            data: &[],
        };
        request.encode(out);
    });
}

#[test]
fn query_directory_survives() {
    let pattern = utf16("*");
    spoil(server::query_directory::start, |file_id, out| {
        let request = query_directory::Request {
            file_information_class: 37,
            flags: query_directory::QueryDirectoryFlags::NONE,
            file_index: 0,
            file_id,
            pattern: Utf16(&pattern),
            output_buffer_length: 4096,
        };
        request.encode(out);
    });
}

#[test]
fn query_info_and_set_info_survive() {
    for info_type in [InfoType::FILE, InfoType::FILESYSTEM, InfoType::SECURITY] {
        spoil(server::query_info::start, |file_id, out| {
            let request = query_info::Request {
                info_type,
                file_info_class: 5,
                output_buffer_length: 4096,
                additional_information: 7,
                flags: QueryInfoFlags::NONE,
                file_id,
                input: &[],
            };
            request.encode(out);
        });
    }
    for (info_type, file_info_class) in [(1, 4), (1, 10), (1, 11), (1, 13), (1, 20), (3, 0)] {
        spoil(server::set_info::start, |file_id, out| {
            let request = set_info::Request {
                info_type: InfoType(info_type),
                file_info_class,
                additional_information: 4,
                file_id,
                buffer: &[
                    1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 98, 0, 99, 0,
                ]
                .repeat(3),
            };
            request.encode(out);
        });
    }
}
