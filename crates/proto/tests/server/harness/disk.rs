//! A file system in memory: names without regard to case, no links, one share.

use std::collections::BTreeMap;

use proto::effect::{Outcome, Payload, PayloadToken, ReadPlan, WriteData, WritePlan};
use proto::file::{
    self, CopyPlan, Existing, FileKey, FileKind, FileOp, KindWanted, LocalOpen, Metadata, OpenPlan,
    Opened, Operation, StreamId,
};
use proto::time::Now;
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

/// Upper limit of the size of a file in bytes.
const CAPACITY: usize = 1 << 20;

/// Files, opens, and read payloads that are not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// By their names in lower case.
    files: BTreeMap<String, File>,
    /// By slot: the name of the file.
    pub(crate) opens: BTreeMap<u64, String>,
    /// Watched directories, and whether each watch is recursive.
    pub(crate) watched: Vec<(LocalOpen, bool)>,
    /// Whether the root directories of the shares are missing.
    pub(crate) is_unmounted: bool,
    /// Whether the disk denies all opens.
    pub(crate) denies_opens: bool,
    payloads: BTreeMap<PayloadToken, Vec<u8>>,
    /// Number of copied chunks.
    pub(crate) copies: usize,
    next: u64,
}

#[derive(Debug, Default)]
struct File {
    metadata: Metadata,
    data: Vec<u8>,
}

impl Disk {
    /// Whether the file exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.contains_key(&name.to_lowercase())
    }

    /// The data of a file.
    pub(crate) fn content(&self, name: &str) -> &[u8] {
        &self.files[&name.to_lowercase()].data
    }

    /// The key of the file with a name.
    pub(crate) fn key(&self, name: &str) -> FileKey {
        self.files[&name.to_lowercase()].metadata.key
    }

    /// Number of payloads neither sent nor released.
    pub(crate) fn payloads(&self) -> usize {
        self.payloads.len()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn file(&mut self, open: LocalOpen) -> &mut File {
        let name = self.opens.get(&open.slot).expect("the slot is open");
        self.files.get_mut(name).expect("an open file is there")
    }

    pub(crate) fn take(&mut self, token: PayloadToken) -> Vec<u8> {
        self.payloads
            .remove(&token)
            .expect("a payload is sent once")
    }

    pub(crate) fn release(&mut self, token: PayloadToken) {
        self.take(token);
    }

    pub(crate) fn read(&mut self, plan: &ReadPlan) -> Outcome {
        let data = &self.file(plan.file).data;
        let start = usize::try_from(plan.offset)
            .unwrap_or(usize::MAX)
            .min(data.len());
        let end = start.saturating_add(plan.length as usize).min(data.len());
        let bytes = data[start..end].to_vec();
        let token = PayloadToken(self.number());
        let len = bytes.len() as u32;
        self.payloads.insert(token, bytes);
        Outcome::Read(Payload { token, len })
    }

    pub(crate) fn write(&mut self, plan: &WritePlan, frame: &[u8]) -> Outcome {
        let bytes = match &plan.data {
            WriteData::Inbound(range) => frame[range.clone()].to_vec(),
            WriteData::Owned(bytes) => bytes.clone(),
            WriteData::Remote(_) => panic!("the rig fetches it before"),
        };
        let file = self.file(plan.file);
        let start = plan
            .offset
            .map_or(file.data.len(), |offset| offset as usize);
        let end = start.saturating_add(bytes.len());
        if end > CAPACITY {
            return Outcome::Failed(Status::DISK_FULL);
        }
        if file.data.len() < end {
            file.data.resize(end, 0);
        }
        file.data[start..end].copy_from_slice(&bytes);
        file.metadata.size = file.data.len() as u64;
        Outcome::Written(bytes.len() as u32)
    }

    fn copy(&mut self, target: LocalOpen, plan: &CopyPlan) -> Result<file::Outcome, Status> {
        self.copies += 1;
        let start = plan.source_offset as usize;
        let end = start + plan.length as usize;
        let Some(bytes) = self
            .file(plan.source)
            .data
            .get(start..end)
            .map(<[u8]>::to_vec)
        else {
            return Err(Status::INVALID_VIEW_SIZE);
        };
        let to = plan.target_offset as usize;
        let target = self.file(target);
        let len = target.data.len().max(to + bytes.len());
        target.data.resize(len, 0);
        target.data[to..to + bytes.len()].copy_from_slice(&bytes);
        target.metadata.size = len as u64;
        Ok(file::Outcome::Copied {
            count: plan.length,
            status: Status::SUCCESS,
        })
    }

    pub(crate) fn perform(&mut self, operation: FileOp, now: Now) -> Result<file::Outcome, Status> {
        match operation {
            FileOp::OnOpen(file, Operation::CopyRange(plan)) => self.copy(file, &plan),
            FileOp::Open(_) if self.denies_opens => Err(Status::ACCESS_DENIED),
            FileOp::Open(plan) => self.open(&plan, now),
            FileOp::FindRoot { .. } => match self.is_unmounted {
                true => Err(Status::BAD_NETWORK_NAME),
                false => Ok(file::Outcome::Done),
            },
            FileOp::OnOpen(open, Operation::Close) => {
                self.opens
                    .remove(&open.slot)
                    .expect("a slot is closed once");
                Ok(file::Outcome::Done)
            }
            FileOp::OnOpen(open, Operation::Stat) => {
                Ok(file::Outcome::Metadata(self.file(open).metadata))
            }
            FileOp::OnOpen(file, Operation::Overwrite { .. }) => {
                let file = self.file(file);
                file.data.clear();
                file.metadata.size = 0;
                Ok(file::Outcome::Metadata(file.metadata))
            }
            FileOp::OnOpen(file, Operation::SetEndOfFile { length }) => {
                let file = self.file(file);
                file.data.resize(length as usize, 0);
                file.metadata.size = length;
                Ok(file::Outcome::Done)
            }
            FileOp::OnOpen(file, Operation::Watch { is_tree }) => {
                self.watched.push((file, is_tree));
                Ok(file::Outcome::Done)
            }
            FileOp::OnOpen(_, Operation::LookUp { path, .. }) => {
                let found = self.files.get(&path.as_str().to_lowercase());
                Ok(file::Outcome::Found(found.map(|file| file.metadata)))
            }
            FileOp::OnOpen(file, Operation::Rename { to, .. }) => {
                let from = self.opens[&file.slot].clone();
                let name = to.as_str().to_lowercase();
                let file = self.files.remove(&from).expect("an open file is there");
                self.files.insert(name.clone(), file);
                let opens = self.opens.values_mut();
                let renamed = opens.filter(|open| **open == from);
                renamed.for_each(|open| open.clone_from(&name));
                Ok(file::Outcome::Renamed(to))
            }
            FileOp::OnOpen(_, Operation::Unlink { path, .. }) => {
                self.files.remove(&path.as_str().to_lowercase());
                Ok(file::Outcome::Done)
            }
            FileOp::OnOpen(
                _,
                Operation::Flush | Operation::CheckEmpty | Operation::CheckDelete,
            ) => Ok(file::Outcome::Done),
            FileOp::OnOpen(_, Operation::ReadReparse) => Err(Status::NOT_A_REPARSE_POINT),
            _ => Err(Status::NOT_SUPPORTED),
        }
    }

    fn open(&mut self, plan: &OpenPlan, now: Now) -> Result<file::Outcome, Status> {
        let name = plan.path.as_str().to_lowercase();
        let is_there = name.is_empty() || self.files.contains_key(&name);
        let created = match (plan.existing, is_there) {
            (Existing::Open, false) => return Err(Status::OBJECT_NAME_NOT_FOUND),
            (Existing::Create, true) => return Err(Status::OBJECT_NAME_COLLISION),
            (_, is_there) => !is_there,
        };
        if !self.files.contains_key(&name) {
            let is_directory = name.is_empty() || plan.kind == KindWanted::Directory;
            let metadata = self.new_metadata(is_directory, now);
            let data = Vec::new();
            self.files.insert(name.clone(), File { metadata, data });
        }
        let slot = self.number();
        let metadata = self.files[&name].metadata;
        self.opens.insert(slot, name);
        Ok(file::Outcome::Opened(Opened {
            file: LocalOpen {
                share: plan.share,
                slot,
            },
            created,
            granted: plan.access,
            maximal: AccessMask(0x001F_01FF),
            metadata,
            path: plan.path.clone(),
        }))
    }

    fn new_metadata(&mut self, is_directory: bool, now: Now) -> Metadata {
        let (kind, attributes) = match is_directory {
            true => (FileKind::Directory, FileAttributes::DIRECTORY),
            false => (FileKind::File, FileAttributes::ARCHIVE),
        };
        Metadata {
            key: FileKey {
                volume: 1,
                file: self.number(),
                stream: StreamId::DATA,
            },
            kind,
            attributes,
            links: 1,
            created: now.wall,
            accessed: now.wall,
            written: now.wall,
            changed: now.wall,
            ..Metadata::default()
        }
    }
}
