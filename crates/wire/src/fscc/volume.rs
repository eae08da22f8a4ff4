//! Information classes of a volume. \[MS-FSCC\] 2.5

use alloc::vec::Vec;

use super::name::{name_of, put_name_len, read_name};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;
use crate::time::FileTime;

/// Label, serial number and creation time of a volume: the information class VOLUME. \[MS-FSCC\]
/// 2.5.9
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsVolumeInformation<'a> {
    /// Time of the creation of the volume.
    pub created: FileTime,
    /// Serial number that the file system assigned to the volume.
    pub serial_number: u32,
    /// Whether the file system supports object identifiers (GUIDs) of files.
    pub supports_objects: bool,
    /// Label of the volume: a name for display.
    pub label: Utf16<'a>,
}

impl<'a> FileFsVolumeInformation<'a> {
    /// Length in bytes of the encoded structure before the label.
    pub const FIXED_LEN: usize = 18;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let created = FileTime(reader.u64("VolumeCreationTime")?);
        let serial_number = reader.u32("VolumeSerialNumber")?;
        let label_len = reader.u32("VolumeLabelLength")?;
        let supports_objects = reader.u8("SupportsObjects")? != 0;
        reader.skip("Reserved", 1)?;
        Ok(Self {
            created,
            serial_number,
            supports_objects,
            label: name_of(&mut reader, "VolumeLabel", label_len)?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u32(self.serial_number);
        put_name_len(out, self.label);
        out.put_u8(u8::from(self.supports_objects));
        out.put_u8(0);
        out.put(self.label.0);
    }
}

/// The information class LABEL of SET_INFO: the client sets the label of the volume. \[MS-FSCC\]
/// 2.5.5
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsLabelInformation<'a> {
    /// The new label of the volume, a name for display.
    pub label: Utf16<'a>,
}

impl<'a> FileFsLabelInformation<'a> {
    /// Length in bytes of the encoded structure before the label.
    pub const FIXED_LEN: usize = 4;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let label = read_name(&mut Reader::new(bytes), "VolumeLabel")?;
        Ok(Self { label })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_name_len(out, self.label);
        out.put(self.label.0);
    }
}

/// Free and total space of a volume: the information class SIZE. \[MS-FSCC\] 2.5.8
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsSizeInformation {
    /// Total number of allocation units on the volume that the user may use.
    pub total_allocation_units: u64,
    /// Number of free allocation units that the user may use.
    pub available_allocation_units: u64,
    /// Number of sectors in an allocation unit.
    pub sectors_per_allocation_unit: u32,
    /// Length of a sector in bytes.
    pub bytes_per_sector: u32,
}

impl FileFsSizeInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 24;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            total_allocation_units: reader.u64("TotalAllocationUnits")?,
            available_allocation_units: reader.u64("AvailableAllocationUnits")?,
            sectors_per_allocation_unit: reader.u32("SectorsPerAllocationUnit")?,
            bytes_per_sector: reader.u32("BytesPerSector")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.total_allocation_units);
        out.put_u64(self.available_allocation_units);
        out.put_u32(self.sectors_per_allocation_unit);
        out.put_u32(self.bytes_per_sector);
    }
}

open_enum! {
    /// Type of the device that a volume is on. \[MS-FSCC\] 2.5.10
    DeviceType(u32) {
        /// The volume is on a CD or DVD.
        CD_ROM = 0x0000_0002,
        /// The volume is on a disk, or another medium for files.
        DISK = 0x0000_0007,
    }
}

open_flags! {
    /// Characteristics of the device that a volume is on. \[MS-FSCC\] 2.5.10
    DeviceCharacteristics(u32) {
        /// The medium is removable.
        REMOVABLE_MEDIA = 0x0000_0001,
        /// The device is read-only.
        READ_ONLY_DEVICE = 0x0000_0002,
        /// The device is a floppy disk drive.
        FLOPPY_DISKETTE = 0x0000_0004,
        /// The medium can be written once.
        WRITE_ONCE_MEDIA = 0x0000_0008,
        /// The device is on a network, in the view of the server.
        REMOTE_DEVICE = 0x0000_0010,
        /// A file system on the device is mounted.
        DEVICE_IS_MOUNTED = 0x0000_0020,
        /// The volume is virtual, without a separate device.
        VIRTUAL_VOLUME = 0x0000_0040,
        /// The device checks its security descriptor in every open of a file on it.
        DEVICE_SECURE_OPEN = 0x0000_0100,
    }
}

/// Type and characteristics of the device that a volume is on: the information class DEVICE.
/// \[MS-FSCC\] 2.5.10
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsDeviceInformation {
    /// Type of the device, such as a disk.
    pub device_type: DeviceType,
    /// Characteristics of the device, such as a removable medium.
    pub characteristics: DeviceCharacteristics,
}

impl FileFsDeviceInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 8;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            device_type: DeviceType(reader.u32("DeviceType")?),
            characteristics: DeviceCharacteristics(reader.u32("Characteristics")?),
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.device_type.0);
        out.put_u32(self.characteristics.0);
    }
}

open_flags! {
    /// Features of a file system. \[MS-FSCC\] 2.5.1
    FileSystemAttributes(u32) {
        /// The file system distinguishes names that differ only in case.
        CASE_SENSITIVE_SEARCH = 0x0000_0001,
        /// The file system preserves the case of names.
        CASE_PRESERVED_NAMES = 0x0000_0002,
        /// The file system stores names in Unicode.
        UNICODE_ON_DISK = 0x0000_0004,
        /// The file system stores and enforces access control lists.
        PERSISTENT_ACLS = 0x0000_0008,
        /// The file system supports compression of files.
        FILE_COMPRESSION = 0x0000_0010,
        /// The file system supports disk quotas of users.
        VOLUME_QUOTAS = 0x0000_0020,
        /// The file system supports sparse files, in which ranges without data take no space.
        SUPPORTS_SPARSE_FILES = 0x0000_0040,
        /// The file system supports reparse points, such as symbolic links.
        SUPPORTS_REPARSE_POINTS = 0x0000_0080,
        /// The file system can move data of files to remote storage.
        SUPPORTS_REMOTE_STORAGE = 0x0000_0100,
        /// Closing a file returns information about its deletion.
        RETURNS_CLEANUP_RESULT_INFO = 0x0000_0200,
        /// The file system supports deletes and renames as POSIX defines them: the name of an open
        /// file is removed or replaced at once, and its opens stay valid.
        SUPPORTS_POSIX_UNLINK_RENAME = 0x0000_0400,
        /// The volume is compressed.
        VOLUME_IS_COMPRESSED = 0x0000_8000,
        /// The file system supports object identifiers.
        SUPPORTS_OBJECT_IDS = 0x0001_0000,
        /// The file system supports encryption of files (EFS).
        SUPPORTS_ENCRYPTION = 0x0002_0000,
        /// The file system supports named streams.
        NAMED_STREAMS = 0x0004_0000,
        /// The volume is read-only.
        READ_ONLY_VOLUME = 0x0008_0000,
        /// The volume can be written once only, sequentially.
        SEQUENTIAL_WRITE_ONCE = 0x0010_0000,
        /// The file system supports transactions: several changes of files take effect together or
        /// not at all.
        SUPPORTS_TRANSACTIONS = 0x0020_0000,
        /// The file system supports hard links.
        SUPPORTS_HARD_LINKS = 0x0040_0000,
        /// The file system supports extended attributes.
        SUPPORTS_EXTENDED_ATTRIBUTES = 0x0080_0000,
        /// The file system can open a file by its identifier.
        SUPPORTS_OPEN_BY_FILE_ID = 0x0100_0000,
        /// The file system has a journal of changes (USN).
        SUPPORTS_USN_JOURNAL = 0x0200_0000,
        /// The file system supports checksums of file data (integrity streams).
        SUPPORTS_INTEGRITY_STREAMS = 0x0400_0000,
        /// Files can share extents, so that a copy takes no space.
        SUPPORTS_BLOCK_REFCOUNTING = 0x0800_0000,
        /// The file system tracks the valid data of a file in several ranges.
        SUPPORTS_SPARSE_VDL = 0x1000_0000,
        /// The file system supports placeholder files for data in another storage.
        SUPPORTS_GHOSTING = 0x4000_0000,
    }
}

/// Features and name of the file system of a volume: the information class ATTRIBUTE. \[MS-FSCC\]
/// 2.5.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsAttributeInformation<'a> {
    /// Features that the file system supports, such as case-sensitive names or sparse files.
    pub attributes: FileSystemAttributes,
    /// Maximum length of one component of a path, in UTF-16 code units.
    pub maximum_component_name_length: u32,
    /// Name of the file system, for example "NTFS".
    pub file_system_name: Utf16<'a>,
}

impl<'a> FileFsAttributeInformation<'a> {
    /// Length in bytes of the encoded structure before the name.
    pub const FIXED_LEN: usize = 12;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            attributes: FileSystemAttributes(reader.u32("FileSystemAttributes")?),
            maximum_component_name_length: reader.u32("MaximumComponentNameLength")?,
            file_system_name: read_name(&mut reader, "FileSystemName")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.attributes.0);
        out.put_u32(self.maximum_component_name_length);
        put_name_len(out, self.file_system_name);
        out.put(self.file_system_name.0);
    }
}

open_flags! {
    /// Disk quota and logging flags of a volume. \[MS-FSCC\] 2.5.2
    ControlFlags(u32) {
        /// The file system tracks disk quotas but does not enforce them.
        QUOTA_TRACK = 0x0000_0001,
        /// The file system tracks and enforces disk quotas.
        QUOTA_ENFORCE = 0x0000_0002,
        /// Content indexing of the volume is disabled.
        CONTENT_INDEX_DISABLED = 0x0000_0008,
        /// The system logs when a user exceeds the warning threshold of the disk quota.
        LOG_QUOTA_THRESHOLD = 0x0000_0010,
        /// The system logs when a user exceeds the limit of the disk quota.
        LOG_QUOTA_LIMIT = 0x0000_0020,
        /// The system logs when the free space of the volume falls below its threshold.
        LOG_VOLUME_THRESHOLD = 0x0000_0040,
        /// The system logs when the volume is full.
        LOG_VOLUME_LIMIT = 0x0000_0080,
        /// The disk quota information is incomplete.
        QUOTAS_INCOMPLETE = 0x0000_0100,
        /// The file system is rebuilding the disk quota information.
        QUOTAS_REBUILDING = 0x0000_0200,
    }
}

/// Default disk quotas and content indexing of a volume: the information class CONTROL. \[MS-FSCC\]
/// 2.5.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsControlInformation {
    /// Minimum free space of the volume, in bytes, to start content indexing.
    pub free_space_start_filtering: u64,
    /// Minimum free space of the volume, in bytes, to continue content indexing.
    pub free_space_threshold: u64,
    /// Free space of the volume, in bytes, below which content indexing stops.
    pub free_space_stop_filtering: u64,
    /// Default warning threshold of a user's disk quota in bytes; 0xFFFFFFFFFFFFFFFF for none.
    pub default_quota_threshold: u64,
    /// Default limit of a user's disk quota in bytes; 0xFFFFFFFFFFFFFFFF for none.
    pub default_quota_limit: u64,
    /// Flags of the volume: whether the system enforces and logs disk quotas.
    pub flags: ControlFlags,
}

impl FileFsControlInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 48;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let information = Self {
            free_space_start_filtering: reader.u64("FreeSpaceStartFiltering")?,
            free_space_threshold: reader.u64("FreeSpaceThreshold")?,
            free_space_stop_filtering: reader.u64("FreeSpaceStopFiltering")?,
            default_quota_threshold: reader.u64("DefaultQuotaThreshold")?,
            default_quota_limit: reader.u64("DefaultQuotaLimit")?,
            flags: ControlFlags(reader.u32("FileSystemControlFlags")?),
        };
        reader.skip("Padding", 4)?;
        Ok(information)
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.free_space_start_filtering);
        out.put_u64(self.free_space_threshold);
        out.put_u64(self.free_space_stop_filtering);
        out.put_u64(self.default_quota_threshold);
        out.put_u64(self.default_quota_limit);
        out.put_u32(self.flags.0);
        out.put_u32(0);
    }
}

/// Free and total space of a volume, for the user and in all: the information class FULL_SIZE.
/// \[MS-FSCC\] 2.5.4
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsFullSizeInformation {
    /// Total number of allocation units on the volume that the user may use.
    pub total_allocation_units: u64,
    /// Number of free allocation units that the user may use.
    pub caller_available_allocation_units: u64,
    /// Number of free allocation units on the volume, regardless of the user's quota.
    pub actual_available_allocation_units: u64,
    /// Number of sectors in an allocation unit.
    pub sectors_per_allocation_unit: u32,
    /// Length of a sector in bytes.
    pub bytes_per_sector: u32,
}

impl FileFsFullSizeInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 32;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            total_allocation_units: reader.u64("TotalAllocationUnits")?,
            caller_available_allocation_units: reader.u64("CallerAvailableAllocationUnits")?,
            actual_available_allocation_units: reader.u64("ActualAvailableAllocationUnits")?,
            sectors_per_allocation_unit: reader.u32("SectorsPerAllocationUnit")?,
            bytes_per_sector: reader.u32("BytesPerSector")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.total_allocation_units);
        out.put_u64(self.caller_available_allocation_units);
        out.put_u64(self.actual_available_allocation_units);
        out.put_u32(self.sectors_per_allocation_unit);
        out.put_u32(self.bytes_per_sector);
    }
}

/// Object identifier of a volume: the information class OBJECT_ID. \[MS-FSCC\] 2.5.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFsObjectIdInformation {
    /// Identifier of the volume, a GUID.
    pub object_id: Guid,
    /// Additional information about the volume, in a format that the file system defines.
    pub extended_info: [u8; 48],
}

impl FileFsObjectIdInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 64;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            object_id: reader.guid("ObjectId")?,
            extended_info: reader.array("ExtendedInfo")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(&self.object_id.0);
        out.put(&self.extended_info);
    }
}

open_flags! {
    /// Flags of the sector layout of a device. \[MS-FSCC\] 2.5.7
    SectorSizeFlags(u32) {
        /// The first logical sector of the device is aligned with a physical sector.
        ALIGNED_DEVICE = 0x0000_0001,
        /// The partition of the volume is aligned with a physical sector.
        PARTITION_ALIGNED_ON_DEVICE = 0x0000_0002,
        /// The device has no seek penalty, such as a solid-state disk.
        NO_SEEK_PENALTY = 0x0000_0004,
        /// The device supports TRIM, which releases unused sectors.
        TRIM_ENABLED = 0x0000_0008,
    }
}

/// Sector lengths and alignment of the device that a volume is on: the information class
/// SECTOR_SIZE. \[MS-FSCC\] 2.5.7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsSectorSizeInformation {
    /// Length of a logical sector in bytes.
    pub logical_bytes_per_sector: u32,
    /// Number of bytes that the device writes atomically.
    pub physical_bytes_per_sector_for_atomicity: u32,
    /// Length of a write in bytes that performs best on the device.
    pub physical_bytes_per_sector_for_performance: u32,
    /// Length in bytes that the file system uses for a physical sector.
    pub effective_physical_bytes_per_sector_for_atomicity: u32,
    /// Flags of the device: alignment of its sectors, and whether it supports TRIM or has no seek
    /// penalty.
    pub flags: SectorSizeFlags,
    /// Distance in bytes from the start of the first physical sector to the first logical sector;
    /// 0xFFFFFFFF if unknown.
    pub byte_offset_for_sector_alignment: u32,
    /// Distance in bytes from the start of a physical sector to the start of the partition;
    /// 0xFFFFFFFF if unknown.
    pub byte_offset_for_partition_alignment: u32,
}

impl FileFsSectorSizeInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 28;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut next = || reader.u32("FILE_FS_SECTOR_SIZE_INFORMATION");
        Ok(Self {
            logical_bytes_per_sector: next()?,
            physical_bytes_per_sector_for_atomicity: next()?,
            physical_bytes_per_sector_for_performance: next()?,
            effective_physical_bytes_per_sector_for_atomicity: next()?,
            flags: SectorSizeFlags(next()?),
            byte_offset_for_sector_alignment: next()?,
            byte_offset_for_partition_alignment: next()?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.logical_bytes_per_sector);
        out.put_u32(self.physical_bytes_per_sector_for_atomicity);
        out.put_u32(self.physical_bytes_per_sector_for_performance);
        out.put_u32(self.effective_physical_bytes_per_sector_for_atomicity);
        out.put_u32(self.flags.0);
        out.put_u32(self.byte_offset_for_sector_alignment);
        out.put_u32(self.byte_offset_for_partition_alignment);
    }
}
