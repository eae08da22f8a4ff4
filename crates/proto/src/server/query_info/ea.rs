//! The extended attributes of a file: which of them a query selects, and the answer.
//! \[MS-SMB2\] 3.3.5.20.1, \[MS-FSA\] 2.1.5.12.14

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::Status;
use wire::fscc::{EaFlags, EaNames, EaWriter, FileEaInformation, FullEa, is_valid_ea_name};
use wire::query_info::{QueryInfoFlags, Request};

use crate::ea::{Ea, list_len};
use crate::file::StreamId;
use crate::server::open::Open;

/// Maximum length in bytes of a list of names. More names than that fit in no answer.
const NAMES_MAX: usize = 64 << 10;

/// The size of the attributes of a file.
pub(super) fn size(eas: &[Ea]) -> FileEaInformation {
    FileEaInformation {
        ea_size: u32::try_from(list_len(eas)).unwrap_or(u32::MAX),
    }
}

/// The attributes that a query selects.
pub(super) struct Selection {
    from: From,
    is_single: bool,
}

/// Where the answer starts.
enum From {
    /// The attributes with these names, in this order.
    Names(Vec<Vec<u8>>),
    /// The attribute with this index, which starts at 0, and those after it.
    Index(usize),
    /// The attribute after the last one that the open has returned.
    Last,
}

impl Selection {
    /// Reads the selection of a query. Names come before an index, and an index before
    /// RESTART_SCAN, as in Windows.
    pub(super) fn new(request: &Request<'_>, open: &Open) -> Result<Self, Status> {
        // As with Samba: the attributes belong to the file, not to its streams.
        if open.key.stream != StreamId::DATA {
            return Err(Status::INVALID_PARAMETER);
        }
        let has = |flag| request.flags.contains(flag);
        let from = if !request.input.is_empty() {
            From::Names(names(request.input)?)
        } else if has(QueryInfoFlags::INDEX_SPECIFIED) {
            let index = request.additional_information.checked_sub(1);
            From::Index(index.ok_or(Status::NONEXISTENT_EA_ENTRY)? as usize)
        } else if has(QueryInfoFlags::RESTART_SCAN) {
            open.state.lock().next_ea = 0;
            From::Last
        } else {
            From::Last
        };
        Ok(Self {
            from,
            is_single: has(QueryInfoFlags::RETURN_SINGLE_ENTRY),
        })
    }

    /// The answer in at most `max_len` bytes, with SUCCESS or BUFFER_OVERFLOW. A query without
    /// names moves the position of the open to the first attribute that the answer does not have.
    ///
    /// # Errors
    /// BUFFER_TOO_SMALL if not even one attribute fits, and the statuses of a file without
    /// (further) attributes.
    pub(super) fn answer(
        &self,
        eas: &[Ea],
        open: &Open,
        max_len: usize,
    ) -> Result<(Status, Vec<u8>), Status> {
        if let From::Names(names) = &self.from {
            let (status, _, bytes) = self.fill(named(names, eas, open.is_posix), max_len)?;
            return Ok((status, bytes));
        }
        if eas.is_empty() {
            return Err(Status::NO_EAS_ON_FILE);
        }
        let start = match self.from {
            From::Index(index) if index == eas.len() => return Err(Status::NO_MORE_EAS),
            From::Index(index) if index > eas.len() => return Err(Status::NONEXISTENT_EA_ENTRY),
            From::Index(index) => index,
            From::Last | From::Names(_) => open.state.lock().next_ea,
        };
        let rest = eas.get(start..).unwrap_or_default();
        if rest.is_empty() {
            return Err(Status::NO_MORE_EAS);
        }
        let (status, count, bytes) = self.fill(rest.iter().map(as_pair), max_len)?;
        open.state.lock().next_ea = start + count;
        Ok((status, bytes))
    }

    /// Encodes as many attributes as fit, and returns their number.
    fn fill<'a>(
        &self,
        eas: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        max_len: usize,
    ) -> Result<(Status, usize, Vec<u8>), Status> {
        let limit = if self.is_single { 1 } else { usize::MAX };
        let mut writer = EaWriter::new(max_len);
        let mut count = 0;
        for (name, value) in eas.take(limit) {
            let flags = EaFlags::default();
            if !writer.push(&FullEa { flags, name, value }) {
                return match count {
                    0 => Err(Status::BUFFER_TOO_SMALL),
                    count => Ok((Status::BUFFER_OVERFLOW, count, writer.finish())),
                };
            }
            count += 1;
        }
        Ok((Status::SUCCESS, count, writer.finish()))
    }
}

/// Decodes the list of names.
fn names(input: &[u8]) -> Result<Vec<Vec<u8>>, Status> {
    if input.len() > NAMES_MAX {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut names = Vec::new();
    for name in EaNames::new(input) {
        let name = name.map_err(|_| Status::EA_LIST_INCONSISTENT)?;
        if !is_valid_ea_name(name) {
            return Err(Status::INVALID_EA_NAME);
        }
        names.push(name.to_vec());
    }
    Ok(names)
}

fn as_pair(ea: &Ea) -> (&[u8], &[u8]) {
    (&ea.name, &ea.value)
}

/// The attributes with these names: each name once. The value of a name that the file does not have
/// is empty. `is_exact`: names that differ in case are different.
fn named<'a>(
    names: &'a [Vec<u8>],
    eas: &'a [Ea],
    is_exact: bool,
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let fold = move |name: &[u8]| match is_exact {
        true => name.to_vec(),
        false => name.to_ascii_uppercase(),
    };
    // Of two names that differ only in case, the first one counts, as for a change.
    let by_name: BTreeMap<_, _> = eas.iter().rev().map(|ea| (fold(&ea.name), ea)).collect();
    let mut seen = BTreeSet::new();
    names.iter().filter_map(move |name| {
        let folded = fold(name);
        let found = by_name.get(&folded).copied();
        let is_new = seen.insert(folded);
        is_new.then(|| found.map_or((name.as_slice(), &[][..]), as_pair))
    })
}

#[cfg(test)]
mod tests;
