//! Security descriptors of files: owner, group and access control lists. \[MS-DTYP\] 2.4.6

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use wire::access::AccessMask;
use wire::query_info::InfoType;
use wire::security::{SecurityDescriptor, SecurityInformation};

use crate::error::{Cause, Error, unexpected};
use crate::file::File;
use crate::open_options::OpenOptions;
use crate::share::Share;

/// The parts of a descriptor in the system access control list.
const OF_SACL: SecurityInformation = SecurityInformation(
    SecurityInformation::SACL.0
        | SecurityInformation::ATTRIBUTE.0
        | SecurityInformation::SCOPE.0
        | SecurityInformation::BACKUP.0,
);

impl File {
    /// Queries `parts` of the security descriptor of the file or directory, such as OWNER, GROUP
    /// and DACL.
    ///
    /// # Errors
    /// The open has no right to read the descriptor (READ_CONTROL; for the SACL
    /// ACCESS_SYSTEM_SECURITY), or the server has no descriptors.
    pub async fn security(&self, parts: SecurityInformation) -> Result<SecurityDescriptor, Error> {
        let bytes = self.query_all(InfoType::SECURITY, 0, parts.0).await;
        let decoded = bytes.and_then(|bytes| Ok(SecurityDescriptor::decode(&bytes)?));
        decoded.map_err(|cause| self.failed("query the security descriptor of", cause))
    }

    /// Sets `parts` of the security descriptor of the file or directory to those of `descriptor`.
    ///
    /// # Errors
    /// The open has no right to change them (WRITE_DAC for the DACL, WRITE_OWNER for owner and
    /// group, ACCESS_SYSTEM_SECURITY for the SACL), or the server does not accept the owner.
    pub async fn set_security(
        &self,
        parts: SecurityInformation,
        descriptor: &SecurityDescriptor,
    ) -> Result<(), Error> {
        self.ask(SET, set_step(self.file(), parts, descriptor))
            .await
            .map(drop)
    }
}

impl Share {
    /// Queries `parts` of the security descriptor of the file or directory `path`, relative to the
    /// root of the share.
    ///
    /// # Errors
    /// The file does not exist, the user may not read its descriptor, or the server has none.
    pub async fn security(
        &self,
        path: &str,
        parts: SecurityInformation,
    ) -> Result<SecurityDescriptor, Error> {
        let options = OpenOptions::new().access(access_to_read(parts));
        let operation = "query the security descriptor of";
        let query = query_step(parts, FIRST_LEN);
        let asked = self.alone_with(path, &options, vec![query]).await;
        let replies = match asked {
            // Two lists of 64 KiB do not fit in the first buffer.
            Err(cause) if File::is_too_short(&cause) => {
                let length = self.session().negotiated().negotiated.max_transact;
                let query = query_step(parts, length);
                self.alone_with(path, &options, vec![query]).await
            }
            asked => asked,
        };
        let decoded = replies.and_then(|replies| match replies.get(1) {
            Some(Reply::Output(bytes, false)) => Ok(SecurityDescriptor::decode(bytes)?),
            _ => Err(unexpected()),
        });
        decoded.map_err(|cause: Cause| cause.of(operation, path))
    }

    /// Sets `parts` of the security descriptor of the file or directory `path`, relative to the
    /// root of the share, to those of `descriptor`.
    ///
    /// # Errors
    /// The file does not exist, the user may not change these parts, or the server does not accept
    /// the owner.
    pub async fn set_security(
        &self,
        path: &str,
        parts: SecurityInformation,
        descriptor: &SecurityDescriptor,
    ) -> Result<(), Error> {
        let options = OpenOptions::new().access(access_to_write(parts));
        let step = set_step(FileRef::Previous, parts, descriptor);
        let done = self.alone_with(path, &options, vec![step]).await;
        done.map(drop).map_err(|cause| cause.of(SET, path))
    }
}

/// The name of the operation for messages.
const SET: &str = "set the security descriptor of";
/// Length of the first query in bytes: one credit.
const FIRST_LEN: u32 = 64 << 10;

/// The rights for a query of `parts`. \[MS-SMB2\] 3.3.5.20.3
fn access_to_read(parts: SecurityInformation) -> AccessMask {
    match parts.intersects(OF_SACL) {
        true => AccessMask::READ_CONTROL | AccessMask::ACCESS_SYSTEM_SECURITY,
        false => AccessMask::READ_CONTROL,
    }
}

/// The rights for a change of `parts`. \[MS-SMB2\] 3.3.5.21.3
fn access_to_write(parts: SecurityInformation) -> AccessMask {
    let owner = SecurityInformation::OWNER | SecurityInformation::GROUP;
    let owner = owner | SecurityInformation::LABEL;
    [
        (owner, AccessMask::WRITE_OWNER),
        (SecurityInformation::DACL, AccessMask::WRITE_DAC),
        (OF_SACL, AccessMask::ACCESS_SYSTEM_SECURITY),
    ]
    .into_iter()
    .filter(|(of, _)| parts.intersects(*of))
    .fold(AccessMask::READ_CONTROL, |access, (_, right)| {
        access | right
    })
}

fn query_step(parts: SecurityInformation, length: u32) -> Step {
    Step::QueryInfo {
        file: FileRef::Previous,
        info_type: InfoType::SECURITY,
        class: 0,
        additional: parts.0,
        length,
    }
}

/// The message that changes `parts` of a security descriptor.
pub(crate) fn set_step(
    file: FileRef,
    parts: SecurityInformation,
    descriptor: &SecurityDescriptor,
) -> Step {
    let mut buffer = Vec::new();
    descriptor.select(parts).encode(&mut buffer);
    Step::SetInfo {
        file,
        info_type: InfoType::SECURITY,
        class: 0,
        additional: parts.0,
        buffer,
    }
}
