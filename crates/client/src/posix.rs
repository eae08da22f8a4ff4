//! The SMB3 POSIX extensions of Samba, Linux and smbeam: opens with exact names, and the Unix
//! metadata of files. "SMB3 POSIX Protocol Extensions"

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use wire::access::AccessMask;
use wire::fscc::{FileInfoClass, InfoType};
use wire::posix::FilePosixInformation;
use wire::security::{SecurityDescriptor, SecurityInformation, Sid};

use crate::error::{Error, unexpected};
use crate::file::File;
use crate::metadata::Metadata;
use crate::open_options::OpenOptions;
use crate::share::Share;

/// Largest information class 100 in bytes: the fixed fields and two SIDs.
const POSIX_LEN: u32 = FilePosixInformation::FIXED_LEN as u32 + 2 * SID_LEN;
/// Largest encoded SID in bytes: 15 sub-authorities. \[MS-DTYP\] 2.4.2.2
const SID_LEN: u32 = 8 + 15 * 4;
/// The name of the query for messages.
const QUERY: &str = "query the Unix metadata of";

impl File {
    /// Queries metadata with [`Metadata::unix`]. The file must be open with
    /// [`OpenOptions::posix`](crate::OpenOptions::posix).
    ///
    /// # Errors
    /// The open does not use the POSIX extensions, or the connection is lost.
    pub async fn posix_metadata(&self) -> Result<Metadata, Error> {
        let class = FileInfoClass::POSIX.0;
        let bytes = self.query_all(InfoType::FILE, class, 0).await;
        let decoded = bytes.and_then(|bytes| Ok(FilePosixInformation::decode(&bytes)?));
        match decoded {
            Ok(info) => Ok(Metadata::from_posix(&info)),
            Err(cause) => Err(self.failed(QUERY, cause)),
        }
    }
}

impl Share {
    /// Returns whether the server has the SMB3 POSIX extensions, and the client asked for them
    /// ([`Options::posix`](crate::Options::posix)).
    pub fn has_posix(&self) -> bool {
        self.session().negotiated().negotiated.posix
    }

    /// Queries metadata of the file or directory `path` with [`Metadata::unix`], by the SMB3 POSIX
    /// extensions. `path` has the exact names of the files, with `/` between them, relative to the
    /// root of the share. If the path is a symbolic link, returns the metadata of the link itself.
    ///
    /// # Errors
    /// The server does not have the extensions, the file does not exist, or the user may not access
    /// it.
    pub async fn posix_metadata(&self, path: &str) -> Result<Metadata, Error> {
        let query = Step::QueryInfo {
            file: FileRef::Previous,
            info_type: InfoType::FILE,
            class: FileInfoClass::POSIX.0,
            additional: 0,
            length: POSIX_LEN,
        };
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .follow(false)
            .posix(0);
        let replies = self.alone_with(path, &options, vec![query]).await;
        let decoded = replies.and_then(|replies| match replies.get(1) {
            Some(Reply::Output(bytes, false)) => Ok(FilePosixInformation::decode(bytes)?),
            _ => Err(unexpected()),
        });
        match decoded {
            Ok(info) => Ok(Metadata::from_posix(&info)),
            Err(cause) => Err(cause.of(QUERY, path)),
        }
    }

    /// Changes the permission bits of the file or directory `path` (chmod), by the SMB3 POSIX
    /// extensions: an access control entry for the SID S-1-5-88-3-mode. `path` is as in
    /// [`posix_metadata`](Self::posix_metadata). A symbolic link has no permissions to change.
    ///
    /// # Errors
    /// The server does not have the extensions, the file does not exist, or the user does not own
    /// it.
    pub async fn set_posix_mode(&self, path: &str, mode: u32) -> Result<(), Error> {
        let descriptor = SecurityDescriptor::change_of_mode(mode);
        self.set_posix_security(path, SecurityInformation::DACL, &descriptor)
            .await
    }

    /// Changes the owner and the group of the file or directory `path` (chown), by the SIDs
    /// S-1-22-1-uid and S-1-22-2-gid. `None` leaves one as it is. `path` is as in
    /// [`posix_metadata`](Self::posix_metadata); the owner of a symbolic link is changed, not that
    /// of its target.
    ///
    /// # Errors
    /// The server does not have the extensions, the file does not exist, or the user may not change
    /// the owner.
    pub async fn set_posix_owner(
        &self,
        path: &str,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<(), Error> {
        let descriptor = SecurityDescriptor {
            owner: uid.map(Sid::unix_user),
            group: gid.map(Sid::unix_group),
            ..SecurityDescriptor::default()
        };
        let mut parts = SecurityInformation::NONE;
        if uid.is_some() {
            parts |= SecurityInformation::OWNER;
        }
        if gid.is_some() {
            parts |= SecurityInformation::GROUP;
        }
        if parts.is_empty() {
            return Ok(());
        }
        self.set_posix_security(path, parts, &descriptor).await
    }

    async fn set_posix_security(
        &self,
        path: &str,
        parts: SecurityInformation,
        descriptor: &SecurityDescriptor,
    ) -> Result<(), Error> {
        let options = OpenOptions::new().follow(false).posix(0);
        self.set_security_with(path, parts, descriptor, options)
            .await
    }
}
