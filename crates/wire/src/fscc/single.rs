//! Information classes that hold one value.

use alloc::vec::Vec;

use crate::access::AccessMask;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;

/// Declares a structure of one field: its type, its integer on the wire, and how both meet.
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
            /// Bytes on the wire.
            pub const LEN: usize = size_of::<$int>();

            /// Reads the structure at the start of `bytes`.
            pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
                Self::read(&mut Reader::new(bytes))
            }

            pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let $field = $from(reader.$int($label)?);
                Ok(Self { $field })
            }

            /// Appends the structure.
            pub fn encode(&self, out: &mut Vec<u8>) {
                out.$put($to(self.$field));
            }
        }
    };
}

/// The value as it is.
fn same<T>(value: T) -> T {
    value
}

single! {
    /// The number of the file, the same as in a listing with ids. \[MS-FSCC\] 2.4.27
    FileInternalInformation {
        /// Unique on the volume.
        index_number: u64, "IndexNumber", u64, put_u64, same, same
    }
}

single! {
    /// The size of the extended attributes. \[MS-FSCC\] 2.4.13
    FileEaInformation {
        /// Bytes of the FILE_FULL_EA_INFORMATION list; 0 where there is none.
        ea_size: u32, "EaSize", u32, put_u32, same, same
    }
}

single! {
    /// The access that the open has. \[MS-FSCC\] 2.4.1
    FileAccessInformation {
        /// The rights.
        access_flags: AccessMask, "AccessFlags", u32, put_u32, AccessMask, |mask: AccessMask| mask.0
    }
}

single! {
    /// The position of the open. \[MS-FSCC\] 2.4.40
    FilePositionInformation {
        /// Bytes from the start of the file. A server only keeps it.
        current_byte_offset: u64, "CurrentByteOffset", u64, put_u64, same, same
    }
}

open_flags! {
    /// How an open does its I/O: some of the CreateOptions. \[MS-FSCC\] 2.4.31
    ModeFlags(u32) {
        /// A write is on disk when it is answered.
        WRITE_THROUGH = 0x0000_0002,
        /// Read from start to end.
        SEQUENTIAL_ONLY = 0x0000_0004,
        /// No cache in between.
        NO_INTERMEDIATE_BUFFERING = 0x0000_0008,
        /// A local matter of the client.
        SYNCHRONOUS_IO_ALERT = 0x0000_0010,
        /// A local matter of the client.
        SYNCHRONOUS_IO_NONALERT = 0x0000_0020,
        /// Goes away with this open.
        DELETE_ON_CLOSE = 0x0000_1000,
    }
}

single! {
    /// How the open does its I/O. \[MS-FSCC\] 2.4.31
    FileModeInformation {
        /// The bits.
        mode: ModeFlags, "Mode", u32, put_u32, ModeFlags, |mode: ModeFlags| mode.0
    }
}

single! {
    /// The alignment that the device asks for. \[MS-FSCC\] 2.4.3
    FileAlignmentInformation {
        /// 0 for bytes, else a power of two less one.
        alignment_requirement: u32, "AlignmentRequirement", u32, put_u32, same, same
    }
}

single! {
    /// Set: the size on disk. Less than the size of the file truncates it. \[MS-FSCC\] 2.4.4
    FileAllocationInformation {
        /// Bytes; a signed number on the wire.
        allocation_size: u64, "AllocationSize", u64, put_u64, same, same
    }
}

single! {
    /// Set: the size of the file. \[MS-FSCC\] 2.4.14
    FileEndOfFileInformation {
        /// Bytes; a signed number on the wire.
        end_of_file: u64, "EndOfFile", u64, put_u64, same, same
    }
}

single! {
    /// Set: how much of the file was written. \[MS-FSCC\] 2.4.50
    FileValidDataLengthInformation {
        /// Bytes; a signed number on the wire.
        valid_data_length: u64, "ValidDataLength", u64, put_u64, same, same
    }
}

single! {
    /// Set: whether the file goes away with the last close. \[MS-FSCC\] 2.4.11
    FileDispositionInformation {
        /// Whether to delete.
        is_delete_pending: bool, "DeletePending", u8, put_u8, |byte| byte != 0, u8::from
    }
}

open_flags! {
    /// How to delete. \[MS-FSCC\] 2.4.12
    DispositionFlags(u32) {
        /// Delete; without it: do not.
        DELETE = 0x0000_0001,
        /// The name goes at once, the file with its last open.
        POSIX_SEMANTICS = 0x0000_0002,
        /// Fail where an image section is mapped.
        FORCE_IMAGE_SECTION_CHECK = 0x0000_0004,
        /// Change only what the open does by DELETE_ON_CLOSE.
        ON_CLOSE = 0x0000_0008,
        /// A read-only file too.
        IGNORE_READONLY_ATTRIBUTE = 0x0000_0010,
    }
}

single! {
    /// Set: delete, with flags. \[MS-FSCC\] 2.4.12
    FileDispositionInformationEx {
        /// What to do.
        flags: DispositionFlags, "Flags", u32, put_u32,
        DispositionFlags, |flags: DispositionFlags| flags.0
    }
}
