//! The listeners of a running server, and their change.
//!
//! The server binds each address before a worker listens on it: port 0 becomes the same port for
//! all workers, and a used address fails before anything changes. Then all workers listen, and
//! answer. A closed TCP listener leaves its connections alone. The connections of a QUIC listener
//! use its sockets, so it refuses new clients first and closes when no connection is left.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use std::vec;

use net::Transport;

use crate::error::StartError;
use crate::listeners::Entry;
use crate::message::{ListenRequest, ListenSocket, Message};
use crate::reserve::{Reserved, Sockets, Wanted};
use crate::shared::Shared;

/// Longest time until a worker answers. A worker does not wait for disks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Listeners that all workers have opened, and that the server does not keep yet. Dropping them
/// closes them.
pub(crate) struct Opened<'a> {
    shared: &'a Shared,
    entries: Vec<Entry>,
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        for entry in &self.entries {
            self.shared.send_all(|| Message::CloseListener(entry.id));
        }
    }
}

impl Shared {
    /// Makes all workers listen on reserved addresses.
    ///
    /// # Errors
    /// A worker cannot listen. Then no worker listens on any of the addresses.
    pub(crate) fn open_listeners(&self, reserved: Vec<Reserved>) -> Result<Opened<'_>, StartError> {
        let mut opened = Opened {
            shared: self,
            entries: Vec::new(),
        };
        for Reserved {
            wanted,
            address,
            sockets,
        } in reserved
        {
            let entry = Entry {
                id: self.listeners.next(),
                wanted,
                address,
                uses: Arc::default(),
                is_leaving: false,
            };
            // Before the workers listen, so that a failure closes the listeners of the others.
            opened.entries.push(entry);
            let entry = opened.entries.last().expect("just added");
            self.open_listener(entry, sockets)
                .map_err(|error| StartError::Listen {
                    address,
                    transport: wanted.transport,
                    error,
                })?;
        }
        Ok(opened)
    }

    fn open_listener(&self, entry: &Entry, sockets: Sockets) -> io::Result<()> {
        let (answer, answers) = mpsc::channel();
        // The reservation stays until all workers listen.
        let (_reservation, sockets): (_, vec::IntoIter<ListenSocket>) = match sockets {
            Sockets::Tcp(reservation) => {
                let sockets = self.mailboxes().iter().map(|_| ListenSocket::Tcp);
                let sockets: Vec<_> = sockets.collect();
                (Some(reservation), sockets.into_iter())
            }
            Sockets::Inherited(socket) => {
                let sockets = vec![ListenSocket::Inherited(socket)];
                (None, sockets.into_iter())
            }
            Sockets::Quic(server, sockets) => {
                let socket = |socket| ListenSocket::Quic(Arc::clone(&server), socket);
                let sockets: Vec<_> = sockets.into_iter().map(socket).collect();
                (None, sockets.into_iter())
            }
            Sockets::SmbDirect(listener, provider) => {
                let sockets = vec![ListenSocket::SmbDirect(listener, provider)];
                (None, sockets.into_iter())
            }
        };
        for (mailbox, socket) in self.mailboxes().iter().zip(sockets) {
            let request = ListenRequest {
                id: entry.id,
                transport: entry.wanted.transport,
                address: entry.address,
                socket,
                uses: Arc::clone(&entry.uses),
                answer: answer.clone(),
            };
            let sent = mailbox.send(Message::Listen(Box::new(request)));
            sent.map_err(|_| io::Error::other("a worker takes no messages"))?;
        }
        drop(answer);
        loop {
            match answers.recv_timeout(ANSWER_TIMEOUT) {
                Ok(result) => result?,
                // Each worker has answered.
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// Keeps opened listeners, and closes the present ones with addresses that are not wanted any
    /// more. Connections stay.
    pub(crate) fn change_listeners(&self, mut opened: Opened<'_>, wanted: &[Wanted]) {
        let mut table = self.listeners.lock();
        for entry in &mut table.entries {
            let is_leaving = !wanted.contains(&entry.wanted);
            if std::mem::replace(&mut entry.is_leaving, is_leaving) != is_leaving {
                let accepts = !is_leaving;
                let (id, is_quic) = (entry.id, entry.wanted.transport == Transport::Quic);
                self.send_all(|| match is_quic {
                    true => Message::AcceptClients {
                        listener: id,
                        accepts,
                    },
                    false => Message::CloseListener(id),
                });
            }
        }
        let stays = |entry: &Entry| !entry.is_leaving || entry.wanted.transport == Transport::Quic;
        table.entries.retain(stays);
        table.entries.append(&mut opened.entries);
    }

    /// Closes the leaving QUIC listeners that have no connections.
    pub(crate) fn close_idle_listeners(&self) {
        let workers = self.mailboxes().len();
        let mut table = self.listeners.lock();
        table.entries.retain(|entry| {
            let is_idle = entry.is_leaving && Arc::strong_count(&entry.uses) <= workers + 1;
            if is_idle {
                self.send_all(|| Message::CloseListener(entry.id));
            }
            !is_idle
        });
    }
}
