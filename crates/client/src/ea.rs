//! Extended attributes of files. \[MS-FSCC\] 2.4.16

use wire::Status;
use wire::access::AccessMask;
use wire::fscc::{EaFlags, EaWriter, Eas, FileInfoClass, FullEa, InfoType};

use crate::error::{Cause, Error};
use crate::file::File;
use crate::open_options::OpenOptions;
use crate::share::Share;

/// Maximum length of a list of extended attributes in bytes: the limit of NTFS and of the length
/// field of a whole list.
const LIST_MAX: usize = 64 << 10;

/// An extended attribute (EA) of a file: a name and a value. It is not a DOS attribute such as
/// "hidden".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtendedAttribute {
    /// Name: at most 255 8-bit characters. Servers ignore its case.
    pub name: Vec<u8>,
    /// Value, at most 65,535 bytes. A server cannot store an empty one: it removes the attribute.
    pub value: Vec<u8>,
    /// Whether a program that uses the file must understand the attribute (FILE_NEED_EA).
    pub is_needed: bool,
}

impl ExtendedAttribute {
    /// Makes an attribute that programs need not understand.
    pub fn new(name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            is_needed: false,
        }
    }
}

impl File {
    /// Queries all extended attributes of the file or directory.
    ///
    /// # Errors
    /// The open has no right to read extended attributes, the server does not support them, or the
    /// connection is lost.
    pub async fn extended_attributes(&self) -> Result<Vec<ExtendedAttribute>, Error> {
        let bytes = self.query_all(InfoType::FILE, FileInfoClass::FULL_EA.0, 0);
        let list = match bytes.await {
            Ok(bytes) => parse(&bytes),
            // Windows and Samba answer so for a file without attributes.
            Err(cause) if cause.status() == Some(Status::NO_EAS_ON_FILE) => Ok(Vec::new()),
            Err(cause) => Err(cause),
        };
        list.map_err(|cause| self.failed("query the extended attributes of", cause))
    }

    /// Sets extended attributes of the file or directory. Attributes that `attributes` does not
    /// name stay. An empty value removes an attribute.
    ///
    /// # Errors
    /// The open has no right to write extended attributes, the server does not support them, a name
    /// is not valid or reserved, or all attributes together are too long.
    pub async fn set_extended_attributes(
        &self,
        attributes: &[ExtendedAttribute],
    ) -> Result<(), Error> {
        let operation = "set the extended attributes of";
        let mut writer = EaWriter::new(LIST_MAX);
        for attribute in attributes {
            let ea = FullEa {
                flags: match attribute.is_needed {
                    true => EaFlags::NEED_EA,
                    false => EaFlags::NONE,
                },
                name: &attribute.name,
                value: &attribute.value,
            };
            if !writer.push(&ea) {
                return Err(self.failed(operation, Cause::Status(Status::EA_TOO_LARGE)));
            }
        }
        let buffer = writer.finish();
        if buffer.is_empty() {
            return Ok(());
        }
        self.set(operation, FileInfoClass::FULL_EA, buffer).await
    }
}

impl Share {
    /// Queries all extended attributes of the file or directory `path`, relative to the root of the
    /// share.
    ///
    /// # Errors
    /// The file does not exist, the user may not read its extended attributes, or the server does
    /// not support them.
    pub async fn extended_attributes(&self, path: &str) -> Result<Vec<ExtendedAttribute>, Error> {
        let options = OpenOptions::new().access(AccessMask::FILE_READ_EA);
        let file = self.open(path, &options).await?;
        let attributes = file.extended_attributes().await?;
        file.close().await?;
        Ok(attributes)
    }

    /// Sets extended attributes of the file or directory `path`, relative to the root of the share:
    /// see [`File::set_extended_attributes`].
    ///
    /// # Errors
    /// The file does not exist, and the errors of [`File::set_extended_attributes`].
    pub async fn set_extended_attributes(
        &self,
        path: &str,
        attributes: &[ExtendedAttribute],
    ) -> Result<(), Error> {
        let options = OpenOptions::new().access(AccessMask::FILE_WRITE_EA);
        let file = self.open(path, &options).await?;
        file.set_extended_attributes(attributes).await?;
        file.close().await
    }
}

fn parse(bytes: &[u8]) -> Result<Vec<ExtendedAttribute>, Cause> {
    let attribute = |ea: Result<FullEa<'_>, _>| {
        let FullEa { flags, name, value } = ea?;
        Ok(ExtendedAttribute {
            name: name.to_vec(),
            value: value.to_vec(),
            is_needed: flags.contains(EaFlags::NEED_EA),
        })
    };
    Eas::new(bytes).map(attribute).collect()
}
