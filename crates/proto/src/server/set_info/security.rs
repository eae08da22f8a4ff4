//! Setting a security descriptor: the DACL becomes the mode. \[MS-SMB2\] 3.3.5.21.3
//!
//! Files have an owner, a group and a mode, and these alone decide. As Samba does where it stores
//! no descriptors, a DACL is mapped to the nine bits that come closest. An owner or group that is
//! the file's own already is accepted; another one cannot be given.

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::Status;
use wire::access::AccessMask;
use wire::change_notify::CompletionFilter;
use wire::query_info::SecurityInformation;
use wire::security::{Ace, AceFlags, AceType, DescriptorControl, SecurityDescriptor, Sid};

use super::{done, wait};
use crate::file::{FileOp, Metadata, Operation};
use crate::server::context::{Context, Progress};
use crate::server::open::{Need, Open};

/// The state of a request that waits for the owner and the mode of the file.
pub(crate) struct Step {
    open: Arc<Open>,
    parts: SecurityInformation,
    descriptor: SecurityDescriptor,
}

pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    parts: SecurityInformation,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let owners = SecurityInformation::OWNER | SecurityInformation::GROUP;
    if parts.intersects(owners) {
        open.authorize(Need::Right(AccessMask::WRITE_OWNER))?;
    }
    if parts.contains(SecurityInformation::DACL) {
        open.authorize(Need::Right(AccessMask::WRITE_DAC))?;
    }
    if parts.contains(SecurityInformation::SACL) {
        open.authorize(Need::Right(AccessMask::ACCESS_SYSTEM_SECURITY))?;
    }
    let descriptor = SecurityDescriptor::decode(buffer);
    let descriptor = descriptor.map_err(|_| Status::INVALID_SECURITY_DESCR)?;
    let operation = FileOp::OnOpen(open.file, Operation::Stat);
    let step = Step {
        open,
        parts,
        descriptor,
    };
    let step = super::Step::Security(Box::new(step));
    Ok(wait(context, operation, step))
}

impl Step {
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        metadata: &Metadata,
    ) -> Result<Progress<super::Step>, Status> {
        self.check_owners(metadata)?;
        match self.mode(metadata)? {
            Some(mode) if mode != metadata.mode & 0o777 => {
                let file = self.open.file;
                let operation = FileOp::OnOpen(file, Operation::SetMode { mode });
                Ok(wait(context, operation, super::Step::Permitting(self.open)))
            }
            _ => {
                context.report_change(&self.open, CompletionFilter::SECURITY);
                Ok(done())
            }
        }
    }

    fn check_owners(&self, metadata: &Metadata) -> Result<(), Status> {
        let sets = |part| self.parts.contains(part);
        let owner = self.descriptor.owner.as_ref();
        let owner = owner.filter(|_| sets(SecurityInformation::OWNER));
        let group = self.descriptor.group.as_ref();
        let group = group.filter(|_| sets(SecurityInformation::GROUP));
        let is_own_user = owner.is_none_or(|sid| sid.to_unix_user() == Some(metadata.uid));
        let is_own_group = group.is_none_or(|sid| sid.to_unix_group() == Some(metadata.gid));
        if is_own_user && is_own_group {
            Ok(())
        } else {
            Err(Status::INVALID_OWNER)
        }
    }

    /// The nine bits that come closest to the DACL, where one is set.
    fn mode(&self, metadata: &Metadata) -> Result<Option<u32>, Status> {
        let control = self.descriptor.control;
        let is_present = control.contains(DescriptorControl::DACL_PRESENT);
        if !self.parts.contains(SecurityInformation::DACL) || !is_present {
            return Ok(None);
        }
        let Some(dacl) = &self.descriptor.dacl else {
            // A NULL DACL: everyone may do everything.
            return Ok(Some(0o777));
        };
        mode_of(dacl.aces(), metadata).map(Some)
    }
}

/// The bits that the entries give to owner, group and everyone. A list that names none of them is
/// refused: no user could access the file.
fn mode_of(aces: &[Ace], metadata: &Metadata) -> Result<u32, Status> {
    let sids = aces.iter().filter_map(sid_of);
    if let Some(mode) = sids.clone().find_map(Sid::to_unix_mode) {
        return Ok(mode & 0o777);
    }
    let is_owner = |sid: &Sid| sid.to_unix_user() == Some(metadata.uid);
    let is_group = |sid: &Sid| sid.to_unix_group() == Some(metadata.gid);
    let is_everyone = |sid: &Sid| *sid == Sid::EVERYONE;
    let is_known = |sid: &Sid| is_owner(sid) || is_group(sid) || is_everyone(sid);
    if !aces.is_empty() && !sids.clone().any(is_known) {
        return Err(Status::ACCESS_DENIED);
    }
    let owner = bits_of(aces, |sid| is_owner(sid) || is_everyone(sid));
    let group = bits_of(aces, |sid| is_group(sid) || is_everyone(sid));
    let others = bits_of(aces, is_everyone);
    Ok(owner << 6 | group << 3 | others)
}

/// The account of an entry that applies to the file itself.
fn sid_of(ace: &Ace) -> Option<&Sid> {
    match ace {
        Ace::Basic { flags, sid, .. } if !flags.contains(AceFlags::INHERIT_ONLY) => Some(sid),
        _ => None,
    }
}

/// The rights that the entries give to an account: the first entry with a right decides.
/// \[MS-DTYP\] 2.5.3.2
fn bits_of(aces: &[Ace], is_meant: impl Fn(&Sid) -> bool) -> u32 {
    let (mut allowed, mut denied) = (0, 0);
    for ace in aces {
        let Ace::Basic { ace_type, mask, .. } = ace else {
            continue;
        };
        if !sid_of(ace).is_some_and(&is_meant) {
            continue;
        }
        match *ace_type {
            AceType::ACCESS_ALLOWED => allowed |= bits(*mask) & !denied,
            AceType::ACCESS_DENIED => denied |= bits(*mask) & !allowed,
            _ => {}
        }
    }
    allowed
}

/// The three bits that stand for rights.
fn bits(mask: AccessMask) -> u32 {
    let generic = |right| mask.intersects(right | AccessMask::GENERIC_ALL);
    let reads = generic(AccessMask::FILE_READ_DATA | AccessMask::GENERIC_READ);
    let writes = generic(AccessMask::FILE_WRITE_DATA | AccessMask::GENERIC_WRITE);
    let executes = generic(AccessMask::FILE_EXECUTE | AccessMask::GENERIC_EXECUTE);
    u32::from(reads) << 2 | u32::from(writes) << 1 | u32::from(executes)
}
