//! Changes of the attributes of a file that the SMB3 POSIX extensions can make together.

use proto::client::Step;
use proto::client::request::FileRef;
use wire::access::AccessMask;
use wire::fscc::{FileInfoClass, InfoType};
use wire::security::{SecurityDescriptor, SecurityInformation, Sid};

use crate::metadata::Changes;
use crate::security::set_step;

/// Changes of owner, permissions, timestamps and DOS attributes of a file. A value of `None` stays.
/// The default changes nothing. The server makes the changes in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PosixChanges {
    /// New owner, by the SID S-1-22-1-uid.
    pub uid: Option<u32>,
    /// New group, by the SID S-1-22-2-gid.
    pub gid: Option<u32>,
    /// New permission bits of chmod(2), by an access control entry for the SID S-1-5-88-3-mode.
    pub mode: Option<u32>,
    /// New timestamps and DOS attributes.
    pub basic: Changes,
}

/// Each method sets the field of its name.
impl PosixChanges {
    /// Sets the new [owner](field@Self::uid) and the new [group](field@Self::gid).
    #[must_use]
    pub fn owner(mut self, uid: Option<u32>, gid: Option<u32>) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Sets the new [permission bits](field@Self::mode).
    #[must_use]
    pub fn mode(mut self, mode: Option<u32>) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the new [timestamps and DOS attributes](field@Self::basic).
    #[must_use]
    pub fn basic(mut self, basic: Changes) -> Self {
        self.basic = basic;
        self
    }

    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these changes with `later` ones after them: a value of `later` replaces one here.
    #[must_use]
    pub fn then(self, later: &Self) -> Self {
        Self {
            uid: later.uid.or(self.uid),
            gid: later.gid.or(self.gid),
            mode: later.mode.or(self.mode),
            basic: self.basic.then(&later.basic),
        }
    }

    /// The parts of the security descriptor that say the owner.
    fn owner_parts(&self) -> SecurityInformation {
        let part = |is_set, part| match is_set {
            true => part,
            false => SecurityInformation::NONE,
        };
        part(self.uid.is_some(), SecurityInformation::OWNER)
            | part(self.gid.is_some(), SecurityInformation::GROUP)
    }

    fn has_basic(&self) -> bool {
        self.basic != Changes::default()
    }

    /// The rights that the changes need.
    pub(crate) fn access(&self) -> AccessMask {
        let right = |is_needed, right| match is_needed {
            true => right,
            false => AccessMask::NONE,
        };
        right(!self.owner_parts().is_empty(), AccessMask::WRITE_OWNER)
            | right(self.mode.is_some(), AccessMask::WRITE_DAC)
            | right(self.has_basic(), AccessMask::FILE_WRITE_ATTRIBUTES)
    }

    /// The messages that make the changes.
    pub(crate) fn steps(&self, file: FileRef) -> Vec<Step> {
        let mut steps = Vec::new();
        let parts = self.owner_parts();
        if !parts.is_empty() {
            let descriptor = SecurityDescriptor {
                owner: self.uid.map(Sid::unix_user),
                group: self.gid.map(Sid::unix_group),
                ..SecurityDescriptor::default()
            };
            steps.push(set_step(file, parts, &descriptor));
        }
        if let Some(mode) = self.mode {
            let descriptor = SecurityDescriptor::change_of_mode(mode);
            steps.push(set_step(file, SecurityInformation::DACL, &descriptor));
        }
        if self.has_basic() {
            steps.push(Step::SetInfo {
                file,
                info_type: InfoType::FILE,
                class: FileInfoClass::BASIC.0,
                additional: 0,
                buffer: self.basic.encode(),
            });
        }
        steps
    }
}
