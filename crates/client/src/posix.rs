//! The SMB3 POSIX extensions of Samba, Linux and smbeam: opens with exact names, and the Unix
//! metadata of files. "SMB3 POSIX Protocol Extensions"

use std::borrow::Cow;
use std::sync::Arc;

use proto::client::Step;
use proto::client::request::{FileRef, Reply};
use wire::access::AccessMask;
use wire::fscc::{DispositionFlags, FileDispositionInformationEx, FileInfoClass, InfoType};
use wire::posix::FilePosixInformation;
use wire::security::{SecurityDescriptor, SecurityInformation, Sid};

use crate::error::{Error, unexpected};
use crate::file::File;
use crate::metadata::Metadata;
use crate::open_options::OpenOptions;
use crate::path;
use crate::share::{Share, set};

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

    /// Changes the permission bits of the file, as [`Share::set_posix_mode`] does.
    ///
    /// # Errors
    /// The open has no right to change the access list (WRITE_DAC), or does not use the POSIX
    /// extensions.
    pub async fn set_posix_mode(&self, mode: u32) -> Result<(), Error> {
        let descriptor = SecurityDescriptor::change_of_mode(mode);
        self.set_security(SecurityInformation::DACL, &descriptor)
            .await
    }

    /// Changes the owner and the group of the file, as [`Share::set_posix_owner`] does.
    ///
    /// # Errors
    /// The open has no right to change the owner (WRITE_OWNER), or the user may not change it.
    pub async fn set_posix_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<(), Error> {
        let (parts, descriptor) = change_of_owner(uid, gid);
        match parts.is_empty() {
            true => Ok(()),
            false => self.set_security(parts, &descriptor).await,
        }
    }
}

impl Share {
    /// Returns the share with the SMB3 POSIX extensions for all opens by a path; `None` if
    /// [`has_posix`](Self::has_posix) is false. Paths have exact names as in
    /// [`OpenOptions::posix`], [`metadata`](Self::metadata) and [`read_dir`](Self::read_dir) return
    /// [`Metadata::unix`], and a removal or rename does not depend on open files.
    #[must_use]
    pub fn with_posix(&self) -> Option<Self> {
        self.has_posix().then(|| Self {
            inner: Arc::clone(&self.inner),
            uses_posix: true,
        })
    }

    /// Returns whether all opens by a path use the SMB3 POSIX extensions.
    pub fn uses_posix(&self) -> bool {
        self.uses_posix
    }

    /// The options of an open of this share.
    pub(crate) fn options_here<'a>(&self, options: &'a OpenOptions) -> Cow<'a, OpenOptions> {
        match self.uses_posix {
            true => Cow::Owned(options.clone().with_posix()),
            false => Cow::Borrowed(options),
        }
    }

    /// Converts a path to the form of the protocol.
    pub(crate) fn to_wire(&self, path: &str) -> Result<String, Error> {
        match self.uses_posix {
            true => path::to_posix(path),
            false => path::to_wire(path),
        }
    }

    /// Removes the name of a file or of an empty directory at once, even if the file is open.
    /// \[MS-FSCC\] 2.4.12
    pub(crate) async fn remove_with_posix(
        &self,
        path: &str,
        is_directory: bool,
    ) -> Result<(), Error> {
        let options = OpenOptions::new()
            .access(AccessMask::DELETE)
            .directory(is_directory)
            .follow(false)
            .with_posix();
        let mut buffer = Vec::new();
        let flags = DispositionFlags::DELETE | DispositionFlags::POSIX_SEMANTICS;
        FileDispositionInformationEx { flags }.encode(&mut buffer);
        let step = set(FileInfoClass::DISPOSITION_EX.0, buffer);
        let done = self.alone_with(path, &options, vec![step]).await;
        done.map(drop).map_err(|cause| cause.of("remove", path))
    }

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
        self.look_with_posix(path, false).await
    }

    /// Creates a file or directory with the permission bits `mode`, by the SMB3 POSIX extensions,
    /// and returns its metadata with [`Metadata::unix`]. `path` is as in
    /// [`posix_metadata`](Self::posix_metadata).
    ///
    /// # Errors
    /// The server does not have the extensions, the path exists, or the user may not create it.
    pub async fn create_posix(
        &self,
        path: &str,
        mode: u32,
        is_directory: bool,
    ) -> Result<Metadata, Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .directory(is_directory)
            .create_new(true)
            .follow(false)
            .posix(mode);
        self.query_with_posix("create", path, &options).await
    }

    /// Queries metadata with [`Metadata::unix`], of a link or of its target.
    pub(crate) async fn look_with_posix(
        &self,
        path: &str,
        follow: bool,
    ) -> Result<Metadata, Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES)
            .follow(follow)
            .posix(0);
        self.query_with_posix(QUERY, path, &options).await
    }

    /// Opens a file, queries its metadata and closes it, all in one message.
    async fn query_with_posix(
        &self,
        operation: &'static str,
        path: &str,
        options: &OpenOptions,
    ) -> Result<Metadata, Error> {
        let query = Step::QueryInfo {
            file: FileRef::Previous,
            info_type: InfoType::FILE,
            class: FileInfoClass::POSIX.0,
            additional: 0,
            length: POSIX_LEN,
        };
        let wire = options.to_wire(path)?;
        let replies = self.alone_wire(wire, options, vec![query]).await;
        let decoded = replies.and_then(|replies| match replies.get(1) {
            Some(Reply::Output(bytes, false)) => Ok(FilePosixInformation::decode(bytes)?),
            _ => Err(unexpected()),
        });
        match decoded {
            Ok(info) => Ok(Metadata::from_posix(&info)),
            Err(cause) => Err(cause.of(operation, path)),
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
        let (parts, descriptor) = change_of_owner(uid, gid);
        match parts.is_empty() {
            true => Ok(()),
            false => self.set_posix_security(path, parts, &descriptor).await,
        }
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

/// The descriptor that changes the owner and the group, and its parts.
fn change_of_owner(
    uid: Option<u32>,
    gid: Option<u32>,
) -> (SecurityInformation, SecurityDescriptor) {
    let part = |is_set, part| match is_set {
        true => part,
        false => SecurityInformation::NONE,
    };
    let parts = part(uid.is_some(), SecurityInformation::OWNER)
        | part(gid.is_some(), SecurityInformation::GROUP);
    let descriptor = SecurityDescriptor {
        owner: uid.map(Sid::unix_user),
        group: gid.map(Sid::unix_group),
        ..SecurityDescriptor::default()
    };
    (parts, descriptor)
}
