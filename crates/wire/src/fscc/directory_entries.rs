//! Decodes the lists that [`super::DirectoryWriter`] encodes.

use super::FileInfoClass;
use super::chain::Chain;
use super::directory::{ALIGNMENT, DirectoryEntry, SHORT_NAME_LEN};
use super::name::{name_of, read_name};
use crate::aapl::DirectoryAttributes;
use crate::access::FileAttributes;
use crate::cursor::Reader;
use crate::error::DecodeError;
use crate::posix::FilePosixInformation;
use crate::text::Utf16;
use crate::time::FileTime;

/// Iterates over the entries of a directory listing in one information class, from a
/// QUERY_DIRECTORY response. A malformed entry gives an error.
#[derive(Clone, Debug)]
pub struct DirectoryEntries<'a> {
    class: FileInfoClass,
    chain: Chain<'a>,
    is_apple: bool,
}

impl<'a> DirectoryEntries<'a> {
    /// Makes the iterator over the encoded entries in `bytes`. `None` for a class that lists no
    /// directory.
    pub fn new(class: FileInfoClass, bytes: &'a [u8]) -> Option<Self> {
        class.is_directory_class().then(|| Self {
            class,
            chain: Chain::new(bytes, "directory entry", ALIGNMENT),
            is_apple: false,
        })
    }

    /// Returns an iterator that expects [`DirectoryAttributes`], Apple's fields, in entries of
    /// class 37. Call it when both peers have negotiated these fields with the AAPL context.
    pub fn with_apple(self) -> Self {
        Self {
            is_apple: true,
            ..self
        }
    }
}

impl<'a> Iterator for DirectoryEntries<'a> {
    type Item = Result<DirectoryEntry<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.chain.next()?;
        let (class, is_apple) = (self.class, self.is_apple);
        Some(bytes.and_then(|bytes| DirectoryEntry::decode(class, is_apple, bytes)))
    }
}

impl<'a> DirectoryEntry<'a> {
    /// Decodes an entry without its NextEntryOffset.
    fn decode(class: FileInfoClass, is_apple: bool, bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut entry = Self {
            file_index: reader.u32("FileIndex")?,
            ..Self::default()
        };
        match class {
            FileInfoClass::NAMES => entry.name = read_name(&mut reader, "FileName")?,
            FileInfoClass::POSIX => entry.read_posix(&mut reader)?,
            _ => {
                let name_len = entry.read_shared(&mut reader)?;
                entry.read_own(class, is_apple, &mut reader)?;
                entry.name = name_of(&mut reader, "FileName", name_len)?;
            }
        }
        Ok(entry)
    }

    /// Reads the fields of all classes except 12 and 100. Returns the length of the name in bytes.
    fn read_shared(&mut self, reader: &mut Reader<'a>) -> Result<u32, DecodeError> {
        self.created = FileTime(reader.u64("CreationTime")?);
        self.accessed = FileTime(reader.u64("LastAccessTime")?);
        self.written = FileTime(reader.u64("LastWriteTime")?);
        self.changed = FileTime(reader.u64("ChangeTime")?);
        self.end_of_file = reader.u64("EndOfFile")?;
        self.allocation_size = reader.u64("AllocationSize")?;
        self.attributes = FileAttributes(reader.u32("FileAttributes")?);
        reader.u32("FileNameLength")
    }

    /// Reads the further fields of the class.
    fn read_own(
        &mut self,
        class: FileInfoClass,
        is_apple: bool,
        reader: &mut Reader<'a>,
    ) -> Result<(), DecodeError> {
        match class {
            FileInfoClass::FULL_DIRECTORY => self.read_ea_size_or_tag(reader)?,
            FileInfoClass::ID_FULL_DIRECTORY => {
                self.read_ea_size_or_tag(reader)?;
                reader.skip("Reserved", 4)?;
                self.file_id = reader.u64("FileId")?;
            }
            FileInfoClass::BOTH_DIRECTORY => {
                self.read_ea_size_or_tag(reader)?;
                self.short_name = read_short_name(reader)?;
            }
            FileInfoClass::ID_BOTH_DIRECTORY => self.read_id_both(is_apple, reader)?,
            FileInfoClass::ID_EXTD_DIRECTORY
            | FileInfoClass::ID_64_EXTD_DIRECTORY
            | FileInfoClass::ID_64_EXTD_BOTH_DIRECTORY
            | FileInfoClass::ID_ALL_EXTD_DIRECTORY
            | FileInfoClass::ID_ALL_EXTD_BOTH_DIRECTORY => self.read_extended(class, reader)?,
            _ => {}
        }
        Ok(())
    }

    /// Reads the further fields of the classes with a field for the reparse tag.
    fn read_extended(
        &mut self,
        class: FileInfoClass,
        reader: &mut Reader<'a>,
    ) -> Result<(), DecodeError> {
        self.ea_size = reader.u32("EaSize")?;
        self.reparse_tag = reader.u32("ReparsePointTag")?;
        if class.has_id_64() {
            self.file_id = reader.u64("FileId")?;
        }
        if class.has_id_128() {
            self.file_id = reader.u64("FileId")?;
            self.file_id_high = reader.u64("FileId")?;
        }
        if class.has_short_name_at_end() {
            self.short_name = read_short_name(reader)?;
        }
        Ok(())
    }

    fn read_id_both(&mut self, is_apple: bool, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        if is_apple {
            self.apple = Some(DirectoryAttributes::read(reader)?);
        } else {
            self.read_ea_size_or_tag(reader)?;
            self.short_name = read_short_name(reader)?;
            reader.skip("Reserved2", 2)?;
        }
        self.file_id = reader.u64("FileId")?;
        Ok(())
    }

    fn read_ea_size_or_tag(&mut self, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        let value = reader.u32("EaSize")?;
        if self.attributes.contains(FileAttributes::REPARSE_POINT) {
            self.reparse_tag = value;
        } else {
            self.ea_size = value;
        }
        Ok(())
    }

    fn read_posix(&mut self, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        let FilePosixInformation {
            created,
            accessed,
            written,
            changed,
            end_of_file,
            allocation_size,
            attributes,
            inode,
            posix,
        } = FilePosixInformation::read(reader)?;
        *self = Self {
            file_index: self.file_index,
            created,
            accessed,
            written,
            changed,
            end_of_file,
            allocation_size,
            attributes,
            reparse_tag: posix.create.reparse_tag,
            file_id: inode,
            posix,
            name: read_name(reader, "FileName")?,
            ..Self::default()
        };
        Ok(())
    }
}

/// Reads the 26 bytes of an 8.3 name.
fn read_short_name<'a>(reader: &mut Reader<'a>) -> Result<Utf16<'a>, DecodeError> {
    let short_name_len = reader.u8("ShortNameLength")?;
    reader.skip("Reserved", 1)?;
    let field = reader.bytes("ShortName", SHORT_NAME_LEN)?;
    let name = field.get(..usize::from(short_name_len));
    name.map(Utf16).ok_or(DecodeError::Invalid {
        field: "ShortNameLength",
        value: u64::from(short_name_len),
    })
}
