//! Information classes with a single value.

use alloc::vec::Vec;

use crate::access::AccessMask;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;

/// Declares a structure of one field: its type, its integer type on the wire, and the conversions
/// between them.
macro_rules! single {
    ($(#[$meta:meta])* $name:ident {
        $(#[$item:meta])* $field:ident: $type:ty, $label:literal,
        $int:ident, $put:ident, $from:expr, $to:expr
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name {
            $(#[$item])*
            pub $field: $type,
        }

        impl $name {
            /// Length of the encoded structure, an integer, in bytes.
            pub const LEN: usize = size_of::<$int>();

            /// Decodes this information class, an integer of [`Self::LEN`] bytes, at the start of
            /// `bytes`. Ignores later bytes. Fails when `bytes` is shorter.
            pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
                Self::read(&mut Reader::new(bytes))
            }

            pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let $field = $from(reader.$int($label)?);
                Ok(Self { $field })
            }

            /// Appends the encoded structure to `out`.
            pub fn encode(&self, out: &mut Vec<u8>) {
                out.$put($to(self.$field));
            }
        }
    };
}

/// The identity function, for fields without a conversion.
fn same<T>(value: T) -> T {
    value
}

single! {
    /// 64-bit identifier of a file, equal to the identifier in a directory listing: the information
    /// class INTERNAL. \[MS-FSCC\] 2.4.27
    FileInternalInformation {
        /// Identifier of the file, unique on the volume.
        index_number: u64, "IndexNumber", u64, put_u64, same, same
    }
}

single! {
    /// Length of the extended attributes of a file: the information class EA. \[MS-FSCC\] 2.4.13
    FileEaInformation {
        /// Length in bytes of the file's extended attributes, as a FILE_FULL_EA_INFORMATION list; 0
        /// for none.
        ea_size: u32, "EaSize", u32, put_u32, same, same
    }
}

single! {
    /// Access rights of an open: the information class ACCESS. \[MS-FSCC\] 2.4.1
    FileAccessInformation {
        /// The access rights that the server granted to the open.
        access_flags: AccessMask, "AccessFlags", u32, put_u32, AccessMask, |mask: AccessMask| mask.0
    }
}

single! {
    /// A byte offset that the server stores with an open: the information class POSITION.
    /// \[MS-FSCC\] 2.4.40
    FilePositionInformation {
        /// Offset in bytes from the start of the file. A server only stores it; READ and WRITE do
        /// not use it.
        current_byte_offset: u64, "CurrentByteOffset", u64, put_u64, same, same
    }
}

open_flags! {
    /// I/O mode of an open: a subset of the CreateOptions. \[MS-FSCC\] 2.4.31
    ModeFlags(u32) {
        /// Every write completes only when the data are on stable storage.
        WRITE_THROUGH = 0x0000_0002,
        /// A hint: the application reads the file from start to end.
        SEQUENTIAL_ONLY = 0x0000_0004,
        /// The server does not cache the data of the file.
        NO_INTERMEDIATE_BUFFERING = 0x0000_0008,
        /// Local I/O mode of the client: waits can be alerted. Servers ignore it.
        SYNCHRONOUS_IO_ALERT = 0x0000_0010,
        /// Local I/O mode of the client: waits cannot be alerted. Servers ignore it.
        SYNCHRONOUS_IO_NONALERT = 0x0000_0020,
        /// The server deletes the file when the open closes.
        DELETE_ON_CLOSE = 0x0000_1000,
    }
}

single! {
    /// I/O mode of an open: the information class MODE. \[MS-FSCC\] 2.4.31
    FileModeInformation {
        /// The mode bits of the open, a subset of its create options.
        mode: ModeFlags, "Mode", u32, put_u32, ModeFlags, |mode: ModeFlags| mode.0
    }
}

single! {
    /// Alignment of buffers in memory that the device requires: the information class ALIGNMENT.
    /// \[MS-FSCC\] 2.4.3
    FileAlignmentInformation {
        /// 0 for no alignment, else the alignment in bytes less one: a power of two less one.
        alignment_requirement: u32, "AlignmentRequirement", u32, put_u32, same, same
    }
}

single! {
    /// The information class ALLOCATION of SET_INFO: the client sets the space allocated to the
    /// file. A value below the length of the file truncates it. \[MS-FSCC\] 2.4.4
    FileAllocationInformation {
        /// Space allocated to the file, in bytes; a signed integer on the wire.
        allocation_size: u64, "AllocationSize", u64, put_u64, same, same
    }
}

single! {
    /// The information class END_OF_FILE of SET_INFO: the client sets the length of the file.
    /// \[MS-FSCC\] 2.4.14
    FileEndOfFileInformation {
        /// Length of the file in bytes; a signed integer on the wire.
        end_of_file: u64, "EndOfFile", u64, put_u64, same, same
    }
}

single! {
    /// The information class VALID_DATA_LENGTH of SET_INFO: the client sets the length of the
    /// written part of the file. \[MS-FSCC\] 2.4.50
    FileValidDataLengthInformation {
        /// Valid data length in bytes; a signed integer on the wire.
        valid_data_length: u64, "ValidDataLength", u64, put_u64, same, same
    }
}

single! {
    /// The information class DISPOSITION of SET_INFO: the client marks the file for deletion at its
    /// last close, or clears the mark. \[MS-FSCC\] 2.4.11
    FileDispositionInformation {
        /// Whether the file system deletes the file when its last open closes.
        is_delete_pending: bool, "DeletePending", u8, put_u8, |byte| byte != 0, u8::from
    }
}

open_flags! {
    /// Flags of a deletion by the information class DISPOSITION_EX. \[MS-FSCC\] 2.4.12
    DispositionFlags(u32) {
        /// Delete the file; without this flag, cancel a pending deletion.
        DELETE = 0x0000_0001,
        /// Remove the name when the requesting open closes, even while other opens exist. Without
        /// the flag, the name stays until the last open closes.
        POSIX_SEMANTICS = 0x0000_0002,
        /// Fail if a running program has mapped the file as an image.
        FORCE_IMAGE_SECTION_CHECK = 0x0000_0004,
        /// Set or clear the DELETE_ON_CLOSE option of the open.
        ON_CLOSE = 0x0000_0008,
        /// Delete the file even if it is read-only.
        IGNORE_READONLY_ATTRIBUTE = 0x0000_0010,
    }
}

single! {
    /// The information class DISPOSITION_EX of SET_INFO: the client deletes the file, with flags.
    /// \[MS-FSCC\] 2.4.12
    FileDispositionInformationEx {
        /// Whether and how the server deletes the file.
        flags: DispositionFlags, "Flags", u32, put_u32,
        DispositionFlags, |flags: DispositionFlags| flags.0
    }
}

open_flags! {
    /// Flags of the information class CASE_SENSITIVE.
    CaseSensitiveFlags(u32) {
        /// Names in the directory are compared with regard to case.
        CASE_SENSITIVE_DIRECTORY = 0x0000_0001,
    }
}

single! {
    /// Whether names in a directory are compared with regard to case: the information class
    /// CASE_SENSITIVE (FILE_CASE_SENSITIVE_INFORMATION).
    FileCaseSensitiveInformation {
        /// Flags of the directory.
        flags: CaseSensitiveFlags, "Flags", u32, put_u32,
        CaseSensitiveFlags, |flags: CaseSensitiveFlags| flags.0
    }
}
