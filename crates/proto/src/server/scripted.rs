//! The environment for tests of single handlers: one session in one share, one request at a time,
//! and a small file system in memory that records the requested operations.
//!
//! This module is in `src` under `cfg(test)`, because its tests call one handler at a time with a
//! [`Context`] that they choose, and read tables that are private to the crate. Tests that need
//! only the public interface are in `tests/server`; they send frames to a connection.

mod spoiled_messages;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use crypto::SigningAlgorithm;
use spin::Mutex;
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::dialect::Dialect;
use wire::header::{HEADER_LEN, Target};
use wire::lock::{LockElement, LockFlags};
use wire::posix::PosixMode;
use wire::reparse::ReparseTag;
use wire::security::SecurityDescriptor;
use wire::smbd::BufferDescriptorV1;
use wire::text::utf16;
use wire::{
    Command, FileId, FileTime, Flags, Guid, Header, MessageId, SessionId, Status, TreeId, Utf16,
    close, create,
};

use crate::carrier::{Carrier, RdmaLimits};
use crate::disk_quota::{DiskQuota, QuotaLimits, QuotaSelection, QuotaState};
use crate::ea::Ea;
use crate::effect::{
    Access, Delivery, Effect, Effects, Outcome, Payload, PayloadToken, ReadPlan, WriteData,
    WritePlan,
};
use crate::file::{
    self, CopyPlan, DirectoryEntry, Existing, FileKey, FileKind, FileOp, KindWanted, LocalOpen,
    Metadata, OpenPlan, Opened, Operation, ShareId, StreamId, VolumeId, VolumeInfo, VolumeKind,
};
use crate::id::ConnectionId;
use crate::login::{Account, AccountKind, AccountsRevision};
use crate::notice::Notice;
use crate::path::SharePath;
use crate::report::Report;
use crate::server::Server;
use crate::server::audit::Draft;
use crate::server::channel::{Channel, ChannelList};
use crate::server::config::{Config, Limits, Share, ShareKind, SyncPolicy};
use crate::server::context::{Body, Context, Progress, RelatedOpen, Reply};
use crate::server::hosts::HostRules;
use crate::server::ledger::Ledger;
use crate::server::op_ids::OpIds;
use crate::server::outstanding_request::OutstandingRequest;
use crate::server::quota::Quotas;
use crate::server::session::{Origin, Session, SessionState};
use crate::server::share_users::ShareUsers;
use crate::server::step::Step;
use crate::server::tree::TreeConnect;
use crate::time::{Instant, Now};
use crate::token::Token;
use crate::violation::Violation;

/// FILE_ALL_ACCESS.
pub(crate) const ALL: AccessMask = AccessMask(0x001F_01FF);
/// Shares all access.
pub(crate) const SHARE_ALL: ShareAccess = ShareAccess(7);

/// The `start` function of a handler.
type Start<S> = fn(&mut Context<'_>, &[u8]) -> Result<Progress<S>, Status>;

/// A session with one tree connect, and its file system.
pub(crate) struct World {
    pub(crate) server: Arc<Server>,
    pub(crate) config: Arc<Config>,
    pub(crate) session: Arc<Session>,
    pub(crate) tree: Arc<TreeConnect>,
    related: RelatedOpen,
    pub(crate) dialect: Dialect,
    pub(crate) disk: Disk,
    /// Offset of the message of the next request in its frame.
    pub(crate) frame_offset: Option<usize>,
    /// CreditCharge of the next request.
    pub(crate) credit_charge: u16,
    /// Whether the client cancels the next request while it waits.
    pub(crate) is_cancelled: bool,
    /// Whether NEGOTIATE offered multichannel.
    pub(crate) has_multichannel: bool,
    pub(crate) has_posix: bool,
    pub(crate) lock_waits: Arc<AtomicUsize>,
    /// Notices that handlers sent to connections.
    pub(crate) notices: Vec<Notice>,
    /// Reports of handlers.
    pub(crate) reports: Vec<Report>,
    draft: Option<Box<Draft>>,
    pub(crate) carrier: Carrier,
    /// Whether the next request is encrypted.
    pub(crate) is_encrypted: bool,
    /// The key of client memory that the response to the last request invalidates.
    pub(crate) invalidate: Option<u32>,
    /// Bytes of the file that the last request read or wrote.
    pub(crate) transferred: u32,
    /// The violation that ended the connection, if it ended.
    pub(crate) ended: Option<Violation>,
    op_ids: OpIds,
    outstanding: Option<OutstandingRequest>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(disk_share(), ALL, Limits::default())
    }

    pub(crate) fn read_only() -> Self {
        let share = Share {
            read_only: true,
            ..disk_share()
        };
        Self::of(share, AccessMask(0x0012_00A9), Limits::default())
    }

    pub(crate) fn of(share: Share, maximal_access: AccessMask, limits: Limits) -> Self {
        let share = Arc::new(share);
        let tree = Arc::new(TreeConnect {
            id: TreeId(5),
            share: share.clone(),
            maximal_access,
            is_read_only: share.read_only,
        });
        let config = Config {
            limits,
            shares: Vec::from([share]),
            ..Config::default()
        };
        let server = Server::new(config, now());
        let config = server.settings();
        let session = session(&tree);
        server.sessions.lock().insert(session.clone());
        Self {
            server,
            config,
            session,
            tree,
            related: RelatedOpen::None,
            dialect: Dialect::SMB_3_1_1,
            disk: Disk::new(),
            frame_offset: Some(0),
            // 8 MiB.
            credit_charge: 128,
            is_cancelled: false,
            has_multichannel: false,
            has_posix: false,
            lock_waits: Arc::default(),
            notices: Vec::new(),
            reports: Vec::new(),
            draft: None,
            carrier: Carrier::TCP,
            is_encrypted: false,
            invalidate: None,
            transferred: 0,
            ended: None,
            op_ids: OpIds::default(),
            outstanding: None,
        }
    }

    /// Runs a request to its end. The disk completes each operation at once.
    pub(crate) fn run<S>(
        &mut self,
        start: Start<S>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Reply, Status>
    where
        Step: From<S>,
    {
        let mut message = vec![0; HEADER_LEN];
        encode(&mut message);
        self.run_message(start, &message)
    }

    /// Runs a request from the bytes of its message.
    pub(crate) fn run_message<S>(
        &mut self,
        start: Start<S>,
        message: &[u8],
    ) -> Result<Reply, Status>
    where
        Step: From<S>,
    {
        let mut effects = Effects::new();
        self.outstanding = None;
        self.invalidate = None;
        self.transferred = 0;
        // No request is related to the previous one.
        self.related = RelatedOpen::None;
        let started = start(&mut self.context(&mut effects), message);
        let mut progress = started.map(Progress::<S>::widen::<Step>);
        loop {
            let waited = match &progress {
                Ok(Progress::Wait(op, _)) => Some(*op),
                _ => None,
            };
            let mut outcome = None;
            while let Some(effect) = effects.pop() {
                let (op, came) = match effect {
                    Effect::File(op, operation) => (op, self.disk.perform(operation).into()),
                    Effect::Read(plan) => (plan.op, self.disk.read(plan)),
                    Effect::Write(plan) => (plan.op, self.disk.write(plan)),
                    Effect::Release(token) => {
                        self.disk.released.push(token);
                        continue;
                    }
                    Effect::Notify(_, notice) => {
                        self.notices.push(notice);
                        continue;
                    }
                    Effect::Report(report) => {
                        self.reports.push(*report);
                        continue;
                    }
                    other => panic!("no handler asks for {other:?}"),
                };
                if Some(op) == waited {
                    outcome = Some(came);
                }
            }
            progress = match progress {
                Ok(Progress::Wait(_, step)) => {
                    let outcome = outcome.expect("a handler waits for its own operation");
                    step.resume(&mut self.context(&mut effects), outcome)
                }
                Ok(Progress::Done(reply)) => return Ok(reply),
                Ok(Progress::End(violation)) => {
                    self.ended = Some(violation);
                    return Err(Status::IO_DEVICE_ERROR);
                }
                // No client would acknowledge the break.
                Ok(Progress::Park(..)) => return Err(Status::PENDING),
                Err(status) => return Err(status),
            };
        }
    }

    fn context<'a>(&'a mut self, effects: &'a mut Effects) -> Context<'a> {
        Context {
            now: now(),
            server: &self.server,
            config: &self.config,
            connection: ConnectionId(1),
            is_last: true,
            response_bytes: 0,
            is_cancelled: self.is_cancelled,
            is_lost: false,
            outstanding: &mut self.outstanding,
            dialect: self.dialect,
            header: header(self.credit_charge),
            session: self.session.clone(),
            tree: self.tree.clone(),
            has_large_mtu: true,
            carrier: self.carrier,
            access: Access::Opaque,
            is_encrypted: self.is_encrypted,
            invalidate: &mut self.invalidate,
            transferred: &mut self.transferred,
            audit: &mut self.draft,
            frame_offset: self.frame_offset,
            related_open: &mut self.related,
            has_multichannel: self.has_multichannel,
            has_posix: self.has_posix,
            lock_waits: &self.lock_waits,
            op_ids: &mut self.op_ids,
            effects,
        }
    }

    /// Runs a CREATE and decodes the response.
    pub(crate) fn create(&mut self, request: &create::Request<'_>) -> Result<Created, Status> {
        let reply = self.run(crate::server::create::start, |out| request.encode(out))?;
        assert_eq!(reply.status, Status::SUCCESS);
        Ok(Created::new(&body(&reply)))
    }

    /// Opens an existing file with these rights and shares all access.
    pub(crate) fn open(&mut self, name: &str, access: AccessMask) -> FileId {
        let name = utf16(&name.replace('/', "\\"));
        let request = create::Request {
            desired_access: access,
            ..request(&name)
        };
        self.create(&request).expect("the file opens").id
    }

    /// Locks a range exclusively. Offset and length are in bytes.
    pub(crate) fn lock(&mut self, file_id: FileId, offset: u64, length: u64) {
        let element = LockElement {
            offset,
            length,
            flags: LockFlags::EXCLUSIVE_LOCK | LockFlags::FAIL_IMMEDIATELY,
        };
        let request = wire::lock::Request {
            lock_sequence: 0,
            file_id,
            locks: Vec::from([element]),
        };
        let reply = self.run(crate::server::lock::start, |out| request.encode(out));
        assert_eq!(reply.expect("it is free").status, Status::SUCCESS);
    }

    pub(crate) fn close(&mut self, file_id: FileId) -> Result<Reply, Status> {
        let request = close::Request {
            flags: close::CloseFlags::NONE,
            file_id,
        };
        self.run(crate::server::close::start, |out| request.encode(out))
    }
}

/// The content of a CREATE response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Created {
    pub(crate) id: FileId,
    pub(crate) action: create::CreateAction,
    pub(crate) attributes: FileAttributes,
    pub(crate) contexts: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Created {
    fn new(message: &[u8]) -> Self {
        let response = create::Response::decode(message).expect("a response");
        let contexts = response.contexts.iter();
        Self {
            id: response.file_id,
            action: response.create_action,
            attributes: response.file_attributes,
            contexts: contexts
                .map(|context| (context.name.to_vec(), context.data.to_vec()))
                .collect(),
        }
    }
}

/// The bytes of a reply without payload.
pub(crate) fn body(reply: &Reply) -> Vec<u8> {
    match &reply.body {
        Body::Message(message) | Body::WithPayload(message, _) => message.clone(),
        Body::Error => panic!("the reply has a body"),
    }
}

/// A CREATE that opens an existing file with all rights and shares all access.
pub(crate) fn request(name: &[u8]) -> create::Request<'_> {
    create::Request {
        oplock_level: OplockLevel::NONE,
        impersonation_level: ImpersonationLevel::IMPERSONATION,
        desired_access: ALL,
        file_attributes: FileAttributes::NONE,
        share_access: SHARE_ALL,
        create_disposition: CreateDisposition::OPEN,
        create_options: CreateOptions::NONE,
        name: Utf16(name),
        contexts: Vec::new(),
    }
}

/// An SMB Direct transport.
pub(crate) fn rdma() -> Carrier {
    Carrier::smb_direct(RdmaLimits {
        max_read_write: 1 << 20,
        max_descriptors: 8,
        max_send: 128 << 10,
        max_receive: 128 << 10,
    })
}

/// The channel info for these memory segments: address, key, and length in bytes of each.
pub(crate) fn pieces(pieces: &[(u64, u32, u32)]) -> Vec<u8> {
    let mut info = Vec::new();
    for &(offset, token, length) in pieces {
        let piece = BufferDescriptorV1 {
            offset,
            token,
            length,
        };
        piece.encode(&mut info);
    }
    info
}

pub(crate) fn disk_share() -> Share {
    Share {
        id: ShareId(0),
        name: "share".to_string(),
        kind: ShareKind::Disk,
        comment: String::new(),
        read_only: false,
        listed: true,
        encryption_required: false,
        oplocks: true,
        directory_leases: true,
        durable_handles: true,
        notify: true,
        sync: SyncPolicy::default(),
        users: ShareUsers::default(),
        hosts: HostRules::default(),
        guest: false,
        force_token: None,
        access_based_enumeration: false,
        audit: Arc::default(),
        posix: true,
    }
}

pub(crate) fn now() -> Now {
    Now {
        instant: Instant::default(),
        wall: FileTime(132_000_000_000_000_000),
    }
}

fn header(credit_charge: u16) -> Header {
    Header {
        credit_charge,
        status: Status::SUCCESS,
        command: Command::CREATE,
        credits: 1,
        flags: Flags::NONE,
        next_command: 0,
        message_id: MessageId(1),
        target: Target::Sync {
            process_id: 0,
            tree_id: TreeId(5),
        },
        session_id: SessionId(9),
        signature: [0; 16],
    }
}

fn session(tree: &Arc<TreeConnect>) -> Arc<Session> {
    let account = Account {
        name: "user".to_string(),
        kind: AccountKind::Named,
        token: Arc::new(Token::new(1000, 1000, Vec::new())),
        revision: AccountsRevision::default(),
        groups: Arc::default(),
        app_password: None,
    };
    let ledger = Ledger::new(&Limits::default());
    Arc::new(Session {
        id: SessionId(9),
        user: ledger.user(&account),
        origin: Origin {
            dialect: Dialect::SMB_3_1_1,
            cipher: None,
            signing: SigningAlgorithm::AesCmac,
            client_guid: Guid::default(),
            signing_key: None,
            quotas: Quotas::default(),
        },
        created: FileTime(0),
        state: Mutex::new(SessionState {
            account,
            signing_required: false,
            encrypt: false,
            encryption_keys: None,
            expires: None,
            leaves_opens: false,
            is_closed: false,
        }),
        channels: ChannelList::new(ConnectionId(1), Channel::new(None)),
        trees: Mutex::new(BTreeMap::from([(tree.id, tree.clone())])),
        opens: Mutex::new(BTreeMap::new()),
        pipes: Mutex::new(BTreeMap::new()),
        next_tree: AtomicU32::new(6),
        next_nonce: AtomicU64::new(1),
    })
}

/// Number of bytes that the disk zeroes per operation.
pub(crate) const ZEROS_MAX: u64 = 1 << 20;

/// A small file system in memory.
pub(crate) struct Disk {
    /// The files by name in lower case.
    pub(crate) files: BTreeMap<String, Metadata>,
    opens: BTreeMap<LocalOpen, FileKey>,
    /// The descriptors that requests have set.
    pub(crate) security: BTreeMap<FileKey, SecurityDescriptor>,
    /// The requested operations, in order.
    pub(crate) log: Vec<FileOp>,
    pub(crate) writes: Vec<WritePlan>,
    pub(crate) reads: Vec<ReadPlan>,
    pub(crate) released: Vec<PayloadToken>,
    /// Whether accesses to the client's memory fail.
    pub(crate) fails_remotely: bool,
    /// The status with which the next operation other than a close fails.
    pub(crate) fail_next: Option<Status>,
    /// The status with which changes of extended attributes fail.
    pub(crate) fail_eas: Option<Status>,
    /// The status with which the next overwrite fails.
    pub(crate) fail_overwrite: Option<Status>,
    /// Number of bytes that copies can still write until the disk is full.
    pub(crate) copy_stops_after: Option<u32>,
    /// The allocated ranges of every file.
    pub(crate) pieces: Vec<Range<u64>>,
    /// Whether files can be compressed.
    pub(crate) compresses: bool,
    /// The extended attributes of every file: those of the last change.
    pub(crate) eas: Vec<Ea>,
    /// The answer to every query of quotas.
    pub(crate) quotas: Vec<DiskQuota>,
    /// The queries of quotas so far.
    pub(crate) asked_quotas: Vec<QuotaSelection>,
    /// The limits that the last request has set.
    pub(crate) set_quotas: Vec<QuotaLimits>,
    /// The entries of every directory, and the position of its listing.
    pub(crate) entries: Vec<DirectoryEntry>,
    listed: usize,
    next_number: u64,
}

impl Disk {
    fn new() -> Self {
        let mut disk = Self {
            files: BTreeMap::new(),
            opens: BTreeMap::new(),
            security: BTreeMap::new(),
            log: Vec::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            released: Vec::new(),
            fails_remotely: false,
            fail_next: None,
            fail_overwrite: None,
            fail_eas: None,
            copy_stops_after: None,
            pieces: Vec::new(),
            compresses: false,
            eas: Vec::new(),
            quotas: Vec::new(),
            asked_quotas: Vec::new(),
            set_quotas: Vec::new(),
            entries: Vec::new(),
            listed: 0,
            next_number: 100,
        };
        disk.add("", FileKind::Directory, FileAttributes::DIRECTORY);
        disk
    }

    pub(crate) fn add(&mut self, name: &str, kind: FileKind, attributes: FileAttributes) {
        self.next_number += 1;
        let metadata = Metadata {
            key: FileKey {
                volume: 1,
                file: self.next_number,
                stream: StreamId::DATA,
            },
            volume: VolumeId {
                serial: 0x1_2345_6789,
                tag: 0,
            },
            kind,
            attributes,
            stored: attributes,
            size: 0,
            allocation: 4096,
            links: 1,
            created: FileTime(1_000),
            accessed: FileTime(2_000),
            written: FileTime(3_000),
            changed: FileTime(4_000),
            mode: 0o100_644,
            posix_type: PosixMode::from_unix(0o100_644).file_type(),
            uid: 1000,
            gid: 1000,
            reparse_tag: ReparseTag::NONE,
        };
        self.files.insert(name.to_lowercase(), metadata);
    }

    pub(crate) fn add_file(&mut self, name: &str, attributes: FileAttributes) {
        self.add(name, FileKind::File, attributes);
    }

    pub(crate) fn add_directory(&mut self, name: &str) {
        self.add(name, FileKind::Directory, FileAttributes::DIRECTORY);
    }

    /// Whether a file of this name exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.contains_key(&name.to_lowercase())
    }

    /// Number of opens.
    pub(crate) fn open_count(&self) -> usize {
        self.opens.len()
    }

    /// Takes the names of the requested operations, except `Open`.
    pub(crate) fn asked(&mut self) -> Vec<String> {
        let names = self.log.drain(..).map(|operation| {
            let text = match operation {
                FileOp::Open(_) | FileOp::Reopen(_) => "Open".to_string(),
                FileOp::FindRoot { .. } => "FindRoot".to_string(),
                FileOp::FindLink { .. } => "FindLink".to_string(),
                FileOp::OnOpen(_, operation) => alloc::format!("{operation:?}"),
            };
            let end = text.find([' ', '(']).unwrap_or(text.len());
            text[..end].to_string()
        });
        names.filter(|name| name != "Open").collect()
    }

    fn read(&mut self, plan: ReadPlan) -> Outcome {
        let metadata = self.of(plan.file);
        let left = metadata.size.saturating_sub(plan.offset);
        let len = u32::try_from(left.min(u64::from(plan.length))).expect("bounded by the length");
        let is_remote = matches!(plan.delivery, Delivery::Remote(_));
        self.reads.push(plan);
        match is_remote {
            true if self.fails_remotely => Outcome::RemoteFailed,
            true => Outcome::Placed(len),
            false => Outcome::Read(Payload {
                token: PayloadToken(7),
                len,
            }),
        }
    }

    fn write(&mut self, plan: WritePlan) -> Outcome {
        if matches!(plan.data, WriteData::Remote(_)) && self.fails_remotely {
            self.writes.push(plan);
            return Outcome::RemoteFailed;
        }
        let count = u32::try_from(plan.data.len()).expect("a short write");
        let metadata = self.of(plan.file);
        let end = plan.offset.unwrap_or(metadata.size) + u64::from(count);
        metadata.size = metadata.size.max(end);
        metadata.written = FileTime(9_999);
        self.writes.push(plan);
        Outcome::Written(count)
    }

    fn copy(&mut self, target: LocalOpen, plan: &CopyPlan) -> Result<file::Outcome, Status> {
        if plan.source_offset + u64::from(plan.length) > self.of(plan.source).size {
            return Err(Status::INVALID_VIEW_SIZE);
        }
        let (count, status) = match self.copy_stops_after {
            Some(count) => (count, Status::DISK_FULL),
            None => (plan.length, Status::SUCCESS),
        };
        let metadata = self.of(target);
        let end = plan.target_offset + u64::from(count);
        metadata.size = metadata.size.max(end);
        metadata.written = FileTime(9_999);
        Ok(file::Outcome::Copied { count, status })
    }

    fn of(&mut self, file: LocalOpen) -> &mut Metadata {
        let key = self.opens[&file];
        let mut files = self.files.values_mut();
        files
            .find(|metadata| metadata.key == key)
            .expect("tests do not unlink files that they still use")
    }

    fn perform(&mut self, operation: FileOp) -> Result<file::Outcome, Status> {
        self.log.push(operation.clone());
        if let FileOp::OnOpen(file, Operation::Close) = operation {
            let was_open = self.opens.remove(&file).is_some();
            assert!(was_open, "nothing is closed twice");
            return Ok(file::Outcome::Done);
        }
        if let Some(status) = self.fail_next.take() {
            return Err(status);
        }
        if let (FileOp::OnOpen(_, Operation::Overwrite { .. }), Some(status)) =
            (&operation, self.fail_overwrite)
        {
            return Err(status);
        }
        let (file, operation) = match operation {
            FileOp::Open(plan) => return self.open(&plan),
            FileOp::Reopen(_) => return Err(Status::NOT_SUPPORTED),
            FileOp::FindRoot { .. } => return Ok(file::Outcome::Done),
            FileOp::FindLink { .. } => return Ok(file::Outcome::Link(None)),
            FileOp::OnOpen(file, operation) => (file, operation),
        };
        match operation {
            Operation::Overwrite { attributes, .. } => {
                let metadata = self.of(file);
                (metadata.size, metadata.attributes) = (0, attributes);
                Ok(file::Outcome::Metadata(*metadata))
            }
            Operation::SetBasic(changes) => {
                let metadata = self.of(file);
                metadata.written = changes.written.unwrap_or(metadata.written);
                metadata.attributes = changes.attributes.unwrap_or(metadata.attributes);
                Ok(file::Outcome::Metadata(*metadata))
            }
            Operation::Stat => Ok(file::Outcome::Metadata(*self.of(file))),
            Operation::SetMode { mode, mask } => {
                let is = self.of(file).mode;
                self.of(file).mode = is & !mask | mode & mask;
                Ok(file::Outcome::Metadata(*self.of(file)))
            }
            Operation::QuerySecurity => {
                let Metadata { uid, gid, mode, .. } = *self.of(file);
                let stored = self.security.get(&self.opens[&file]).cloned();
                let descriptor = stored.unwrap_or_else(|| {
                    SecurityDescriptor::from_unix_mode(uid, gid, mode, mode & 0o040_000 != 0)
                });
                Ok(file::Outcome::Security(Box::new(descriptor)))
            }
            Operation::SetSecurity(change) => {
                self.security.insert(self.opens[&file], change.descriptor);
                Ok(file::Outcome::Done)
            }
            Operation::SetEndOfFile { length } => {
                self.of(file).size = length;
                Ok(file::Outcome::Done)
            }
            Operation::Unlink { path, .. } => self.unlink(&path),
            Operation::Rename { to, .. } => self.rename(file, &to),
            Operation::LookUp { path, .. } => Ok(file::Outcome::Found(
                self.files.get(&path.as_str().to_lowercase()).copied(),
            )),
            Operation::CheckEmpty => self.check_empty(file),
            Operation::CheckDelete => {
                if self.of(file).attributes.contains(FileAttributes::READONLY) {
                    return Err(Status::CANNOT_DELETE);
                }
                Ok(file::Outcome::Done)
            }
            Operation::ReadDirectory(plan) => self.list(plan.restart, plan.limit as usize),
            Operation::ReadHandle
            | Operation::RenameStream { .. }
            | Operation::SetReparse { .. } => Err(Status::NOT_SUPPORTED),
            Operation::ReadReparse | Operation::RemoveReparse { .. } => {
                Err(Status::NOT_A_REPARSE_POINT)
            }
            Operation::ListStreams => {
                let Metadata {
                    size, allocation, ..
                } = *self.of(file);
                Ok(file::Outcome::Streams(Vec::from([file::StreamEntry {
                    name: None,
                    size,
                    allocation,
                }])))
            }
            Operation::QueryQuotas(selection) => {
                self.asked_quotas.push(selection);
                Ok(file::Outcome::Quotas(self.quotas.clone()))
            }
            Operation::SetQuotas { quotas } => {
                self.set_quotas = quotas;
                Ok(file::Outcome::Done)
            }
            Operation::QueryEas => Ok(file::Outcome::Eas(self.eas.clone())),
            Operation::SetEas { eas } => {
                if let Some(status) = self.fail_eas {
                    return Err(status);
                }
                self.eas = eas;
                Ok(file::Outcome::Metadata(*self.of(file)))
            }
            Operation::Volume => Ok(file::Outcome::Volume(VolumeInfo {
                block: 4096,
                total: 100,
                free: 50,
                available: 40,
                sector: 512,
                physical_sector: 4096,
                serial: 0x1_2345_6789,
                max_name: 255,
                kind: VolumeKind::Full,
                is_read_only: false,
                has_sparse_files: true,
                has_named_streams: true,
                has_extended_attributes: true,
                has_shared_extents: true,
                has_compression: self.compresses,
                quotas: QuotaState::Limited,
                created: FileTime(5_000),
                total_files: 1_000,
                free_files: 900,
            })),
            Operation::CopyRange(plan) => self.copy(file, &plan),
            Operation::CloneRange(_) => {
                self.of(file).written = FileTime(9_999);
                Ok(file::Outcome::Done)
            }
            Operation::SetCompression { is_compressed } => {
                if is_compressed && !self.compresses {
                    return Err(Status::NOT_SUPPORTED);
                }
                let metadata = self.of(file);
                let others = metadata.attributes.without(FileAttributes::COMPRESSED);
                let compressed = FileAttributes::COMPRESSED;
                metadata.attributes = if is_compressed {
                    others | compressed
                } else {
                    others
                };
                Ok(file::Outcome::Metadata(*metadata))
            }
            Operation::ZeroRange { range } => {
                self.of(file).written = FileTime(9_999);
                Ok(file::Outcome::Zeroed(
                    range.end.min(range.start + ZEROS_MAX),
                ))
            }
            Operation::SetSparse { is_sparse } => {
                let metadata = self.of(file);
                let others = metadata.attributes.without(FileAttributes::SPARSE_FILE);
                let sparse = FileAttributes::SPARSE_FILE;
                metadata.attributes = if is_sparse { others | sparse } else { others };
                Ok(file::Outcome::Metadata(*metadata))
            }
            Operation::AllocatedRanges { range, limit, .. } => {
                let within = |piece: &Range<u64>| piece.start < range.end;
                let pieces = self.pieces.iter().filter(|piece| within(piece));
                Ok(file::Outcome::Ranges(pieces.take(limit).cloned().collect()))
            }
            Operation::Trim { .. } => {
                self.of(file).written = FileTime(9_999);
                Ok(file::Outcome::Done)
            }
            Operation::Close
            | Operation::Flush
            | Operation::Link { .. }
            | Operation::SetAllocation { .. }
            | Operation::Watch { .. } => Ok(file::Outcome::Done),
        }
    }

    fn open(&mut self, plan: &OpenPlan) -> Result<file::Outcome, Status> {
        let name = plan.path.as_str().to_lowercase();
        let found = self.files.get(&name).copied();
        let created = found.is_none();
        match (found, plan.existing) {
            (None, Existing::Open) => return Err(Status::OBJECT_NAME_NOT_FOUND),
            (Some(_), Existing::Create) => return Err(Status::OBJECT_NAME_COLLISION),
            (Some(found), _) if found.is_directory() && plan.kind == KindWanted::File => {
                return Err(Status::FILE_IS_A_DIRECTORY);
            }
            (Some(found), _) if !found.is_directory() && plan.kind == KindWanted::Directory => {
                return Err(Status::NOT_A_DIRECTORY);
            }
            (None, _) if plan.kind == KindWanted::Directory => self.add_directory(&name),
            (None, _) => self.add_file(&name, plan.attributes),
            (Some(_), _) => {}
        }
        let metadata = self.files[&name];
        self.next_number += 1;
        let file = LocalOpen {
            share: plan.share,
            slot: self.next_number,
        };
        self.opens.insert(file, metadata.key);
        let is_maximum = plan.access.contains(AccessMask::MAXIMUM_ALLOWED);
        Ok(file::Outcome::Opened(Opened {
            file,
            created,
            granted: if is_maximum { ALL } else { plan.access },
            maximal: ALL,
            metadata,
            path: SharePath::from_trusted(&name),
        }))
    }

    fn unlink(&mut self, path: &SharePath) -> Result<file::Outcome, Status> {
        if self.holds_something(path.as_str()) {
            return Err(Status::DIRECTORY_NOT_EMPTY);
        }
        self.files.remove(path.as_str());
        Ok(file::Outcome::Done)
    }

    fn holds_something(&self, name: &str) -> bool {
        let directory = SharePath::from_trusted(name);
        let mut names = self.files.keys();
        names.any(|name| SharePath::from_trusted(name).is_below(&directory))
    }

    fn check_empty(&mut self, file: LocalOpen) -> Result<file::Outcome, Status> {
        let key = self.opens[&file];
        let mut files = self.files.iter();
        let (name, _) = (files.find(|(_, found)| found.key == key)).expect("it is there");
        if self.holds_something(name) {
            Err(Status::DIRECTORY_NOT_EMPTY)
        } else {
            Ok(file::Outcome::Done)
        }
    }

    fn rename(&mut self, file: LocalOpen, to: &SharePath) -> Result<file::Outcome, Status> {
        let key = self.opens[&file];
        let metadata = *self.of(file);
        self.files.retain(|_, found| found.key != key);
        self.files.insert(to.as_str().to_lowercase(), metadata);
        Ok(file::Outcome::Renamed(to.clone()))
    }

    fn list(&mut self, restart: bool, limit: usize) -> Result<file::Outcome, Status> {
        if restart {
            self.listed = 0;
        }
        let rest = self.entries[self.listed..].iter();
        let batch: Vec<DirectoryEntry> = rest.take(limit).cloned().collect();
        self.listed += batch.len();
        Ok(file::Outcome::Directory(batch))
    }
}
