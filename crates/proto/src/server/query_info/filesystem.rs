//! QUERY_INFO of the file system. \[MS-SMB2\] 3.3.5.20.2, \[MS-FSA\] 2.1.5.13

use alloc::vec::Vec;

use wire::fscc::{
    ControlFlags, DeviceCharacteristics, DeviceType, FileFsAttributeInformation,
    FileFsControlInformation, FileFsDeviceInformation, FileFsFullSizeInformation,
    FileFsObjectIdInformation, FileFsSectorSizeInformation, FileFsSizeInformation,
    FileFsVolumeInformation, FileSystemAttributes, FsInfoClass, SectorSizeFlags,
};
use wire::text::utf16;
use wire::{Guid, Status, Utf16};

use crate::disk_quota::QuotaState;
use crate::file::VolumeInfo;
use crate::server::context::Context;
use crate::server::open::Open;
use crate::server::posix;

/// UTF-16 units of a label. \[MS-FSCC\] 2.5.9
const MAX_LABEL_UNITS: usize = 32;

/// Whether the class is one that can be asked with this buffer.
pub(super) fn check(class: FsInfoClass, open: &Open, max_len: usize) -> Result<(), Status> {
    let fixed_len = match class {
        FsInfoClass::VOLUME
        | FsInfoClass::SIZE
        | FsInfoClass::DEVICE
        | FsInfoClass::ATTRIBUTE
        | FsInfoClass::CONTROL
        | FsInfoClass::FULL_SIZE
        | FsInfoClass::OBJECT_ID
        | FsInfoClass::SECTOR_SIZE => class.fixed_len().unwrap_or(0),
        FsInfoClass::POSIX if open.is_posix => class.fixed_len().unwrap_or(0),
        _ => return Err(Status::INVALID_INFO_CLASS),
    };
    if max_len < fixed_len {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    Ok(())
}

/// The structure of the class.
pub(super) fn describe(
    class: FsInfoClass,
    context: &Context<'_>,
    volume: &VolumeInfo,
) -> Result<Vec<u8>, Status> {
    let mut out = Vec::new();
    match class {
        FsInfoClass::VOLUME => put_volume(&context.tree.share.name, volume, &mut out),
        FsInfoClass::SIZE => size(volume).encode(&mut out),
        FsInfoClass::DEVICE => device(context, volume).encode(&mut out),
        FsInfoClass::ATTRIBUTE => put_attributes(context, volume, &mut out),
        FsInfoClass::CONTROL => control(volume).encode(&mut out),
        FsInfoClass::FULL_SIZE => full_size(volume).encode(&mut out),
        FsInfoClass::OBJECT_ID => object_id(context).encode(&mut out),
        FsInfoClass::SECTOR_SIZE => sector_size(volume).encode(&mut out),
        FsInfoClass::POSIX => posix::volume_information(volume).encode(&mut out),
        _ => return Err(Status::INVALID_INFO_CLASS),
    }
    Ok(out)
}

/// The label is the name of the share, as with Samba.
fn put_volume(share: &str, volume: &VolumeInfo, out: &mut Vec<u8>) {
    let mut label = utf16(share);
    label.truncate(MAX_LABEL_UNITS * 2);
    let information = FileFsVolumeInformation {
        created: volume.created,
        serial_number: volume.serial as u32,
        supports_objects: false,
        label: Utf16(&label),
    };
    information.encode(out);
}

/// Sectors of a unit, and units in a block: a block is a unit where it is a multiple of sectors.
fn sectors(volume: &VolumeInfo) -> u32 {
    (volume.block / volume.sector.max(1)).max(1)
}

fn size(volume: &VolumeInfo) -> FileFsSizeInformation {
    FileFsSizeInformation {
        total_allocation_units: volume.total,
        available_allocation_units: volume.available,
        sectors_per_allocation_unit: sectors(volume),
        bytes_per_sector: volume.sector,
    }
}

fn full_size(volume: &VolumeInfo) -> FileFsFullSizeInformation {
    FileFsFullSizeInformation {
        total_allocation_units: volume.total,
        caller_available_allocation_units: volume.available,
        actual_available_allocation_units: volume.free,
        sectors_per_allocation_unit: sectors(volume),
        bytes_per_sector: volume.sector,
    }
}

/// Unix has no limits for users without a quota. \[MS-FSCC\] 2.5.2
fn control(volume: &VolumeInfo) -> FileFsControlInformation {
    FileFsControlInformation {
        free_space_start_filtering: 0,
        free_space_threshold: 0,
        free_space_stop_filtering: 0,
        default_quota_threshold: u64::MAX,
        default_quota_limit: u64::MAX,
        flags: match volume.quotas {
            QuotaState::None => ControlFlags::NONE,
            QuotaState::Counted => ControlFlags::QUOTA_TRACK,
            QuotaState::Limited => ControlFlags::QUOTA_ENFORCE,
        },
    }
}

fn device(context: &Context<'_>, volume: &VolumeInfo) -> FileFsDeviceInformation {
    let mut characteristics = DeviceCharacteristics::DEVICE_IS_MOUNTED;
    if context.tree.is_read_only || volume.is_read_only {
        characteristics |= DeviceCharacteristics::READ_ONLY_DEVICE;
    }
    FileFsDeviceInformation {
        device_type: DeviceType::DISK,
        characteristics,
    }
}

/// The features of the file system that holds the file.
fn put_attributes(context: &Context<'_>, volume: &VolumeInfo, out: &mut Vec<u8>) {
    let mut attributes = FileSystemAttributes::CASE_PRESERVED_NAMES
        | FileSystemAttributes::UNICODE_ON_DISK
        | FileSystemAttributes::SUPPORTS_POSIX_UNLINK_RENAME
        | FileSystemAttributes::SUPPORTS_OBJECT_IDS;
    let kind = volume.kind;
    let is_read_only = context.tree.is_read_only || volume.is_read_only;
    for (has_feature, attribute) in [
        (
            kind.is_case_sensitive(),
            FileSystemAttributes::CASE_SENSITIVE_SEARCH,
        ),
        (
            kind.has_permissions(),
            FileSystemAttributes::PERSISTENT_ACLS,
        ),
        (
            kind.has_hard_links(),
            FileSystemAttributes::SUPPORTS_HARD_LINKS,
        ),
        (
            volume.has_named_streams,
            FileSystemAttributes::NAMED_STREAMS,
        ),
        // Reparse points are stored in the same way. cifs.ko creates links only with this bit.
        (
            volume.has_named_streams,
            FileSystemAttributes::SUPPORTS_REPARSE_POINTS,
        ),
        (is_read_only, FileSystemAttributes::READ_ONLY_VOLUME),
        (
            volume.has_sparse_files,
            FileSystemAttributes::SUPPORTS_SPARSE_FILES,
        ),
        (
            volume.has_extended_attributes,
            FileSystemAttributes::SUPPORTS_EXTENDED_ATTRIBUTES,
        ),
        (
            volume.has_shared_extents,
            FileSystemAttributes::SUPPORTS_BLOCK_REFCOUNTING,
        ),
        (
            volume.quotas != QuotaState::None,
            FileSystemAttributes::VOLUME_QUOTAS,
        ),
        (
            volume.has_compression,
            FileSystemAttributes::FILE_COMPRESSION,
        ),
    ] {
        if has_feature {
            attributes |= attribute;
        }
    }
    let name = utf16(kind.name());
    let information = FileFsAttributeInformation {
        attributes,
        maximum_component_name_length: volume.max_name,
        file_system_name: Utf16(&name),
    };
    information.encode(out);
}

fn object_id(context: &Context<'_>) -> FileFsObjectIdInformation {
    FileFsObjectIdInformation {
        object_id: volume_id(context),
        extended_info: [0; 48],
    }
}

/// The server's id with the number of the share: the same as long as the configuration is.
pub(crate) fn volume_id(context: &Context<'_>) -> Guid {
    let Guid(mut id) = context.config.guid;
    let share = context.tree.share.id.0.to_le_bytes();
    for (byte, share) in id[12..].iter_mut().zip(share) {
        *byte ^= share;
    }
    Guid(id)
}

/// Clients send FILE_LEVEL_TRIM only with TRIM_ENABLED.
fn sector_size(volume: &VolumeInfo) -> FileFsSectorSizeInformation {
    let mut flags = SectorSizeFlags::ALIGNED_DEVICE | SectorSizeFlags::PARTITION_ALIGNED_ON_DEVICE;
    if volume.has_sparse_files {
        flags |= SectorSizeFlags::TRIM_ENABLED;
    }
    FileFsSectorSizeInformation {
        logical_bytes_per_sector: volume.sector,
        physical_bytes_per_sector_for_atomicity: volume.physical_sector,
        physical_bytes_per_sector_for_performance: volume.physical_sector,
        effective_physical_bytes_per_sector_for_atomicity: volume.physical_sector,
        flags,
        byte_offset_for_sector_alignment: 0,
        byte_offset_for_partition_alignment: 0,
    }
}
