//! Clients that hold leases on a directory, and request them again after each break, as clients do
//! that list the directory again.

use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow, ensure};
use wire::access::{AccessMask, CreateDisposition, CreateOptions, OplockLevel};
use wire::create_context::{Lease, LeaseFlags, LeaseState, LeaseV2, RawContext, name};
use wire::oplock_break::{LeaseBreak, Notification, Request};
use wire::{Command, FileId, Guid, MessageId, Status, create, text};

use super::connection::{Answer, Connection, expect};
use super::metadata;
use crate::environment::Storage;

/// Clients with leases on one directory.
pub(super) struct LeaseHolders {
    holders: Vec<(TcpStream, JoinHandle<u64>)>,
}

/// A client with a lease on a directory.
struct Holder {
    connection: Connection,
    directory: String,
    key: Guid,
    /// Number of breaks.
    breaks: u64,
}

/// The data of the create context that requests a lease of version 2. [MS-SMB2] 2.2.13.2.10
pub(super) fn lease_request(key: Guid, lease_state: LeaseState) -> Vec<u8> {
    let lease = Lease {
        lease_key: key,
        lease_state,
        lease_flags: LeaseFlags::NONE,
        v2: Some(LeaseV2 {
            parent_lease_key: Guid::default(),
            epoch: 0,
        }),
    };
    lease.encode()
}

impl LeaseHolders {
    /// Logs in `count` clients, each with a lease on the directory.
    pub(super) fn start(
        server: &smbeam_tests::subject::Server,
        storage: Storage,
        directory: &str,
        count: u8,
    ) -> Result<Self> {
        let mut holders = Vec::new();
        for number in 0..count {
            let mut holder = Holder {
                connection: super::connect(server, storage)?,
                directory: directory.to_owned(),
                key: Guid([number + 1; 16]),
                breaks: 0,
            };
            holder.open()?;
            holder.connection.flush()?;
            let answer = holder.connection.receive()?;
            expect(&answer, Status::SUCCESS)?;
            let granted = create::Response::decode(answer.message)?.oplock_level;
            ensure!(granted == OplockLevel::LEASE, "no lease: {granted:?}");
            let stream = holder.connection.stream()?;
            holders.push((stream, std::thread::spawn(move || holder.run())));
        }
        Ok(Self { holders })
    }

    /// Ends the clients. Returns the number of breaks of all.
    pub(super) fn stop(self) -> Result<u64> {
        let mut breaks = 0;
        for (stream, thread) in self.holders {
            stream.shutdown(Shutdown::Both)?;
            breaks += thread
                .join()
                .map_err(|_| anyhow!("a lease holder has panicked"))?;
        }
        Ok(breaks)
    }
}

impl Holder {
    /// Runs until the connection is closed.
    fn run(mut self) -> u64 {
        while self.step().is_ok() {}
        self.breaks
    }

    fn step(&mut self) -> Result<()> {
        match event(&self.connection.receive()?)? {
            Event::Break(acknowledgment) => {
                self.breaks += 1;
                if let Some(acknowledgment) = acknowledgment {
                    let request = Request::Lease(acknowledgment);
                    let encode = |message: &mut Vec<u8>| request.encode(message);
                    self.connection.put(Command::OPLOCK_BREAK, 0, encode)?;
                }
                self.open()?;
            }
            Event::Opened(file_id) => {
                let close = metadata::close_request(file_id);
                let encode = |message: &mut Vec<u8>| close.encode(message);
                self.connection.put(Command::CLOSE, 0, encode)?;
            }
            Event::Other => {}
        }
        self.connection.flush()
    }

    /// Queues a CREATE that requests the lease.
    fn open(&mut self) -> Result<()> {
        let rights = LeaseState::READ_CACHING | LeaseState::HANDLE_CACHING;
        let lease = lease_request(self.key, rights);
        let path = text::utf16(&self.directory);
        let mut request = metadata::request(&path);
        request.oplock_level = OplockLevel::LEASE;
        request.desired_access = AccessMask::FILE_LIST_DIRECTORY;
        request.create_disposition = CreateDisposition::OPEN;
        request.create_options = CreateOptions::DIRECTORY_FILE;
        request.contexts.push(RawContext {
            name: name::LEASE,
            data: &lease,
        });
        let encode = |message: &mut Vec<u8>| request.encode(message);
        self.connection.put(Command::CREATE, 0, encode)?;
        Ok(())
    }
}

/// A received message.
enum Event {
    /// A break, with its acknowledgment if the server needs one.
    Break(Option<LeaseBreak>),
    Opened(FileId),
    Other,
}

fn event(answer: &Answer<'_>) -> Result<Event> {
    let header = &answer.header;
    if header.command == Command::OPLOCK_BREAK && header.message_id == MessageId::UNSOLICITED {
        let Notification::Lease(lease) = Notification::decode(answer.message)? else {
            return Ok(Event::Other);
        };
        let needs_ack = lease
            .flags
            .contains(wire::oplock_break::LeaseBreakFlags::ACK_REQUIRED);
        return Ok(Event::Break(needs_ack.then_some(LeaseBreak {
            lease_key: lease.lease_key,
            lease_state: lease.new_lease_state,
        })));
    }
    if header.command == Command::CREATE && header.status == Status::SUCCESS {
        let file_id = create::Response::decode(answer.message)?.file_id;
        return Ok(Event::Opened(file_id));
    }
    Ok(Event::Other)
}
