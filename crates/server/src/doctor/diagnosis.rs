//! Reasons that only the doctor reports. The log has the others.

use crate::reasons;

reasons! {
    /// A fault that the doctor finds, and that no line of the log reports.
    pub enum Diagnosis {
        /// No share has the name.
        ShareUnknown = "share-unknown",
        /// An administrator has disabled the share.
        ShareDisabled = "share-disabled",
        /// The share is read-only.
        ShareReadOnly = "share-read-only",
        /// Another share has the same files.
        ShareOverlap = "share-overlap",
        /// A file or directory of the path does not exist.
        PathMissing = "path-missing",
        /// A component of the path is not a directory.
        PathNotDirectory = "path-not-directory",
        /// A symbolic link leads out of the share.
        PathLeavesShare = "path-leaves-share",
        /// No share has the path.
        PathOutside = "path-outside-of-shares",
        /// Clients see the name in another form, or not at all.
        PathName = "path-name",
        /// The file is immutable or append-only.
        PathImmutable = "path-immutable",
        /// The file system is mounted read-only.
        PathReadOnlyMount = "path-read-only-mount",
        /// All file operations run as the user of the server.
        OneIdentity = "access-one-identity",
        /// A certificate has expired, or is not valid yet.
        CertificateDates = "certificate-expired",
        /// The certificate lacks a name of the server.
        CertificateName = "certificate-name",
        /// The state directory cannot be written.
        StateDirectory = "config-state-directory",
        /// The process can open too few files.
        Descriptors = "limit-descriptors",
        /// No server runs with the configuration.
        NotRunning = "server-not-running",
        /// The server that runs has another configuration than the file.
        NotReloaded = "server-not-reloaded",
    }
}
