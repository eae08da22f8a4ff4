//! Disk quotas: which accounts a query selects, and the answer. \[MS-SMB2\] 3.3.5.20.4
//!
//! As in Windows, the open may be any of the volume. Samba answers only on an open of the file
//! `$Extend\$Quota` (bug 14478).

use alloc::vec::Vec;

use wire::Status;
use wire::fscc::{FileQuotaInformation, QuotaQuery, QuotaSids, QuotaWriter, QuotasOf};
use wire::security::Sid;

use crate::disk_quota::{DiskQuota, FirstUser, QuotaSelection};
use crate::server::open::{Open, malformed};

/// Maximum number of accounts in an answer. Each costs a system call.
const ACCOUNTS_MAX: usize = 1024;
/// Length in bytes of an entry with the shortest SID of an account.
const ENTRY_LEN_MIN: usize = 48;

/// The part of a query that its answer needs.
pub(super) struct Selection {
    /// Whether the query continues a list. The open keeps the position.
    is_list: bool,
    is_single: bool,
}

impl Selection {
    /// Reads the selection of a query, and the accounts that the file system is asked for.
    pub(super) fn new(
        input: &[u8],
        open: &Open,
        max_len: usize,
    ) -> Result<(Self, QuotaSelection), Status> {
        let query = QuotaQuery::decode(input).map_err(malformed)?;
        let limit = if query.is_single { 1 } else { ACCOUNTS_MAX };
        let limit = limit.min(max_len / ENTRY_LEN_MIN + 1);
        let from = match query.of {
            QuotasOf::Sids(list) => {
                let mut sids = sids(list)?;
                sids.truncate(limit);
                let selection = Self {
                    is_list: false,
                    is_single: query.is_single,
                };
                return Ok((selection, QuotaSelection::Of(sids)));
            }
            QuotasOf::From(sid) => FirstUser::Sid(sid),
            QuotasOf::All if query.restarts => FirstUser::Uid(0),
            QuotasOf::All => FirstUser::Uid(open.state.lock().next_quota),
        };
        let selection = Self {
            is_list: true,
            is_single: query.is_single,
        };
        Ok((selection, QuotaSelection::Users { from, limit }))
    }

    /// The answer in at most `max_len` bytes. A list moves the position of the open behind the last
    /// user of the answer.
    ///
    /// # Errors
    /// NO_MORE_ENTRIES if the query selects no account, BUFFER_TOO_SMALL if not even one entry
    /// fits.
    pub(super) fn answer(
        &self,
        quotas: &[DiskQuota],
        open: &Open,
        max_len: usize,
    ) -> Result<Vec<u8>, Status> {
        let limit = if self.is_single { 1 } else { usize::MAX };
        let mut writer = QuotaWriter::new(max_len);
        for quota in quotas.iter().take(limit) {
            if !writer.push(&entry(quota)) {
                break;
            }
            if self.is_list {
                open.state.lock().next_quota = quota.id.saturating_add(1);
            }
        }
        match (writer.is_empty(), quotas.is_empty()) {
            (false, _) => Ok(writer.finish()),
            (true, false) => Err(Status::BUFFER_TOO_SMALL),
            (true, true) => Err(Status::NO_MORE_ENTRIES),
        }
    }
}

/// Decodes the list of accounts.
fn sids(list: &[u8]) -> Result<Vec<Sid>, Status> {
    let mut sids = Vec::new();
    for sid in QuotaSids::new(list) {
        if sids.len() == ACCOUNTS_MAX {
            return Err(Status::INVALID_PARAMETER);
        }
        sids.push(sid.map_err(malformed)?);
    }
    Ok(sids)
}

/// Unix does not keep the time of the last change.
fn entry(quota: &DiskQuota) -> FileQuotaInformation {
    let in_bytes = |limit: Option<u64>| limit.unwrap_or(FileQuotaInformation::NO_LIMIT);
    FileQuotaInformation {
        used: quota.used,
        threshold: in_bytes(quota.limits.threshold),
        limit: in_bytes(quota.limits.limit),
        sid: quota.limits.sid,
        ..FileQuotaInformation::default()
    }
}

#[cfg(test)]
mod tests {
    use wire::FileId;
    use wire::access::FileAttributes;
    use wire::fscc::{InfoType, Quotas, quota_sids};
    use wire::query_info::{QueryInfoFlags, Request, Response};

    use super::*;
    use crate::disk_quota::QuotaLimits;
    use crate::server::scripted::{ALL, World, body};

    const QUOTA: DiskQuota = DiskQuota {
        id: 1000,
        used: 4096,
        limits: QuotaLimits {
            sid: Sid::unix_user(1000),
            threshold: None,
            limit: Some(8192),
        },
    };

    fn world() -> (World, FileId) {
        let mut world = World::new();
        world.disk.add_file("a", FileAttributes::NONE);
        world.disk.quotas = Vec::from([QUOTA, DiskQuota { id: 1001, ..QUOTA }]);
        let id = world.open("a", ALL);
        (world, id)
    }

    fn query(world: &mut World, id: FileId, input: &[u8], length: u32) -> Result<Vec<u8>, Status> {
        let request = Request {
            info_type: InfoType::QUOTA,
            file_info_class: 0,
            output_buffer_length: length,
            additional_information: 0,
            flags: QueryInfoFlags::NONE,
            file_id: id,
            input,
        };
        let reply = world.run(crate::server::query_info::start, |out| request.encode(out))?;
        let body = body(&reply);
        Ok(Response::decode(&body).expect("a response").output.to_vec())
    }

    fn input(of: QuotasOf<'_>, is_single: bool, restarts: bool) -> Vec<u8> {
        let query = QuotaQuery {
            is_single,
            restarts,
            of,
        };
        query.encode()
    }

    #[test]
    fn a_list_goes_on_behind_its_last_user() {
        let (mut world, id) = world();
        for (restarts, is_single, next) in [
            (true, true, 0),
            (false, false, 1001),
            (false, false, 1002),
            (true, false, 0),
        ] {
            let input = input(QuotasOf::All, is_single, restarts);
            let output = query(&mut world, id, &input, 4096).expect("quotas");
            let count = if is_single { 1 } else { 2 };
            assert_eq!(Quotas::new(&output).count(), count);
            let limit = if is_single {
                1
            } else {
                4096 / ENTRY_LEN_MIN + 1
            };
            let from = FirstUser::Uid(next);
            let expected = QuotaSelection::Users { from, limit };
            assert_eq!(world.disk.asked_quotas.last(), Some(&expected));
        }
    }

    #[test]
    fn a_query_names_accounts() {
        let (mut world, id) = world();
        let sids = [Sid::unix_user(1000), Sid::unix_user(7)];
        let list = quota_sids(&sids);
        let input = input(QuotasOf::Sids(&list), false, false);
        let output = query(&mut world, id, &input, 4096).expect("quotas");
        assert_eq!(world.disk.asked_quotas, [QuotaSelection::Of(sids.to_vec())]);
        let quotas: Result<Vec<_>, _> = Quotas::new(&output).collect();
        let first = quotas.expect("a list")[0];
        assert_eq!((first.used, first.limit), (4096, 8192));
        assert_eq!(first.threshold, FileQuotaInformation::NO_LIMIT);
    }

    #[test]
    fn wrong_queries_and_short_buffers_are_refused() {
        let (mut world, id) = world();
        let all = input(QuotasOf::All, false, true);
        let result = query(&mut world, id, &all, 40);
        assert_eq!(result, Err(Status::BUFFER_TOO_SMALL));
        for wrong in [&all[..15], &[]] {
            let result = query(&mut world, id, wrong, 4096);
            assert_eq!(result, Err(Status::INVALID_PARAMETER));
        }
        let many = quota_sids(&[Sid::EVERYONE; ACCOUNTS_MAX + 1]);
        let many = input(QuotasOf::Sids(&many), false, false);
        let result = query(&mut world, id, &many, 4096);
        assert_eq!(result, Err(Status::INVALID_PARAMETER));
        world.disk.quotas.clear();
        let result = query(&mut world, id, &all, 4096);
        assert_eq!(result, Err(Status::NO_MORE_ENTRIES));
    }
}
