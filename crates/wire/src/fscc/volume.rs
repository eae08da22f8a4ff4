//! Information classes of a volume. \[MS-FSCC\] 2.5

use alloc::vec::Vec;

use super::name::{name_of, put_name_len, read_name};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;
use crate::time::FileTime;

/// Label, serial number, birth. \[MS-FSCC\] 2.5.9
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsVolumeInformation<'a> {
    /// When the volume was made.
    pub created: FileTime,
    /// A number that tells volumes apart.
    pub serial_number: u32,
    /// Whether the file system has object ids.
    pub supports_objects: bool,
    /// The label.
    pub label: Utf16<'a>,
}

impl<'a> FileFsVolumeInformation<'a> {
    /// Bytes before the label.
    pub const FIXED_LEN: usize = 18;

    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u32(self.serial_number);
        put_name_len(out, self.label);
        out.put_u8(u8::from(self.supports_objects));
        out.put_u8(0);
        out.put(self.label.0);
    }
}

/// Set: the label. \[MS-FSCC\] 2.5.5
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsLabelInformation<'a> {
    /// The label.
    pub label: Utf16<'a>,
}

impl<'a> FileFsLabelInformation<'a> {
    /// Bytes before the label.
    pub const FIXED_LEN: usize = 4;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let label = read_name(&mut Reader::new(bytes), "VolumeLabel")?;
        Ok(Self { label })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_name_len(out, self.label);
        out.put(self.label.0);
    }
}

/// Free and total space. \[MS-FSCC\] 2.5.8
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsSizeInformation {
    /// Allocation units of the volume that the caller may use.
    pub total_allocation_units: u64,
    /// Those that are free.
    pub available_allocation_units: u64,
    /// Sectors in an allocation unit.
    pub sectors_per_allocation_unit: u32,
    /// Bytes in a sector.
    pub bytes_per_sector: u32,
}

impl FileFsSizeInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            total_allocation_units: reader.u64("TotalAllocationUnits")?,
            available_allocation_units: reader.u64("AvailableAllocationUnits")?,
            sectors_per_allocation_unit: reader.u32("SectorsPerAllocationUnit")?,
            bytes_per_sector: reader.u32("BytesPerSector")?,
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.total_allocation_units);
        out.put_u64(self.available_allocation_units);
        out.put_u32(self.sectors_per_allocation_unit);
        out.put_u32(self.bytes_per_sector);
    }
}

open_enum! {
    /// What kind of device. \[MS-FSCC\] 2.5.10
    DeviceType(u32) {
        /// A CD or DVD.
        CD_ROM = 0x0000_0002,
        /// A disk.
        DISK = 0x0000_0007,
    }
}

open_flags! {
    /// What is special about a device. \[MS-FSCC\] 2.5.10
    DeviceCharacteristics(u32) {
        /// The medium can be taken out.
        REMOVABLE_MEDIA = 0x0000_0001,
        /// Nothing can be written.
        READ_ONLY_DEVICE = 0x0000_0002,
        /// A floppy disk.
        FLOPPY_DISKETTE = 0x0000_0004,
        /// What is written stays as it is.
        WRITE_ONCE_MEDIA = 0x0000_0008,
        /// Reached over a network, as the server sees it.
        REMOTE_DEVICE = 0x0000_0010,
        /// Mounted.
        DEVICE_IS_MOUNTED = 0x0000_0020,
        /// A virtual volume.
        VIRTUAL_VOLUME = 0x0000_0040,
        /// Has a security descriptor that is checked on open.
        DEVICE_SECURE_OPEN = 0x0000_0100,
    }
}

/// What kind of device. \[MS-FSCC\] 2.5.10
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsDeviceInformation {
    /// The kind.
    pub device_type: DeviceType,
    /// What is special about it.
    pub characteristics: DeviceCharacteristics,
}

impl FileFsDeviceInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            device_type: DeviceType(reader.u32("DeviceType")?),
            characteristics: DeviceCharacteristics(reader.u32("Characteristics")?),
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.device_type.0);
        out.put_u32(self.characteristics.0);
    }
}

open_flags! {
    /// What a file system can do. \[MS-FSCC\] 2.5.1
    FileSystemAttributes(u32) {
        /// Names that differ in case only are two names.
        CASE_SENSITIVE_SEARCH = 0x0000_0001,
        /// Names are stored in the case in which they were given.
        CASE_PRESERVED_NAMES = 0x0000_0002,
        /// Names are Unicode on disk.
        UNICODE_ON_DISK = 0x0000_0004,
        /// Access control lists are kept and enforced.
        PERSISTENT_ACLS = 0x0000_0008,
        /// Files can be compressed.
        FILE_COMPRESSION = 0x0000_0010,
        /// Quotas for users.
        VOLUME_QUOTAS = 0x0000_0020,
        /// Files can have holes.
        SUPPORTS_SPARSE_FILES = 0x0000_0040,
        /// Reparse points.
        SUPPORTS_REPARSE_POINTS = 0x0000_0080,
        /// Files can be moved to slower storage.
        SUPPORTS_REMOTE_STORAGE = 0x0000_0100,
        /// A cleanup tells what it did.
        RETURNS_CLEANUP_RESULT_INFO = 0x0000_0200,
        /// A delete or rename can follow POSIX.
        SUPPORTS_POSIX_UNLINK_RENAME = 0x0000_0400,
        /// The volume is compressed.
        VOLUME_IS_COMPRESSED = 0x0000_8000,
        /// Object ids.
        SUPPORTS_OBJECT_IDS = 0x0001_0000,
        /// The encrypted file system.
        SUPPORTS_ENCRYPTION = 0x0002_0000,
        /// Named streams.
        NAMED_STREAMS = 0x0004_0000,
        /// Nothing can be written.
        READ_ONLY_VOLUME = 0x0008_0000,
        /// Can be written once, in order.
        SEQUENTIAL_WRITE_ONCE = 0x0010_0000,
        /// Transactions.
        SUPPORTS_TRANSACTIONS = 0x0020_0000,
        /// Several names for a file.
        SUPPORTS_HARD_LINKS = 0x0040_0000,
        /// Extended attributes.
        SUPPORTS_EXTENDED_ATTRIBUTES = 0x0080_0000,
        /// A file can be opened by its id.
        SUPPORTS_OPEN_BY_FILE_ID = 0x0100_0000,
        /// A journal of changes.
        SUPPORTS_USN_JOURNAL = 0x0200_0000,
        /// Integrity streams.
        SUPPORTS_INTEGRITY_STREAMS = 0x0400_0000,
        /// Files can share extents.
        SUPPORTS_BLOCK_REFCOUNTING = 0x0800_0000,
        /// The valid data length is kept sparse.
        SUPPORTS_SPARSE_VDL = 0x1000_0000,
        /// Files that stand for others.
        SUPPORTS_GHOSTING = 0x4000_0000,
    }
}

/// What the file system can do. \[MS-FSCC\] 2.5.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsAttributeInformation<'a> {
    /// What it can do.
    pub attributes: FileSystemAttributes,
    /// Characters in the longest name of a file.
    pub maximum_component_name_length: u32,
    /// The name of the file system: "NTFS".
    pub file_system_name: Utf16<'a>,
}

impl<'a> FileFsAttributeInformation<'a> {
    /// Bytes before the name.
    pub const FIXED_LEN: usize = 12;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            attributes: FileSystemAttributes(reader.u32("FileSystemAttributes")?),
            maximum_component_name_length: reader.u32("MaximumComponentNameLength")?,
            file_system_name: read_name(&mut reader, "FileSystemName")?,
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.attributes.0);
        out.put_u32(self.maximum_component_name_length);
        put_name_len(out, self.file_system_name);
        out.put(self.file_system_name.0);
    }
}

open_flags! {
    /// How quotas work. \[MS-FSCC\] 2.5.2
    ControlFlags(u32) {
        /// Quotas are counted.
        QUOTA_TRACK = 0x0000_0001,
        /// Quotas are counted and enforced.
        QUOTA_ENFORCE = 0x0000_0002,
        /// The index of contents is off.
        CONTENT_INDEX_DISABLED = 0x0000_0008,
        /// A user over the threshold is logged.
        LOG_QUOTA_THRESHOLD = 0x0000_0010,
        /// A user over the limit is logged.
        LOG_QUOTA_LIMIT = 0x0000_0020,
        /// A volume that is low on space is logged.
        LOG_VOLUME_THRESHOLD = 0x0000_0040,
        /// A volume that is out of space is logged.
        LOG_VOLUME_LIMIT = 0x0000_0080,
        /// The quotas are not complete.
        QUOTAS_INCOMPLETE = 0x0000_0100,
        /// The quotas are being counted anew.
        QUOTAS_REBUILDING = 0x0000_0200,
    }
}

/// Default quotas. \[MS-FSCC\] 2.5.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsControlInformation {
    /// Bytes free at which the content index starts.
    pub free_space_start_filtering: u64,
    /// Bytes free at which it goes on.
    pub free_space_threshold: u64,
    /// Bytes free at which it stops.
    pub free_space_stop_filtering: u64,
    /// Bytes at which a new user is warned; all ones for never.
    pub default_quota_threshold: u64,
    /// Bytes that a new user may have; all ones for no limit.
    pub default_quota_limit: u64,
    /// How quotas work.
    pub flags: ControlFlags,
}

impl FileFsControlInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 48;

    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure.
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

/// Free and total space, for the caller and for all. \[MS-FSCC\] 2.5.4
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsFullSizeInformation {
    /// Allocation units of the volume that the caller may use.
    pub total_allocation_units: u64,
    /// Those that are free for the caller.
    pub caller_available_allocation_units: u64,
    /// Those that are free at all.
    pub actual_available_allocation_units: u64,
    /// Sectors in an allocation unit.
    pub sectors_per_allocation_unit: u32,
    /// Bytes in a sector.
    pub bytes_per_sector: u32,
}

impl FileFsFullSizeInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 32;

    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.total_allocation_units);
        out.put_u64(self.caller_available_allocation_units);
        out.put_u64(self.actual_available_allocation_units);
        out.put_u32(self.sectors_per_allocation_unit);
        out.put_u32(self.bytes_per_sector);
    }
}

/// The object id of the volume. \[MS-FSCC\] 2.5.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFsObjectIdInformation {
    /// The id.
    pub object_id: Guid,
    /// What the file system adds.
    pub extended_info: [u8; 48],
}

impl FileFsObjectIdInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 64;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            object_id: reader.guid("ObjectId")?,
            extended_info: reader.array("ExtendedInfo")?,
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(&self.object_id.0);
        out.put(&self.extended_info);
    }
}

open_flags! {
    /// What is known about the sectors. \[MS-FSCC\] 2.5.7
    SectorSizeFlags(u32) {
        /// The first sector begins where a physical one does.
        ALIGNED_DEVICE = 0x0000_0001,
        /// The partition begins where a physical sector does.
        PARTITION_ALIGNED_ON_DEVICE = 0x0000_0002,
        /// No cost for seeking.
        NO_SEEK_PENALTY = 0x0000_0004,
        /// The device takes TRIM.
        TRIM_ENABLED = 0x0000_0008,
    }
}

/// Sector sizes. \[MS-FSCC\] 2.5.7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileFsSectorSizeInformation {
    /// Bytes in a logical sector.
    pub logical_bytes_per_sector: u32,
    /// Bytes that are written whole or not at all.
    pub physical_bytes_per_sector_for_atomicity: u32,
    /// Bytes that are best written at once.
    pub physical_bytes_per_sector_for_performance: u32,
    /// Bytes that the file system takes for a physical sector.
    pub effective_physical_bytes_per_sector_for_atomicity: u32,
    /// What is known about the sectors.
    pub flags: SectorSizeFlags,
    /// Bytes from the first physical sector to the first logical one; all ones if not known.
    pub byte_offset_for_sector_alignment: u32,
    /// Bytes from a physical sector to the partition; all ones if not known.
    pub byte_offset_for_partition_alignment: u32,
}

impl FileFsSectorSizeInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 28;

    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure.
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
