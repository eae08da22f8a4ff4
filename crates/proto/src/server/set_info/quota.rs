//! Limits of disk quotas. \[MS-SMB2\] 3.3.5.21.4

use alloc::vec::Vec;

use wire::Status;
use wire::fscc::{FileQuotaInformation, Quotas};

use super::wait;
use crate::disk_quota::QuotaLimits;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress};
use crate::server::open::{Open, malformed};

/// Maximum number of accounts in a request. Each costs a system call.
const ACCOUNTS_MAX: usize = 1024;

pub(super) fn start(
    context: &mut Context<'_>,
    open: &Open,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    // smbcquotas sets quotas through an open without rights, see `create/wanted.rs`. The kernel
    // lets root set them, no one else.
    if context.tree.is_read_only {
        return Err(Status::MEDIA_WRITE_PROTECTED);
    }
    let mut quotas = Vec::new();
    for quota in Quotas::new(buffer) {
        if quotas.len() == ACCOUNTS_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        quotas.push(limits(&quota.map_err(malformed)?));
    }
    if quotas.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    let operation = FileOp::OnOpen(open.file, Operation::SetQuotas { quotas });
    Ok(wait(context, operation, super::Step::Quota))
}

/// An account without an entry has no limits. Samba's smbcquotas deletes in this way.
fn limits(quota: &FileQuotaInformation) -> QuotaLimits {
    let limit = |value: u64| (value < FileQuotaInformation::DELETE).then_some(value);
    let is_deleted = quota.limit == FileQuotaInformation::DELETE;
    QuotaLimits {
        sid: quota.sid,
        threshold: limit(quota.threshold).filter(|_| !is_deleted),
        limit: limit(quota.limit),
    }
}

#[cfg(test)]
mod tests {
    use wire::FileId;
    use wire::access::AccessMask;
    use wire::fscc::{InfoType, QuotaWriter};
    use wire::security::Sid;
    use wire::set_info::Request;

    use super::*;
    use crate::server::scripted::World;

    fn set(world: &mut World, id: FileId, buffer: &[u8]) -> Result<Status, Status> {
        let request = Request {
            info_type: InfoType::QUOTA,
            file_info_class: 0,
            additional_information: 0,
            file_id: id,
            buffer,
        };
        let reply = world.run(crate::server::set_info::start, |out| request.encode(out));
        reply.map(|reply| reply.status)
    }

    fn list(threshold: u64, limit: u64) -> Vec<u8> {
        let mut writer = QuotaWriter::new(1000);
        writer.push(&FileQuotaInformation {
            threshold,
            limit,
            sid: Sid::unix_user(7),
            ..FileQuotaInformation::default()
        });
        writer.finish()
    }

    #[test]
    fn limits_are_set_and_deleted_through_the_quota_file() {
        let mut world = World::new();
        let name = "$Extend\\$Quota:$Q:$INDEX_ALLOCATION";
        let id = world.open(name, AccessMask(0x16));
        for (threshold, limit, expected) in [
            (1, 2, (Some(1), Some(2))),
            (1, FileQuotaInformation::NO_LIMIT, (Some(1), None)),
            (1, FileQuotaInformation::DELETE, (None, None)),
        ] {
            let result = set(&mut world, id, &list(threshold, limit));
            assert_eq!(result, Ok(Status::SUCCESS));
            let set = world.disk.set_quotas[0];
            assert_eq!((set.threshold, set.limit), expected);
        }
        for wrong in [&[], &list(1, 2)[..50]] {
            let result = set(&mut world, id, wrong);
            assert_eq!(result, Err(Status::INVALID_PARAMETER));
        }
    }
}
