//! The SMB3 POSIX extensions: what an open with their create context shows of a file. "SMB3 POSIX
//! Protocol Extensions"; where they are silent, the server does as Samba 4.25.
//!
//! Owner and group have the SIDs S-1-22-1-uid and S-1-22-2-gid. Samba has SIDs of its domain for
//! its own users, which cifs.ko can only map with the help of a service.

use wire::posix::{
    FilePosixInformation, FsPosixInformation, PosixAttributes, PosixCreateResponse, PosixMode,
};
use wire::security::Sid;

use crate::file::{Metadata, VolumeInfo};
use crate::server::open::wire_attributes;

/// The permission bits of chmod(2).
const PERMISSIONS: u32 = 0o7777;
/// The mode that cifs.ko sends when it has none (ACL_NO_MODE).
const NO_MODE: u32 = 0xFFFF;
/// The permission bits of a new file without a mode. cifs.ko creates links and special files so.
const DEFAULT_PERMISSIONS: u32 = 0o777;

/// Returns the permission bits for a new file from the mode in a create context.
pub(crate) fn permissions(mode: u32) -> u32 {
    match mode {
        NO_MODE => DEFAULT_PERMISSIONS,
        mode => mode & PERMISSIONS,
    }
}

/// Returns the data of the create context in a response.
pub(crate) fn create_response(metadata: &Metadata) -> PosixCreateResponse {
    PosixCreateResponse {
        number_of_links: metadata.links,
        reparse_tag: metadata.reparse_tag.0,
        mode: PosixMode::new(metadata.posix_type, metadata.mode & PERMISSIONS),
        owner: Sid::unix_user(metadata.uid),
        group: Sid::unix_group(metadata.gid),
    }
}

/// Returns the Unix attributes in an entry of a directory.
pub(crate) fn attributes(metadata: &Metadata) -> PosixAttributes {
    PosixAttributes {
        // The number has no meaning on another machine; the lower half is unique enough.
        device: metadata.key.volume as u32,
        create: create_response(metadata),
    }
}

/// Returns the Unix attributes of the directory above the root of a share, which clients may not
/// see: the type and nothing else, as in Samba.
pub(crate) fn attributes_above_root(metadata: &Metadata) -> PosixAttributes {
    let create = create_response(metadata);
    PosixAttributes {
        device: 0,
        create: PosixCreateResponse {
            owner: Sid::NULL,
            group: Sid::NULL,
            ..create
        },
    }
}

/// Returns the information class 100 of a file.
pub(crate) fn file_information(metadata: &Metadata) -> FilePosixInformation {
    FilePosixInformation {
        created: metadata.created,
        accessed: metadata.accessed,
        written: metadata.written,
        changed: metadata.changed,
        end_of_file: metadata.size,
        allocation_size: metadata.allocation,
        attributes: wire_attributes(metadata),
        inode: metadata.file_id(),
        posix: attributes(metadata),
    }
}

/// Returns the information class 100 of a file system.
pub(crate) fn volume_information(volume: &VolumeInfo) -> FsPosixInformation {
    FsPosixInformation {
        optimal_transfer_size: volume.block,
        block_size: volume.block,
        total_blocks: volume.total,
        blocks_available: volume.free,
        user_blocks_available: volume.available,
        total_file_nodes: volume.total_files,
        free_file_nodes: volume.free_files,
        file_system_identifier: volume.serial,
    }
}
