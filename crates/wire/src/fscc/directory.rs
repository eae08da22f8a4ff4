//! Entries of a directory listing: one common structure, and its encoding in each information class
//! of QUERY_DIRECTORY. \[MS-FSCC\] 2.4.8, 2.4.10, 2.4.17, 2.4.20 to 2.4.22, 2.4.33

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

/// Alignment of the entries in bytes.
pub(super) const ALIGNMENT: usize = 8;
/// Length of the field for an 8.3 name in bytes: 12 characters fit. \[MS-FSCC\] 2.4.8
pub(super) const SHORT_NAME_LEN: usize = 24;

/// An entry of a directory listing: the fields of all information classes of QUERY_DIRECTORY. Each
/// class encodes only some of the fields; a decoder leaves the others at their defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DirectoryEntry<'a> {
    /// Position of the entry in the directory; 0 when the file system has no stable positions.
    pub file_index: u32,
    /// Time of the creation of the file (CreationTime).
    pub created: FileTime,
    /// Time of the last read of the file (LastAccessTime).
    pub accessed: FileTime,
    /// Time of the last write to the file (LastWriteTime).
    pub written: FileTime,
    /// Time of the last change of data or attributes (ChangeTime).
    pub changed: FileTime,
    /// Length of the file in bytes (EndOfFile).
    pub end_of_file: u64,
    /// Space allocated to the file, in bytes (AllocationSize).
    pub allocation_size: u64,
    /// DOS attributes of the file, such as read-only or hidden.
    pub attributes: FileAttributes,
    /// Length of the extended attributes of the file in bytes. For a reparse point, classes 2, 3,
    /// 37 and 38 carry the reparse tag in place of this value.
    pub ea_size: u32,
    /// Reparse tag, which is the type of the file's reparse point; 0 for a file without one.
    pub reparse_tag: u32,
    /// 64-bit identifier of the file, unique on its volume; in class 100 the inode number; in class
    /// 60 the lower half of the identifier.
    pub file_id: u64,
    /// Upper half of the 128-bit identifier of the file. Only classes 60, 80 and 81 have it.
    pub file_id_high: u64,
    /// The 8.3 name of the file, at most 12 characters; empty when the file has none.
    pub short_name: Utf16<'a>,
    /// The attributes for macOS that replace some fields in class 37; `None` unless client and
    /// server negotiated the AAPL extension.
    pub apple: Option<DirectoryAttributes>,
    /// The Unix attributes that class 100 (SMB3 POSIX extensions) has; default in all other
    /// classes.
    pub posix: PosixAttributes,
    /// Name of the file, without a path.
    pub name: Utf16<'a>,
}

impl FileInfoClass {
    /// Returns true if QUERY_DIRECTORY can list a directory in this information class and this
    /// crate supports that.
    pub const fn is_directory_class(self) -> bool {
        self.entry_len().is_some()
    }

    /// Returns the minimum length in bytes of a directory entry in this class: without its name
    /// and, in class 100, without its SIDs. `None` for a class that lists no directory. A server
    /// fails a query with a shorter buffer with STATUS_INFO_LENGTH_MISMATCH. \[MS-FSA\] 2.1.5.6.3
    pub const fn entry_len(self) -> Option<usize> {
        match self {
            Self::DIRECTORY => Some(64),
            Self::FULL_DIRECTORY => Some(68),
            Self::ID_FULL_DIRECTORY => Some(80),
            Self::BOTH_DIRECTORY => Some(94),
            Self::ID_BOTH_DIRECTORY => Some(104),
            Self::NAMES => Some(12),
            Self::ID_EXTD_DIRECTORY => Some(88),
            Self::ID_64_EXTD_DIRECTORY => Some(80),
            Self::ID_64_EXTD_BOTH_DIRECTORY => Some(106),
            Self::ID_ALL_EXTD_DIRECTORY => Some(96),
            Self::ID_ALL_EXTD_BOTH_DIRECTORY => Some(122),
            Self::POSIX => Some(88),
            _ => None,
        }
    }

    /// Whether an entry of this class with a reparse tag has a 64-bit identifier.
    pub(super) const fn has_id_64(self) -> bool {
        matches!(
            self,
            Self::ID_64_EXTD_DIRECTORY
                | Self::ID_64_EXTD_BOTH_DIRECTORY
                | Self::ID_ALL_EXTD_DIRECTORY
                | Self::ID_ALL_EXTD_BOTH_DIRECTORY
        )
    }

    /// Whether an entry of this class with a reparse tag has a 128-bit identifier.
    pub(super) const fn has_id_128(self) -> bool {
        matches!(
            self,
            Self::ID_EXTD_DIRECTORY
                | Self::ID_ALL_EXTD_DIRECTORY
                | Self::ID_ALL_EXTD_BOTH_DIRECTORY
        )
    }

    /// Whether an entry of this class with a reparse tag has an 8.3 name, directly before its name.
    pub(super) const fn has_short_name_at_end(self) -> bool {
        matches!(
            self,
            Self::ID_64_EXTD_BOTH_DIRECTORY | Self::ID_ALL_EXTD_BOTH_DIRECTORY
        )
    }

    /// Appends a directory entry in the encoding of this information class, with NextEntryOffset 0,
    /// to `out` and returns true. Returns false, without a change, for a class that lists no
    /// directory.
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
    /// Appends the encoded entry without its NextEntryOffset.
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

    /// Appends the fields of all classes except 12 and 100.
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

    /// Appends the further fields of the class.
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
            FileInfoClass::ID_EXTD_DIRECTORY
            | FileInfoClass::ID_64_EXTD_DIRECTORY
            | FileInfoClass::ID_64_EXTD_BOTH_DIRECTORY
            | FileInfoClass::ID_ALL_EXTD_DIRECTORY
            | FileInfoClass::ID_ALL_EXTD_BOTH_DIRECTORY => self.encode_extended(class, out),
            _ => {}
        }
    }

    /// Appends the further fields of the classes with a field for the reparse tag.
    fn encode_extended(&self, class: FileInfoClass, out: &mut Vec<u8>) {
        out.put_u32(self.ea_size);
        out.put_u32(self.reparse_tag);
        if class.has_id_64() {
            out.put_u64(self.file_id);
        }
        if class.has_id_128() {
            out.put_u64(self.file_id);
            out.put_u64(self.file_id_high);
        }
        if class.has_short_name_at_end() {
            self.encode_short_name(out);
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

    /// Appends the 26 bytes of the 8.3 name. A name that is too long is omitted.
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

    /// The value of EaSize in the classes without a field for the reparse tag.
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

/// An encoder of a list of directory entries in one information class, for a QUERY_DIRECTORY
/// response.
#[derive(Clone, Debug)]
pub struct DirectoryWriter {
    class: FileInfoClass,
    chain: ChainWriter,
    count: usize,
}

impl DirectoryWriter {
    /// Makes a writer of a list of at most `max_len` bytes. `None` for a class that lists no
    /// directory.
    pub fn new(class: FileInfoClass, max_len: usize) -> Option<Self> {
        Self::append_to(Vec::new(), class, max_len)
    }

    /// Makes a writer that appends a list of at most `max_len` bytes to `bytes`. `None` for a class
    /// that lists no directory.
    pub fn append_to(bytes: Vec<u8>, class: FileInfoClass, max_len: usize) -> Option<Self> {
        class.is_directory_class().then(|| Self {
            class,
            chain: ChainWriter::new(bytes, ALIGNMENT, max_len),
            count: 0,
        })
    }

    /// Appends a directory entry to the list and returns true. Returns false, without a change, if
    /// the list would exceed its maximum length.
    pub fn push(&mut self, entry: &DirectoryEntry<'_>) -> bool {
        let class = self.class;
        let fits = self.chain.push(|out| entry.encode(class, out));
        self.count += usize::from(fits);
        fits
    }

    /// Returns the length of the list so far, in bytes.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Returns the number of entries in the list so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns true if the list has no entries so far.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the bytes that the writer started with (see `append_to`), followed by the encoded
    /// list of entries.
    pub fn finish(self) -> Vec<u8> {
        self.chain.finish()
    }
}
