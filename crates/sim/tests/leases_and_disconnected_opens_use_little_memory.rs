//! 100,000 leases and 15,000 disconnected opens exist at a time in the core over the memory file
//! system. Each lease uses at most 1 KiB beside its open, and each disconnected open with its lease
//! at most 2 KiB beside the open of the file system, which is the descriptor of a real one.
//!
//! The global allocator of this file counts all memory of the process, so the file has one test.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proto::carrier::Carrier;
use proto::effect::{Effect, Effects, Inbound, Outcome};
use proto::file::ShareId;
use proto::id::ConnectionId;
use proto::login::{Accepted, Account, AccountKind, AccountsRevision, Authenticated};
use proto::server::config::{Config, Share, ShareKind, SyncPolicy};
use proto::server::hosts::HostRules;
use proto::server::ledger::Resource;
use proto::server::share_users::ShareUsers;
use proto::server::{Connection, Server};
use proto::time::{Instant, Now};
use proto::token::Token;
use vfs::memory::{Memory, Options};
use vfs::{Effort, FileSystem};
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, ImpersonationLevel, OplockLevel,
    ShareAccess,
};
use wire::create_context::{
    DurableFlags, DurableRequestV2, Lease, LeaseFlags, LeaseState, LeaseV2, RawContext, find, name,
};
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::header::{HEADER_LEN, Target};
use wire::text::utf16;
use wire::{
    Command, FileId, FileTime, Flags, Guid, Header, MessageId, SessionId, Status, TreeId, Utf16,
    close, create, negotiate, session_setup, tree_connect,
};

/// Number of leases at a time.
const LEASES: usize = 100_000;
/// Number of disconnected opens at a time.
const DISCONNECTED: usize = 15_000;
/// Number of clients that share the leases. The limits of one client are lower than the number.
const CLIENTS: usize = 2;
/// Limit for a lease beside its open, in bytes.
const LEASE_BYTES: usize = 1024;
/// Limit for a disconnected open with its lease beside the open of the file system, in bytes.
const DISCONNECTED_BYTES: usize = 2048;
/// Time for which a disconnected open exists.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of all allocations that are not freed.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, with a count of the memory in use.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: both methods pass their arguments to `System`, which implements the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(chunk(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(chunk(layout), Ordering::Relaxed);
        // SAFETY: the pointer is of `System`, and the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that malloc of glibc uses for an allocation: a header, and a multiple of 16.
fn chunk(layout: Layout) -> usize {
    (layout.size() + size_of::<usize>())
        .next_multiple_of(16)
        .max(32)
}

fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The kind of an open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Leased,
    /// With a lease, and durable.
    Durable,
}

struct Rig {
    server: Arc<Server>,
    disk: Memory,
    now: Now,
    connections: u64,
}

impl Rig {
    /// A server with one share that has files of these names.
    fn new(names: &[String]) -> Self {
        let share = Share {
            id: ShareId(0),
            name: "data".into(),
            kind: ShareKind::Disk,
            comment: String::new(),
            read_only: false,
            listed: true,
            encryption_required: false,
            users: ShareUsers::default(),
            hosts: HostRules::default(),
            guest: false,
            oplocks: true,
            directory_leases: true,
            durable_handles: true,
            notify: true,
            sync: SyncPolicy::default(),
            access_based_enumeration: false,
            audit: Arc::default(),
            posix: false,
            force_token: None,
        };
        let mut config = Config {
            shares: vec![Arc::new(share)],
            ..Config::default()
        };
        config.limits.disconnected_opens_per_user = config.limits.disconnected_opens;
        let now = Now {
            wall: FileTime::from_unix(1_800_000_000, 0),
            ..Now::default()
        };
        let mut rig = Self {
            server: Server::new(config, now),
            disk: Memory::new(ShareId(0), Options::default()),
            now,
            connections: 0,
        };
        let mut client = Client::new(&mut rig);
        for (index, name) in names.iter().enumerate() {
            let file = client.open(&rig, name, index, Kind::Plain);
            client.close(&rig, file);
        }
        client.disconnect(&rig);
        rig
    }

    /// Calls the server until its time limits have passed.
    fn pass(&mut self, time: Duration) {
        self.now.instant = Instant(self.now.instant.0 + time);
        let mut effects = Effects::new();
        self.server.timeout(self.now, &mut effects);
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::File(op, operation) => {
                    let outcome = self.disk.execute(&operation, Effort::Blocking).done();
                    let outcome = outcome.expect("a blocking operation blocks").into();
                    self.server.complete(self.now, op, outcome, &mut effects);
                }
                Effect::ArmServerTimer => {}
                other => panic!("the server requested {other:?}"),
            }
        }
    }
}

struct Client {
    connection: Connection,
    effects: Effects,
    next_id: u64,
    session: SessionId,
    tree: TreeId,
    number: u8,
}

impl Client {
    /// A client in the share.
    fn new(rig: &mut Rig) -> Self {
        rig.connections += 1;
        let (server, id) = (rig.server.clone(), ConnectionId(rig.connections));
        let number = u8::try_from(rig.connections).expect("few clients");
        let mut client = Self {
            connection: Connection::new(server, id, Carrier::TCP, [number; 32], rig.now),
            effects: Effects::new(),
            next_id: 0,
            session: SessionId(0),
            tree: TreeId(0),
            number,
        };
        client.log_in(rig);
        client
    }

    fn log_in(&mut self, rig: &Rig) {
        let request = negotiate::Request {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::LEASING | Capabilities::LARGE_MTU,
            client_guid: Guid([self.number; 16]),
            // Later dialects demand a signed TREE_CONNECT.
            dialects: vec![Dialect::SMB_3_0_2],
            contexts: Vec::new(),
        };
        self.ask(rig, Command::NEGOTIATE, |bytes| request.encode(bytes));
        let request = session_setup::Request {
            flags: session_setup::RequestFlags::NONE,
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::NONE,
            channel: 0,
            previous_session_id: SessionId(0),
            security_buffer: b"alice",
        };
        let answer = self.ask(rig, Command::SESSION_SETUP, |bytes| request.encode(bytes));
        self.session = header(&answer).session_id;
        let path = utf16(r"\\server\data");
        let request = tree_connect::Request {
            flags: tree_connect::RequestFlags::NONE,
            path: Utf16(&path),
        };
        let answer = self.ask(rig, Command::TREE_CONNECT, |bytes| request.encode(bytes));
        self.tree = header(&answer).tree_id().expect("a response with a tree");
    }

    /// Opens a file. The number makes the key of its lease.
    fn open(&mut self, rig: &Rig, path: &str, number: usize, kind: Kind) -> FileId {
        let path = utf16(path);
        let mut bytes = [self.number; 16];
        bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
        let key = Guid(bytes);
        let (lease, durable) = (lease(key), durable(key));
        let mut contexts = Vec::new();
        let mut oplock_level = OplockLevel::NONE;
        if kind != Kind::Plain {
            oplock_level = OplockLevel::LEASE;
            let (name, data) = (name::LEASE, &lease[..]);
            contexts.push(RawContext { name, data });
        }
        if kind == Kind::Durable {
            let (name, data) = (name::DURABLE_REQUEST_V2, &durable[..]);
            contexts.push(RawContext { name, data });
        }
        let request = create::Request {
            oplock_level,
            impersonation_level: ImpersonationLevel::IMPERSONATION,
            desired_access: AccessMask::FILE_READ_DATA | AccessMask::FILE_WRITE_DATA,
            file_attributes: FileAttributes::NORMAL,
            share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
            create_disposition: CreateDisposition::OPEN_IF,
            create_options: CreateOptions::NON_DIRECTORY_FILE,
            name: Utf16(&path),
            contexts,
        };
        let answer = self.ask(rig, Command::CREATE, |bytes| request.encode(bytes));
        let response = create::Response::decode(&answer).expect("a response");
        let granted = find(&response.contexts, name::LEASE);
        let granted = granted.map(|data| Lease::decode(data).expect("a lease").lease_state);
        assert_eq!(granted, (kind != Kind::Plain).then_some(WANTED));
        let is_durable = find(&response.contexts, name::DURABLE_REQUEST_V2).is_some();
        assert_eq!(is_durable, kind == Kind::Durable);
        response.file_id
    }

    fn close(&mut self, rig: &Rig, file_id: FileId) {
        let flags = close::CloseFlags::NONE;
        let request = close::Request { flags, file_id };
        self.ask(rig, Command::CLOSE, |bytes| request.encode(bytes));
    }

    /// Loses the connection.
    fn disconnect(mut self, rig: &Rig) {
        self.connection.closed(rig.now, &mut self.effects);
        let answer = self.perform(rig);
        assert!(answer.is_none());
        assert!(self.connection.is_idle());
    }

    /// Sends a request. Returns its successful response.
    fn ask(&mut self, rig: &Rig, command: Command, encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let request = Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command,
            credits: 16,
            flags: Flags::NONE,
            next_command: 0,
            message_id: MessageId(self.next_id),
            target: Target::Sync {
                process_id: 0,
                tree_id: self.tree,
            },
            session_id: self.session,
            signature: [0; 16],
        };
        self.next_id += 1;
        let mut message = Vec::new();
        request.encode(&mut message);
        assert_eq!(message.len(), HEADER_LEN);
        encode(&mut message);
        let inbound = Inbound {
            bytes: &mut message,
            scratch: &mut Vec::new(),
        };
        (self.connection).receive(rig.now, inbound, &mut self.effects);
        let answer = self.perform(rig).expect("a response at once");
        assert_eq!(header(&answer).status, Status::SUCCESS, "{command:?}");
        answer
    }

    /// Performs the effects. Returns the response among them.
    fn perform(&mut self, rig: &Rig) -> Option<Vec<u8>> {
        let mut answer = None;
        while let Some(effect) = self.effects.pop() {
            let (op, outcome) = match effect {
                Effect::Send(mut outbound) => {
                    answer = Some(outbound.messages.remove(0).head);
                    continue;
                }
                Effect::File(op, operation) => {
                    let outcome = rig.disk.execute(&operation, Effort::Blocking).done();
                    (op, outcome.expect("a blocking operation blocks").into())
                }
                Effect::Authenticate(op, _) => (op, Outcome::Authenticated(accepted())),
                Effect::EndConversation(_)
                | Effect::Report(_)
                | Effect::ArmServerTimer
                | Effect::Cancel(_) => continue,
                other => panic!("the core requested {other:?}"),
            };
            (self.connection).complete(rig.now, op, outcome, &mut self.effects);
        }
        answer
    }
}

/// The rights of each lease.
const WANTED: LeaseState = LeaseState(
    LeaseState::READ_CACHING.0 | LeaseState::WRITE_CACHING.0 | LeaseState::HANDLE_CACHING.0,
);

fn header(message: &[u8]) -> Header {
    Header::decode(message).expect("a header")
}

fn lease(lease_key: Guid) -> Vec<u8> {
    let request = Lease {
        lease_key,
        lease_state: WANTED,
        lease_flags: LeaseFlags::NONE,
        v2: Some(LeaseV2 {
            parent_lease_key: Guid::default(),
            epoch: 0,
        }),
    };
    request.encode().to_vec()
}

fn durable(create_guid: Guid) -> Vec<u8> {
    let request = DurableRequestV2 {
        timeout_ms: u32::try_from(TIMEOUT.as_millis()).expect("a short time"),
        flags: DurableFlags::NONE,
        create_guid,
    };
    request.encode().to_vec()
}

fn accepted() -> Authenticated {
    Authenticated::Accepted(Accepted {
        token: Vec::new(),
        session_key: vec![1; 16],
        account: Account {
            name: "alice".into(),
            kind: AccountKind::Named,
            token: Arc::new(Token::new(0, 0, Vec::new())),
            revision: AccountsRevision::default(),
            groups: Arc::default(),
            app_password: None,
        },
    })
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("file{index:06}")).collect()
}

/// Opens every file. Returns the bytes for each, and the clients.
fn open_all(rig: &mut Rig, names: &[String], kind: Kind) -> (usize, Vec<Client>) {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::new(rig)).collect();
    let before = live();
    for (index, name) in names.iter().enumerate() {
        clients[index % CLIENTS].open(rig, name, index, kind);
    }
    (bytes_of_each(before, names.len()), clients)
}

fn bytes_of_each(before: usize, count: usize) -> usize {
    live().saturating_sub(before) / count
}

/// Returns the bytes of an open, and of an open with a lease.
fn measure_leases() -> [usize; 2] {
    let names = names(LEASES);
    let mut rig = Rig::new(&names);
    [Kind::Plain, Kind::Leased].map(|kind| {
        let (bytes, clients) = open_all(&mut rig, &names, kind);
        assert_eq!(rig.server.ledger().used(Resource::Opens), LEASES);
        for client in clients {
            client.disconnect(&rig);
        }
        assert_eq!(rig.server.ledger().used(Resource::Opens), 0);
        bytes
    })
}

/// Returns the bytes of an open of the memory file system.
fn measure_descriptors() -> usize {
    let names = names(DISCONNECTED);
    let mut rig = Rig::new(&names);
    let (_, _clients) = open_all(&mut rig, &names, Kind::Durable);
    assert_eq!(rig.disk.opens(), DISCONNECTED);
    let before = live();
    rig.disk.drop_opens();
    (before - live()) / DISCONNECTED
}

/// Returns the bytes of a disconnected open with its lease and with the open of the file system.
fn measure_disconnected() -> usize {
    let names = names(DISCONNECTED);
    let mut rig = Rig::new(&names);
    let before = live();
    let (_, clients) = open_all(&mut rig, &names, Kind::Durable);
    for client in clients {
        client.disconnect(&rig);
    }
    let used = |rig: &Rig| rig.server.ledger().used(Resource::DisconnectedOpens);
    assert_eq!(used(&rig), DISCONNECTED);
    let bytes = bytes_of_each(before, DISCONNECTED);
    rig.pass(TIMEOUT);
    assert_eq!(used(&rig), 0);
    assert!(rig.server.is_idle());
    let left = bytes_of_each(before, DISCONNECTED);
    assert!(left < 64, "{left} bytes of each disconnected open are left");
    bytes
}

#[test]
fn leases_and_disconnected_opens_use_little_memory() {
    let [plain, leased] = measure_leases();
    let lease = leased.saturating_sub(plain);
    println!("{LEASES} opens: {plain} bytes each");
    println!("{LEASES} opens with a lease: {leased} bytes each, {lease} of them for the lease");
    let (all, descriptor) = (measure_disconnected(), measure_descriptors());
    let disconnected = all - descriptor;
    println!(
        "{DISCONNECTED} disconnected opens with a lease: {disconnected} bytes each, and \
         {descriptor} in the memory file system"
    );
    assert!(lease > 0 && descriptor > 0, "the allocator counts");
    assert!(lease <= LEASE_BYTES);
    assert!(disconnected <= DISCONNECTED_BYTES);
}
