//! The place of security descriptors.

/// The extended attribute in which a share stores security descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityAttribute {
    /// `security.NTACL`, as Samba's module acl_xattr. Only a process with CAP_SYS_ADMIN can write
    /// it; without that, clients change the permissions of Unix only.
    #[default]
    Security,
    /// `user.NTACL`, which every process can write that may write the file. Local users with that
    /// permission can change it, too.
    User,
}

impl SecurityAttribute {
    /// Returns the name of the extended attribute.
    pub fn name(self) -> &'static str {
        match self {
            Self::Security => "security.NTACL",
            Self::User => "user.NTACL",
        }
    }
}
