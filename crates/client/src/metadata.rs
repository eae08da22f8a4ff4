//! Metadata of files and volumes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proto::client::request::Attributes;
use wire::FileTime;
use wire::access::FileAttributes;
use wire::fscc::{DirectoryEntry, FileBasicInformation, FileStandardInformation};
use wire::posix::{FilePosixInformation, PosixAttributes};
use wire::reparse::ReparseTag;

use crate::unix_metadata::UnixMetadata;

/// Metadata of a file or directory on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// Length of the file in bytes.
    pub size: u64,
    /// Disk space that is allocated for the file, in bytes.
    pub allocation: u64,
    /// Time at which the file was created.
    pub created: SystemTime,
    /// Time of the last access to the data of the file.
    pub accessed: SystemTime,
    /// Time of the last write to the data of the file.
    pub written: SystemTime,
    /// Time of the last change of data or metadata.
    pub changed: SystemTime,
    /// DOS attributes, such as READONLY, HIDDEN and DIRECTORY.
    pub attributes: FileAttributes,
    /// Number of the file, unique on its volume. `None` if the server does not report one, or if
    /// the query did not ask for it.
    pub file_id: Option<u64>,
    /// Tag of the reparse point: the kind of its data. `NONE` for a file without one. `None` if the
    /// file has one and the query did not ask for its tag.
    pub reparse_tag: Option<ReparseTag>,
    /// Number of hard links (names) of the file. `None` if the server does not report it, or if the
    /// query did not ask for it: listings do so only with the SMB3 POSIX extensions.
    pub links: Option<u32>,
    /// Mode, owner, group and number of links of Unix. `None` unless the query uses the
    /// [SMB3 POSIX extensions](crate::Share::posix_metadata).
    pub unix: Option<UnixMetadata>,
}

/// The bit of a tag that says that the file stands for another name (name surrogate): a symbolic
/// link or a mount point. \[MS-FSCC\] 2.1.2.1
const NAME_SURROGATE: u32 = 0x2000_0000;

impl Metadata {
    /// Returns whether the attribute DIRECTORY is set: the object is a directory.
    pub fn is_dir(&self) -> bool {
        self.attributes.contains(FileAttributes::DIRECTORY)
    }

    /// Returns whether the object is a link to another name: a symbolic link, a mount point, or a
    /// reparse point with the tag NFS. A file with another reparse point is not a link, such as one
    /// with deduplicated data or in cloud storage. If the tag is not known, every reparse point
    /// counts as a link.
    pub fn is_link(&self) -> bool {
        let is_link = |tag: ReparseTag| tag.0 & NAME_SURROGATE != 0 || tag == ReparseTag::NFS;
        self.is_reparse_point() && self.reparse_tag.is_none_or(is_link)
    }

    /// Returns whether the object is a special file of Unix: a device, FIFO or socket of the
    /// Windows subsystem for Linux.
    pub fn is_special(&self) -> bool {
        let special = [
            ReparseTag::AF_UNIX,
            ReparseTag::LX_FIFO,
            ReparseTag::LX_CHR,
            ReparseTag::LX_BLK,
        ];
        let is_special = |tag: ReparseTag| special.contains(&tag);
        self.is_reparse_point() && self.reparse_tag.is_some_and(is_special)
    }

    /// Returns whether the attribute REPARSE_POINT is set: the object has a reparse point.
    pub fn is_reparse_point(&self) -> bool {
        self.attributes.contains(FileAttributes::REPARSE_POINT)
    }

    /// Whether the object has a reparse point with a tag that no response has shown.
    pub(crate) fn has_unknown_tag(&self) -> bool {
        self.reparse_tag.is_none()
    }

    pub(crate) fn set_tag(&mut self, tag: u32) {
        if self.is_reparse_point() && tag != 0 {
            self.reparse_tag = Some(ReparseTag(tag));
        }
    }

    pub(crate) fn from_attributes(attributes: &Attributes, file_id: Option<u64>) -> Self {
        Self {
            size: attributes.size,
            allocation: attributes.allocation,
            created: system_time(attributes.created),
            accessed: system_time(attributes.accessed),
            written: system_time(attributes.written),
            changed: system_time(attributes.changed),
            attributes: attributes.attributes,
            file_id: file_id.filter(|id| *id != 0),
            reparse_tag: match attributes
                .attributes
                .contains(FileAttributes::REPARSE_POINT)
            {
                true => None,
                false => Some(ReparseTag::NONE),
            },
            links: None,
            unix: None,
        }
    }

    /// Takes the number of links from a response. A server without hard links refuses the query.
    pub(crate) fn set_links(&mut self, standard: Option<FileStandardInformation>) {
        self.links = standard.map(|standard| standard.number_of_links);
    }

    pub(crate) fn with_unix(mut self, attributes: &PosixAttributes) -> Self {
        self.unix = Some(UnixMetadata::new(attributes));
        self.links = Some(attributes.create.number_of_links);
        self
    }

    pub(crate) fn from_posix(info: &FilePosixInformation) -> Self {
        let attributes = Attributes {
            created: info.created,
            accessed: info.accessed,
            written: info.written,
            changed: info.changed,
            allocation: info.allocation_size,
            size: info.end_of_file,
            attributes: info.attributes,
        };
        let mut metadata = Self::from_attributes(&attributes, Some(info.inode));
        metadata.set_tag(info.posix.create.reparse_tag);
        metadata.with_unix(&info.posix)
    }

    pub(crate) fn from_entry(entry: &DirectoryEntry<'_>) -> Self {
        let attributes = Attributes {
            created: entry.created,
            accessed: entry.accessed,
            written: entry.written,
            changed: entry.changed,
            allocation: entry.allocation_size,
            size: entry.end_of_file,
            attributes: entry.attributes,
        };
        let mut metadata = Self::from_attributes(&attributes, Some(entry.file_id));
        metadata.set_tag(entry.reparse_tag);
        metadata
    }
}

/// Changes to the timestamps and attributes of a file or directory. A field that is `None` leaves
/// the value of the file unchanged. The default changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// New time of creation; `None` leaves it unchanged.
    pub created: Option<SystemTime>,
    /// New time of the last access; `None` leaves it unchanged.
    pub accessed: Option<SystemTime>,
    /// New time of the last write; `None` leaves it unchanged.
    pub written: Option<SystemTime>,
    /// New time of the last change of data or metadata; `None` leaves it unchanged.
    pub changed: Option<SystemTime>,
    /// New DOS attributes in place of all present ones; `None` leaves them unchanged.
    pub attributes: Option<FileAttributes>,
}

/// Each method sets the field of its name.
impl Changes {
    /// Sets the new [time of creation](field@Self::created); `None` leaves it unchanged.
    #[must_use]
    pub fn created(mut self, created: Option<SystemTime>) -> Self {
        self.created = created;
        self
    }

    /// Sets the new [time of the last access](field@Self::accessed); `None` leaves it unchanged.
    #[must_use]
    pub fn accessed(mut self, accessed: Option<SystemTime>) -> Self {
        self.accessed = accessed;
        self
    }

    /// Sets the new [time of the last write](field@Self::written); `None` leaves it unchanged.
    #[must_use]
    pub fn written(mut self, written: Option<SystemTime>) -> Self {
        self.written = written;
        self
    }

    /// Sets the new [time of the last change](field@Self::changed) of data or metadata; `None`
    /// leaves it unchanged.
    #[must_use]
    pub fn changed(mut self, changed: Option<SystemTime>) -> Self {
        self.changed = changed;
        self
    }

    /// Sets the new [DOS attributes](field@Self::attributes); `None` leaves the present ones
    /// unchanged.
    #[must_use]
    pub fn attributes(mut self, attributes: Option<FileAttributes>) -> Self {
        self.attributes = attributes;
        self
    }
}

impl Changes {
    /// These changes with `later` ones after them.
    pub(crate) fn then(self, later: &Self) -> Self {
        Self {
            created: later.created.or(self.created),
            accessed: later.accessed.or(self.accessed),
            written: later.written.or(self.written),
            changed: later.changed.or(self.changed),
            attributes: later.attributes.or(self.attributes),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let time = |time: Option<SystemTime>| time.map_or(FileTime::OMIT, file_time);
        // No attribute at all is NORMAL: 0 would leave them as they are. [MS-FSCC] 2.4.7
        let attributes = self
            .attributes
            .map(|attributes| match attributes.is_empty() {
                true => FileAttributes::NORMAL,
                false => attributes,
            });
        let basic = FileBasicInformation {
            created: time(self.created),
            accessed: time(self.accessed),
            written: time(self.written),
            changed: time(self.changed),
            attributes: attributes.unwrap_or_default(),
        };
        let mut bytes = Vec::new();
        basic.encode(&mut bytes);
        bytes
    }
}

/// Size, free space and names of the volume that a share is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Volume {
    /// Size of the volume in bytes as the server reports it to this user; a quota of the user may
    /// lower it.
    pub total: u64,
    /// Free space in bytes that the user may fill, within the quota of the user.
    pub available: u64,
    /// Free space of the volume in bytes, without regard to quotas.
    pub free: u64,
    /// Length in bytes of an allocation unit: the file system allocates disk space in multiples of
    /// it.
    pub block: u64,
    /// Serial number of the volume, as the server reports it.
    pub serial: u32,
    /// Label of the volume; empty if it has none.
    pub label: String,
    /// Name of the file system, for example `NTFS`.
    pub filesystem: String,
    /// Whether the server keeps access control lists of files (FILE_PERSISTENT_ACLS). Without them,
    /// servers report lists that mean nothing, and may ignore changes. \[MS-FSCC\] 2.5.1
    pub keeps_access_lists: bool,
}

/// Converts a time of the protocol to a time of the system.
pub(crate) fn system_time(time: FileTime) -> SystemTime {
    let (seconds, nanoseconds) = time.to_unix();
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = match seconds >= 0 {
        true => UNIX_EPOCH.checked_add(whole),
        false => UNIX_EPOCH.checked_sub(whole),
    };
    start
        .and_then(|time| time.checked_add(Duration::from_nanos(u64::from(nanoseconds))))
        .unwrap_or(UNIX_EPOCH)
}

/// Converts a time of the system to a time of the protocol.
pub(crate) fn file_time(time: SystemTime) -> FileTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => {
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            FileTime::from_unix(seconds, since.subsec_nanos())
        }
        Err(before) => {
            let before = before.duration();
            let nanoseconds = before.subsec_nanos();
            let seconds = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match nanoseconds {
                0 => FileTime::from_unix(-seconds, 0),
                _ => FileTime::from_unix(-seconds - 1, 1_000_000_000 - nanoseconds),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_wire() {
        for (seconds, nanoseconds) in [(0, 0), (1_700_000_000, 123_456_700), (5, 900)] {
            let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
            assert_eq!(system_time(file_time(time)), time);
        }
        let before = UNIX_EPOCH - Duration::new(100, 300);
        assert_eq!(system_time(file_time(before)), before);
    }

    #[test]
    fn the_tag_decides_whether_a_reparse_point_is_a_link() {
        let metadata = |tag: u32| {
            let attributes = Attributes {
                attributes: FileAttributes::REPARSE_POINT,
                ..Attributes::default()
            };
            let mut metadata = Metadata::from_attributes(&attributes, None);
            metadata.set_tag(tag);
            metadata
        };
        for tag in [0, 0xA000_000C, 0xA000_0003, 0xA000_001D, 0x8000_0014] {
            assert!(metadata(tag).is_link(), "{tag:#x}");
        }
        // Deduplicated, in the cloud, compressed by WOF, and a FIFO.
        for tag in [0x8000_0013, 0x9000_101A, 0x8000_0017, 0x8000_0024] {
            assert!(!metadata(tag).is_link(), "{tag:#x}");
        }
        assert!(metadata(0x8000_0024).is_special() && !metadata(0x8000_0013).is_special());
        let plain = Metadata::from_attributes(&Attributes::default(), None);
        assert!(!plain.is_link() && plain.reparse_tag == Some(ReparseTag::NONE));
    }

    #[test]
    fn no_attributes_are_normal_ones() {
        let changes = Changes {
            attributes: Some(FileAttributes::NONE),
            ..Changes::default()
        };
        let basic = FileBasicInformation::decode(&changes.encode()).expect("encoded here");
        assert_eq!(basic.attributes, FileAttributes::NORMAL);
        assert_eq!(basic.written, FileTime::OMIT);
    }
}
