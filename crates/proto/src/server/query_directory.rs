//! QUERY_DIRECTORY. \[MS-SMB2\] 3.3.5.18
//!
//! The file system is asked for entries in batches of about as many as the answer takes. What did
//! not fit stays with the open and begins the next answer. That is little on purpose: a file that
//! goes between two requests should not be listed any more. smbtorture smb2.dir.fixed

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::access::AccessMask;
use wire::fscc::{self, DirectoryWriter, FileInfoClass};
use wire::posix::PosixAttributes;
use wire::query_directory::{QueryDirectoryFlags, Request, Response};
use wire::text::utf16;
use wire::{Status, Utf16, posix_name};

use crate::effect::Outcome;
use crate::file::{DirectoryEntry, DirectoryPlan, FileOp, Operation, Select};
use crate::path::MAX_COMPONENT_UNITS;
use crate::pattern::Pattern;
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::{Enumeration, Need, Open, malformed, wire_attributes};
use crate::server::posix;

/// Maximum number of entries in a batch, and so of the entries that an open buffers.
const MAX_BATCH: usize = 1024;
/// Maximum number of entries in the first batch of an answer, before the usual length of an entry
/// is known. Entries that do not fit use memory until the next request.
const MAX_FIRST_BATCH: usize = 256;
/// Maximum length in bytes of an answer. A client requests the rest with another request. A longer
/// answer gains nothing, and the server would hold many of them for a client that does not receive.
const MAX_ANSWER_LEN: usize = 1 << 20;
/// Maximum length in bytes of all answers of a compound.
const MAX_COMPOUND_LEN: usize = 8 << 20;
/// Length in bytes of an entry in most listings. More free space than this is worth another batch.
const USUAL_NAME_LEN: usize = 24;

/// An answer in the making.
pub(crate) struct Step {
    open: Arc<Open>,
    /// The scan that the answer is of.
    scan: u64,
    writer: Box<DirectoryWriter>,
    /// Bytes of the answer at most.
    max_len: usize,
    /// Bytes that most entries take.
    usual_len: usize,
    /// Number of requested entries.
    batch: usize,
    /// Entries at most.
    max_count: usize,
    /// Whether it is an open of the SMB3 POSIX extensions for the root of the share.
    is_root: bool,
}

/// How far the entries at hand have brought an answer.
enum Filled {
    /// It takes no more.
    Full,
    /// It takes more.
    Hungry,
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    // One credit pays for any pattern.
    context.check_charge(request.output_buffer_length)?;
    let open = context.open(request.file_id)?;
    if !open.is_directory {
        return Err(Status::INVALID_PARAMETER);
    }
    open.authorize(Need::Right(AccessMask::FILE_LIST_DIRECTORY))?;
    if request.output_buffer_length > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    let class = FileInfoClass(request.file_information_class);
    let length = (request.output_buffer_length as usize).min(MAX_ANSWER_LEN);
    let entry_len = entry_len(class, &open)?;
    if length < entry_len {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    if context.response_bytes + length > MAX_COMPOUND_LEN {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    let select = match open.is_posix {
        true => select_posix(request.pattern)?,
        false => select(request.pattern)?,
    };
    let writer = DirectoryWriter::new(class, length).ok_or(Status::INVALID_INFO_CLASS)?;
    let is_single = (request.flags).contains(QueryDirectoryFlags::RETURN_SINGLE_ENTRY);
    let path = || context.server.files.path(open.key, open.file);
    let is_root = open.is_posix && path().is_none_or(|path| path.is_root());
    let step = Step {
        scan: prepare(&open, &request, select),
        open,
        writer: Box::new(writer),
        max_len: length,
        usual_len: entry_len + USUAL_NAME_LEN,
        batch: 0,
        max_count: if is_single { 1 } else { usize::MAX },
        is_root,
    };
    step.serve_left_over(context)
}

/// The length of an entry without its name, if the class is one that is listed: 100 needs an open
/// of the SMB3 POSIX extensions.
fn entry_len(class: FileInfoClass, open: &Open) -> Result<usize, Status> {
    let is_listed = class != FileInfoClass::POSIX || open.is_posix;
    let entry_len = class.entry_len().filter(|_| is_listed);
    entry_len.ok_or(Status::INVALID_INFO_CLASS)
}

/// What a pattern selects. Samba refuses an empty one; \[MS-FSA\] 2.1.5.6.3 does so for a first
/// call only.
fn select(pattern: Utf16<'_>) -> Result<Select, Status> {
    if pattern.len() > MAX_COMPONENT_UNITS * 2 {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    let text = pattern.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
    if text.is_empty() || text.contains(['\\', '/', '\0']) {
        return Err(Status::OBJECT_NAME_INVALID);
    }
    let pattern = Pattern::new(&text);
    Ok(if pattern.is_all() {
        Select::All
    } else if pattern.is_literal() {
        Select::Name(text)
    } else {
        Select::Matching(pattern)
    })
}

/// What a pattern selects in an open of the SMB3 POSIX extensions: `*` all entries, another one
/// the entry with just this name. Samba has wildcards here too, but no client sends them.
fn select_posix(pattern: Utf16<'_>) -> Result<Select, Status> {
    let text = pattern.decode().ok_or(Status::OBJECT_NAME_INVALID)?;
    match &*text {
        "*" => Ok(Select::All),
        "." | ".." => Ok(Select::Name(text)),
        text if text.len() > MAX_COMPONENT_UNITS => Err(Status::OBJECT_NAME_INVALID),
        text => {
            let name = posix_name::to_mapped(text).ok_or(Status::OBJECT_NAME_INVALID)?;
            Ok(Select::Name(name.into_owned()))
        }
    }
}

/// Starts the scan if there is none or it is to start again. \[MS-FSA\] 2.1.5.6.3: the pattern of
/// the first call holds until then. FileIndex is passed over, as NTFS and Samba do.
fn prepare(open: &Open, request: &Request<'_>, select: Select) -> u64 {
    let starts_again = QueryDirectoryFlags::RESTART_SCANS | QueryDirectoryFlags::REOPEN;
    let mut state = open.state.lock();
    let scan = match &state.enumeration {
        Some(enumeration) if !request.flags.intersects(starts_again) => return enumeration.scan,
        Some(enumeration) => enumeration.scan + 1,
        None => 0,
    };
    state.enumeration = Some(Enumeration {
        scan,
        select,
        restart: true,
        left_over: Vec::new(),
        has_matched: false,
    });
    scan
}

impl Step {
    pub(crate) fn resume(
        mut self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        let mut entries = match outcome.expect_file() {
            Ok(outcome) => outcome.expect_directory(),
            // The entries so far are the response; the error will recur with the next request.
            Err(_) if !self.writer.is_empty() => return self.finish(),
            Err(status) => return Err(status),
        };
        // [`DirectoryPlan::limit`]: fewer come only at the end.
        let is_end = entries.len() < self.batch;
        entries.reverse();
        match self.fill(entries)? {
            Filled::Hungry if !is_end && self.has_room() => Ok(self.read_more(context)),
            _ => self.finish(),
        }
    }

    /// Starts with the entries that the last response left over.
    fn serve_left_over(mut self, context: &mut Context<'_>) -> Result<Progress<Step>, Status> {
        let mut state = self.open.state.lock();
        let enumeration = state.enumeration.as_mut();
        let entries = enumeration.map_or(Vec::new(), |it| core::mem::take(&mut it.left_over));
        drop(state);
        match self.fill(entries)? {
            Filled::Hungry if self.has_room() => Ok(self.read_more(context)),
            _ => self.finish(),
        }
    }

    /// Upper bound of the bytes of the answer.
    pub(crate) fn response_len(&self) -> usize {
        self.max_len
    }

    /// Whether one more entry is likely to fit.
    fn has_room(&self) -> bool {
        self.writer.is_empty() || self.max_len - self.writer.len() >= self.usual_len
    }

    /// Asks for as many entries as are likely to fit.
    fn read_more(mut self, context: &mut Context<'_>) -> Progress<Step> {
        let (written, count) = (self.writer.len(), self.writer.count());
        let (entry_len, most) = match written.checked_div(count) {
            None => (self.usual_len, MAX_FIRST_BATCH),
            Some(average) => (average.max(self.usual_len), MAX_BATCH),
        };
        let fitting = (self.max_len - written) / entry_len;
        let wanted = self.max_count - count;
        self.batch = fitting.min(wanted).clamp(1, most);
        let mut state = self.open.state.lock();
        let (restart, select) = match &mut state.enumeration {
            Some(it) => (core::mem::take(&mut it.restart), it.select.clone()),
            None => (true, Select::All),
        };
        drop(state);
        let plan = DirectoryPlan {
            restart,
            select,
            limit: u32::try_from(self.batch).expect("a batch is small"),
        };
        let operation = FileOp::OnOpen(self.open.file, Operation::ReadDirectory(plan));
        context.wait(operation, self)
    }

    /// Puts entries into the answer, the last one first, as many as fit; the others are left over.
    fn fill(&mut self, mut entries: Vec<DirectoryEntry>) -> Result<Filled, Status> {
        while let Some(entry) = entries.last() {
            if self.writer.count() == self.max_count || !self.push(entry) {
                let is_empty = self.writer.is_empty();
                self.keep(entries);
                // Samba's word for a buffer that holds not even one entry.
                return if is_empty {
                    Err(Status::INFO_LENGTH_MISMATCH)
                } else {
                    Ok(Filled::Full)
                };
            }
            entries.pop();
        }
        if self.writer.count() == self.max_count {
            return Ok(Filled::Full);
        }
        Ok(Filled::Hungry)
    }

    /// Appends an entry in the form of the class; false where it does not fit.
    fn push(&mut self, entry: &DirectoryEntry) -> bool {
        let DirectoryEntry { name, metadata } = entry;
        let is_posix = self.open.is_posix;
        let shown = match is_posix {
            // Every mapped name has a name on the disk.
            true => posix_name::from_mapped(name).unwrap_or(Cow::Borrowed(name)),
            false => Cow::Borrowed(&**name),
        };
        let is_above_root = name == ".." && self.is_root;
        let (file_id, posix) = match is_above_root {
            true => (0, posix::attributes_above_root(metadata)),
            false if is_posix => (metadata.file_id(), posix::attributes(metadata)),
            false => (metadata.file_id(), PosixAttributes::default()),
        };
        let name = utf16(&shown);
        self.writer.push(&fscc::DirectoryEntry {
            created: metadata.created,
            accessed: metadata.accessed,
            written: metadata.written,
            changed: metadata.changed,
            end_of_file: metadata.size,
            allocation_size: metadata.allocation,
            attributes: wire_attributes(metadata),
            reparse_tag: metadata.reparse_tag.0,
            file_id,
            file_id_high: metadata.volume.tag,
            // No 8.3 names and no place that lasts. EaSize is 0: all classes of ordinary listings
            // have the field, so clients cannot ask for it, and it would cost a list of attributes
            // and a read of each attribute for every entry. Samba pays that with `ea support`.
            // Clients that need the size query the file (FileEaInformation), which has it.
            short_name: Utf16(&[]),
            name: Utf16(&name),
            posix,
            ..fscc::DirectoryEntry::default()
        })
    }

    /// Leaves entries for the next answer, the next one last, unless the scan started again
    /// meanwhile. Those of an answer made at the same time stay behind these.
    fn keep(&self, mut entries: Vec<DirectoryEntry>) {
        let mut state = self.open.state.lock();
        if let Some(enumeration) = &mut state.enumeration
            && enumeration.scan == self.scan
        {
            enumeration.left_over.append(&mut entries);
        }
    }

    fn finish(self) -> Result<Progress<Step>, Status> {
        let mut state = self.open.state.lock();
        let is_empty = self.writer.is_empty();
        let mut has_matched = !is_empty;
        if let Some(enumeration) = &mut state.enumeration
            && enumeration.scan == self.scan
        {
            has_matched |= enumeration.has_matched;
            enumeration.has_matched = has_matched;
        }
        drop(state);
        if is_empty {
            return Err(if has_matched {
                Status::NO_MORE_FILES
            } else {
                Status::NO_SUCH_FILE
            });
        }
        let output = self.writer.finish();
        let reply = Reply::message(|out| Response { output: &output }.encode(out));
        Ok(Progress::Done(reply))
    }
}

#[cfg(test)]
mod tests;
