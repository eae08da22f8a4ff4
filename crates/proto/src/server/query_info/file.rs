//! QUERY_INFO of a file. \[MS-SMB2\] 3.3.5.20.1, \[MS-FSA\] 2.1.5.12

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::access::{AccessMask, FileAttributes};
use wire::dialect::Dialect;
use wire::fscc::{
    FileAccessInformation, FileAlignmentInformation, FileAllInformation,
    FileAttributeTagInformation, FileBasicInformation, FileCaseSensitiveInformation,
    FileCompressionInformation, FileEaInformation, FileIdInformation, FileInfoClass,
    FileInternalInformation, FileModeInformation, FileNameInformation, FileNetworkOpenInformation,
    FilePositionInformation, FileStandardInformation, FileStatInformation, FileStatLxInformation,
    FileStreamInformation, LxFlags, ModeFlags, StreamWriter,
};
use wire::text::utf16;
use wire::{Status, Utf16};

use crate::file::{Metadata, StreamEntry};
use crate::path::{SharePath, StreamName};
use crate::server::Server;
use crate::server::open::{Need, Open, wire_attributes};
use crate::server::posix;

/// Whether the class is one that can be asked, by this open and with this buffer.
pub(super) fn check(
    class: FileInfoClass,
    open: &Open,
    dialect: Dialect,
    max_len: usize,
) -> Result<(), Status> {
    open.authorize(needs(class)?)?;
    // [MS-SMB2] 3.3.5.20.1: of dialect 3.1.1 only.
    if class == FileInfoClass::NORMALIZED_NAME && dialect < Dialect::SMB_3_1_1 {
        return Err(Status::NOT_SUPPORTED);
    }
    if class == FileInfoClass::POSIX && !open.is_posix {
        return Err(Status::INVALID_INFO_CLASS);
    }
    if max_len < class.fixed_len().unwrap_or(0) {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    Ok(())
}

/// What a class needs of the open; an error if it cannot be queried. Windows and Samba look at
/// these rights for these classes only.
fn needs(class: FileInfoClass) -> Result<Need, Status> {
    match class {
        FileInfoClass::BASIC
        | FileInfoClass::ALL
        | FileInfoClass::NETWORK_OPEN
        | FileInfoClass::ATTRIBUTE_TAG
        | FileInfoClass::STAT
        | FileInfoClass::STAT_LX => Ok(Need::Right(AccessMask::FILE_READ_ATTRIBUTES)),
        FileInfoClass::FULL_EA => Ok(Need::Right(AccessMask::FILE_READ_EA)),
        FileInfoClass::STANDARD
        | FileInfoClass::INTERNAL
        | FileInfoClass::EA
        | FileInfoClass::ACCESS
        | FileInfoClass::NAME
        | FileInfoClass::POSITION
        | FileInfoClass::MODE
        | FileInfoClass::ALIGNMENT
        | FileInfoClass::ALTERNATE_NAME
        | FileInfoClass::STREAM
        | FileInfoClass::COMPRESSION
        | FileInfoClass::NORMALIZED_NAME
        | FileInfoClass::ID
        | FileInfoClass::POSIX
        | FileInfoClass::CASE_SENSITIVE => Ok(Need::Nothing),
        _ => Err(Status::INVALID_INFO_CLASS),
    }
}

/// The structure of the class.
pub(super) fn describe(
    class: FileInfoClass,
    server: &Server,
    open: &Open,
    metadata: &Metadata,
) -> Result<Vec<u8>, Status> {
    let mut out = Vec::new();
    match class {
        FileInfoClass::BASIC => basic(metadata).encode(&mut out),
        FileInfoClass::STANDARD => standard(server, open, metadata).encode(&mut out),
        FileInfoClass::INTERNAL => internal(metadata).encode(&mut out),
        FileInfoClass::ACCESS => access(open).encode(&mut out),
        FileInfoClass::POSITION => position(open).encode(&mut out),
        FileInfoClass::MODE => mode(open).encode(&mut out),
        FileInfoClass::ALIGNMENT => FileAlignmentInformation::default().encode(&mut out),
        FileInfoClass::COMPRESSION => compression(metadata).encode(&mut out),
        FileInfoClass::NETWORK_OPEN => network_open(metadata).encode(&mut out),
        FileInfoClass::ATTRIBUTE_TAG => attribute_tag(metadata).encode(&mut out),
        FileInfoClass::ID => id(metadata).encode(&mut out),
        FileInfoClass::STAT => stat(server, open, metadata).encode(&mut out),
        FileInfoClass::STAT_LX => stat_lx(server, open, metadata).encode(&mut out),
        FileInfoClass::POSIX => posix::file_information(metadata).encode(&mut out),
        // No directory distinguishes names that differ in case alone.
        FileInfoClass::CASE_SENSITIVE => FileCaseSensitiveInformation::default().encode(&mut out),
        _ => describe_named(class, server, open, &mut out)?,
    }
    Ok(out)
}

/// The classes that hold a name.
fn describe_named(
    class: FileInfoClass,
    server: &Server,
    open: &Open,
    out: &mut Vec<u8>,
) -> Result<(), Status> {
    let path = server.files.path(open.key, open.file);
    let path = path.unwrap_or_default();
    match class {
        FileInfoClass::NAME => put_name(&absolute(&path), out),
        FileInfoClass::NORMALIZED_NAME => put_name(normalized(&path.to_wire()), out),
        FileInfoClass::ALTERNATE_NAME if is_short(path.name()) => put_name(path.name(), out),
        // [MS-FSA] 2.1.5.12.3: there are no 8.3 names but those that are so by themselves.
        FileInfoClass::ALTERNATE_NAME => return Err(Status::OBJECT_NAME_NOT_FOUND),
        _ => return Err(Status::INVALID_INFO_CLASS),
    }
    Ok(())
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    let name = utf16(name);
    FileNameInformation { name: Utf16(&name) }.encode(out);
}

/// From the root of the share on, with a separator in front: `\` is the root.
fn absolute(path: &SharePath) -> String {
    let mut name = String::from("\\");
    name.push_str(&path.to_wire());
    name
}

/// A name without the type of a stream. smbtorture smb2.getinfo.normalized
fn normalized(name: &str) -> &str {
    name.strip_suffix(":$DATA").unwrap_or(name)
}

/// Whether a name is of the 8.3 form as it is.
fn is_short(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let is_short_char = |c: char| c.is_ascii_graphic() && !"+,;=[].".contains(c);
    (1..=8).contains(&stem.len())
        && extension.len() <= 3
        && stem.chars().chain(extension.chars()).all(is_short_char)
        && !name.ends_with('.')
}

fn basic(metadata: &Metadata) -> FileBasicInformation {
    FileBasicInformation {
        created: metadata.created,
        accessed: metadata.accessed,
        written: metadata.written,
        changed: metadata.changed,
        attributes: wire_attributes(metadata),
    }
}

/// A directory has one name, even if the file system counts more links; a name that is about to go
/// does not count. Samba does the same.
fn standard(server: &Server, open: &Open, metadata: &Metadata) -> FileStandardInformation {
    let files = &server.files;
    let is_delete_pending = files.is_delete_pending(open.key, open.file);
    let removed = u32::try_from(files.names_to_delete(open.key)).unwrap_or(u32::MAX);
    let names = if metadata.is_directory() {
        1
    } else {
        metadata.links
    };
    FileStandardInformation {
        allocation_size: metadata.allocation,
        end_of_file: metadata.size,
        number_of_links: names.saturating_sub(removed),
        is_delete_pending,
        is_directory: metadata.is_directory(),
    }
}

fn internal(metadata: &Metadata) -> FileInternalInformation {
    FileInternalInformation {
        index_number: metadata.file_id(),
    }
}

fn access(open: &Open) -> FileAccessInformation {
    FileAccessInformation {
        access_flags: open.granted,
    }
}

fn position(open: &Open) -> FilePositionInformation {
    FilePositionInformation {
        current_byte_offset: open.position.load(Ordering::Relaxed),
    }
}

/// The mode flags of the CREATE, with later changes. \[MS-FSA\] 2.1.5.12.20
fn mode(open: &Open) -> FileModeInformation {
    let fixed = ModeFlags::NO_INTERMEDIATE_BUFFERING
        | ModeFlags::SYNCHRONOUS_IO_ALERT
        | ModeFlags::SYNCHRONOUS_IO_NONALERT
        | ModeFlags::DELETE_ON_CLOSE;
    let mode = ModeFlags(open.options.0) & fixed | open.mode();
    FileModeInformation { mode }
}

/// FileAllInformation: most of the classes in one.
pub(super) fn describe_all(
    server: &Server,
    open: &Open,
    metadata: &Metadata,
    ea: FileEaInformation,
) -> Vec<u8> {
    let path = server.files.path(open.key, open.file);
    let name = utf16(&absolute(&path.unwrap_or_default()));
    let all = FileAllInformation {
        basic: basic(metadata),
        standard: standard(server, open, metadata),
        internal: internal(metadata),
        ea,
        access: access(open),
        position: position(open),
        mode: mode(open),
        alignment: FileAlignmentInformation::default(),
        name: FileNameInformation { name: Utf16(&name) },
    };
    let mut out = Vec::new();
    all.encode(&mut out);
    out
}

/// COMPRESSION_FORMAT_LZNT1. \[MS-FSCC\] 2.3.18
const LZNT1: u16 = 2;

fn compression(metadata: &Metadata) -> FileCompressionInformation {
    let is_compressed = metadata.attributes.contains(FileAttributes::COMPRESSED);
    let (compressed_size, format) = match is_compressed {
        true => (metadata.allocation.min(metadata.size), LZNT1),
        false => (metadata.size, 0),
    };
    FileCompressionInformation {
        compressed_size,
        format,
        ..FileCompressionInformation::default()
    }
}

fn network_open(metadata: &Metadata) -> FileNetworkOpenInformation {
    FileNetworkOpenInformation {
        created: metadata.created,
        accessed: metadata.accessed,
        written: metadata.written,
        changed: metadata.changed,
        allocation_size: metadata.allocation,
        end_of_file: metadata.size,
        attributes: wire_attributes(metadata),
    }
}

fn attribute_tag(metadata: &Metadata) -> FileAttributeTagInformation {
    FileAttributeTagInformation {
        attributes: wire_attributes(metadata),
        reparse_tag: metadata.reparse_tag.0,
    }
}

fn id(metadata: &Metadata) -> FileIdInformation {
    FileIdInformation {
        volume_serial_number: metadata.volume.serial,
        file_id: metadata.file_id_128(),
    }
}

/// The effective access is that of the open, as on Windows.
fn stat(server: &Server, open: &Open, metadata: &Metadata) -> FileStatInformation {
    FileStatInformation {
        file_id: metadata.file_id(),
        created: metadata.created,
        accessed: metadata.accessed,
        written: metadata.written,
        changed: metadata.changed,
        allocation_size: metadata.allocation,
        end_of_file: metadata.size,
        attributes: wire_attributes(metadata),
        reparse_tag: metadata.reparse_tag.0,
        number_of_links: standard(server, open, metadata).number_of_links,
        effective_access: open.granted,
    }
}

fn stat_lx(server: &Server, open: &Open, metadata: &Metadata) -> FileStatLxInformation {
    FileStatLxInformation {
        stat: stat(server, open, metadata),
        flags: LxFlags::HAS_UID | LxFlags::HAS_GID | LxFlags::HAS_MODE,
        uid: metadata.uid,
        gid: metadata.gid,
        mode: metadata.mode,
        ..FileStatLxInformation::default()
    }
}

/// The data streams of a file, with their type.
pub(super) fn describe_streams(streams: &[StreamEntry]) -> Vec<u8> {
    let mut writer = StreamWriter::new(usize::MAX);
    for stream in streams {
        let name = stream.name.as_ref().map_or("", StreamName::as_str);
        let name = utf16(&format!(":{name}:$DATA"));
        let fits = writer.push(&FileStreamInformation {
            stream_size: stream.size,
            allocation_size: stream.allocation,
            name: Utf16(&name),
        });
        assert!(fits, "a list without a limit has room");
    }
    writer.finish()
}
