//! What QUERY_DIRECTORY lists: one neutral entry, and the form that each class gives it.
//! \[MS-FSCC\] 2.4.8, 2.4.10, 2.4.17, 2.4.20 to 2.4.22, 2.4.33

use alloc::vec::Vec;

use super::FileInfoClass;
use super::chain::ChainWriter;
use super::name::put_name_len;
use crate::aapl::DirectoryAttributes;
use crate::access::FileAttributes;
use crate::cursor::Put;
use crate::posix::PosixAttributes;
use crate::text::Utf16;
use crate::time::FileTime;

/// Where each entry of a list begins.
pub(super) const ALIGNMENT: usize = 8;
/// Bytes of an 8.3 name, with room for 12 characters. \[MS-FSCC\] 2.4.8
pub(super) const SHORT_NAME_LEN: usize = 24;

/// A file in a directory. Each class takes of it what it has a place for; a decoder leaves the
/// rest at its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DirectoryEntry<'a> {
    /// The place in the directory, where the file system has one that lasts; else 0.
    pub file_index: u32,
    /// When the file was created.
    pub created: FileTime,
    /// When it was last read.
    pub accessed: FileTime,
    /// When its data last changed.
    pub written: FileTime,
    /// When its data or attributes last changed.
    pub changed: FileTime,
    /// Bytes in the file.
    pub end_of_file: u64,
    /// Bytes on disk.
    pub allocation_size: u64,
    /// DOS attributes.
    pub attributes: FileAttributes,
    /// Bytes of the list of extended attributes. Where the attributes say REPARSE_POINT, classes
    /// 2, 3, 37 and 38 carry the reparse tag in its place.
    pub ea_size: u32,
    /// What kind of reparse point; 0 for none.
    pub reparse_tag: u32,
    /// The number of the file. In class 100 the inode.
    pub file_id: u64,
    /// The upper half of the 128 bits of class 60.
    pub file_id_high: u64,
    /// The 8.3 name, at most 12 characters; empty where there is none.
    pub short_name: Utf16<'a>,
    /// What Apple's clients asked to find in class 37.
    pub apple: Option<DirectoryAttributes>,
    /// What class 100 tells.
    pub posix: PosixAttributes,
    /// The name.
    pub name: Utf16<'a>,
}

impl FileInfoClass {
    /// Whether the class lists a directory and this library knows its form.
    pub const fn is_directory_class(self) -> bool {
        self.entry_len().is_some()
    }

    /// Bytes of an entry before its name and, in class 100, before its SIDs; a buffer that is
    /// shorter is STATUS_INFO_LENGTH_MISMATCH. \[MS-FSA\] 2.1.5.6.3
    pub const fn entry_len(self) -> Option<usize> {
        match self {
            Self::DIRECTORY => Some(64),
            Self::FULL_DIRECTORY => Some(68),
            Self::ID_FULL_DIRECTORY => Some(80),
            Self::BOTH_DIRECTORY => Some(94),
            Self::ID_BOTH_DIRECTORY => Some(104),
            Self::NAMES => Some(12),
            Self::ID_EXTD_DIRECTORY => Some(88),
            Self::POSIX => Some(88),
            _ => None,
        }
    }

    /// Appends an entry in the form of this class, its NextEntryOffset 0. False, and nothing is
    /// appended, for a class that lists no directory.
    pub fn encode_entry(self, entry: &DirectoryEntry<'_>, out: &mut Vec<u8>) -> bool {
        if !self.is_directory_class() {
            return false;
        }
        out.put_u32(0);
        entry.encode(self, out);
        true
    }
}

impl<'a> DirectoryEntry<'a> {
    /// Appends what follows NextEntryOffset.
    fn encode(&self, class: FileInfoClass, out: &mut Vec<u8>) {
        out.put_u32(self.file_index);
        match class {
            FileInfoClass::NAMES => put_name_len(out, self.name),
            FileInfoClass::POSIX => self.encode_posix(out),
            _ => {
                self.encode_shared(out);
                self.encode_own(class, out);
            }
        }
        out.put(self.name.0);
    }

    /// What all classes but 12 and 100 have.
    fn encode_shared(&self, out: &mut Vec<u8>) {
        self.encode_times(out);
        out.put_u64(self.end_of_file);
        out.put_u64(self.allocation_size);
        out.put_u32(self.attributes.0);
        put_name_len(out, self.name);
    }

    fn encode_times(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u64(self.accessed.0);
        out.put_u64(self.written.0);
        out.put_u64(self.changed.0);
    }

    /// What each of them adds.
    fn encode_own(&self, class: FileInfoClass, out: &mut Vec<u8>) {
        match class {
            FileInfoClass::FULL_DIRECTORY => out.put_u32(self.ea_size_or_tag()),
            FileInfoClass::ID_FULL_DIRECTORY => {
                out.put_u32(self.ea_size_or_tag());
                out.put_u32(0);
                out.put_u64(self.file_id);
            }
            FileInfoClass::BOTH_DIRECTORY => {
                out.put_u32(self.ea_size_or_tag());
                self.encode_short_name(out);
            }
            FileInfoClass::ID_BOTH_DIRECTORY => self.encode_id_both(out),
            FileInfoClass::ID_EXTD_DIRECTORY => {
                out.put_u32(self.ea_size);
                out.put_u32(self.reparse_tag);
                out.put_u64(self.file_id);
                out.put_u64(self.file_id_high);
            }
            _ => {}
        }
    }

    fn encode_id_both(&self, out: &mut Vec<u8>) {
        if let Some(apple) = &self.apple {
            apple.encode(out);
        } else {
            out.put_u32(self.ea_size_or_tag());
            self.encode_short_name(out);
            out.put_u16(0);
        }
        out.put_u64(self.file_id);
    }

    /// The 8.3 name in its 26 bytes; one that is too long is none.
    fn encode_short_name(&self, out: &mut Vec<u8>) {
        let mut field = [0; SHORT_NAME_LEN];
        let mut short_name_len = 0;
        if let Some(place) = field.get_mut(..self.short_name.len()) {
            place.copy_from_slice(self.short_name.0);
            short_name_len = place.len() as u8;
        }
        out.put_u8(short_name_len);
        out.put_u8(0);
        out.put(&field);
    }

    /// What stands in the field EaSize of the classes that have no field for the tag.
    fn ea_size_or_tag(&self) -> u32 {
        if self.attributes.contains(FileAttributes::REPARSE_POINT) {
            self.reparse_tag
        } else {
            self.ea_size
        }
    }

    fn encode_posix(&self, out: &mut Vec<u8>) {
        self.encode_times(out);
        out.put_u64(self.end_of_file);
        out.put_u64(self.allocation_size);
        out.put_u32(self.attributes.0);
        out.put_u64(self.file_id);
        out.put_u32(self.posix.device);
        out.put_u32(0);
        self.posix.create.encode(out);
        put_name_len(out, self.name);
    }
}

/// Writes a list in the form of one class.
#[derive(Clone, Debug)]
pub struct DirectoryWriter {
    class: FileInfoClass,
    chain: ChainWriter,
    count: usize,
}

impl DirectoryWriter {
    /// A list of at most `max_len` bytes. `None` for a class that lists no directory.
    pub fn new(class: FileInfoClass, max_len: usize) -> Option<Self> {
        Self::append_to(Vec::new(), class, max_len)
    }

    /// A list of at most `max_len` bytes after those that `bytes` holds.
    pub fn append_to(bytes: Vec<u8>, class: FileInfoClass, max_len: usize) -> Option<Self> {
        class.is_directory_class().then(|| Self {
            class,
            chain: ChainWriter::new(bytes, ALIGNMENT, max_len),
            count: 0,
        })
    }

    /// Appends an entry; false where it does not fit.
    pub fn push(&mut self, entry: &DirectoryEntry<'_>) -> bool {
        let class = self.class;
        let fits = self.chain.push(|out| entry.encode(class, out));
        self.count += usize::from(fits);
        fits
    }

    /// Bytes of the list so far.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Entries in the list so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether there is no entry yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes, those from before with the list after them.
    pub fn finish(self) -> Vec<u8> {
        self.chain.finish()
    }
}
