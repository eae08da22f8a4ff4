//! The header of every SMB2 message. \[MS-SMB2\] 2.2.1

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::{AsyncId, MessageId, SessionId, TreeId};
use crate::open_enum::{open_enum, open_flags};
use crate::status::Status;

/// Bytes of the header.
pub const HEADER_LEN: usize = 64;
/// The first four bytes of an SMB2 message. \[MS-SMB2\] 2.2.1.1
pub const PROTOCOL_ID: [u8; 4] = *b"\xFESMB";
/// Where the 16 bytes of the signature stand.
pub const SIGNATURE: core::ops::Range<usize> = 48..64;

open_enum! {
    /// What a message asks or answers. \[MS-SMB2\] 2.2.1.2
    Command(u16) {
        /// Agree on a dialect.
        NEGOTIATE = 0x00,
        /// Log in.
        SESSION_SETUP = 0x01,
        /// Log out.
        LOGOFF = 0x02,
        /// Enter a share.
        TREE_CONNECT = 0x03,
        /// Leave a share.
        TREE_DISCONNECT = 0x04,
        /// Open or create a file, a directory or a pipe.
        CREATE = 0x05,
        /// Close an open.
        CLOSE = 0x06,
        /// Put what was written on stable storage.
        FLUSH = 0x07,
        /// Read from a file or pipe.
        READ = 0x08,
        /// Write to a file or pipe.
        WRITE = 0x09,
        /// Lock and unlock byte ranges.
        LOCK = 0x0A,
        /// Control a file, a file system or the server.
        IOCTL = 0x0B,
        /// Give up on a request.
        CANCEL = 0x0C,
        /// Say that both still live.
        ECHO = 0x0D,
        /// List a directory.
        QUERY_DIRECTORY = 0x0E,
        /// Wait for a change in a directory.
        CHANGE_NOTIFY = 0x0F,
        /// Ask about a file, a file system, security or quotas.
        QUERY_INFO = 0x10,
        /// Change what QUERY_INFO tells.
        SET_INFO = 0x11,
        /// Break an oplock or a lease, or acknowledge that.
        OPLOCK_BREAK = 0x12,
        /// The server says something unasked.
        SERVER_TO_CLIENT_NOTIFICATION = 0x13,
    }
}

open_flags! {
    /// How a message is to be taken. \[MS-SMB2\] 2.2.1.2
    Flags(u32) {
        /// A response.
        SERVER_TO_REDIR = 0x0000_0001,
        /// The header holds an AsyncId in place of the tree.
        ASYNC_COMMAND = 0x0000_0002,
        /// A member of a compound that depends on the one before.
        RELATED_OPERATIONS = 0x0000_0004,
        /// The message is signed.
        SIGNED = 0x0000_0008,
        /// The bits of the priority. Dialect 3.1.1.
        PRIORITY_MASK = 0x0000_0070,
        /// Meant for DFS.
        DFS_OPERATIONS = 0x1000_0000,
        /// Sent again after a lost channel. Dialects 3.x.
        REPLAY_OPERATION = 0x2000_0000,
    }
}

/// Whom a message is about: a tree, or a request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// \[MS-SMB2\] 2.2.1.2
    Sync {
        /// A process id by its old meaning; cifs.ko and Windows send 0xFEFF.
        process_id: u32,
        /// The tree connect.
        tree_id: TreeId,
    },
    /// \[MS-SMB2\] 2.2.1.1
    Async(AsyncId),
}

/// The header of an SMB2 message. \[MS-SMB2\] 2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Credits that the request uses up. Reserved in dialect 2.0.2.
    pub credit_charge: u16,
    /// In a response: how it went. In a request of dialect 3.x: ChannelSequence in the low half.
    pub status: Status,
    /// What is asked or answered.
    pub command: Command,
    /// Credits asked for, or granted.
    pub credits: u16,
    /// How the message is to be taken.
    pub flags: Flags,
    /// Bytes to the next message of the compound; 0 in the last.
    pub next_command: u32,
    /// The place in the connection's sequence.
    pub message_id: MessageId,
    /// Tree or async id.
    pub target: Target,
    /// The session.
    pub session_id: SessionId,
    /// The signature; zero where there is none.
    pub signature: [u8; 16],
}

impl Header {
    /// Reads the header at the start of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(message);
        let protocol: [u8; 4] = reader.array("ProtocolId")?;
        if protocol != PROTOCOL_ID {
            let value = u64::from(u32::from_le_bytes(protocol));
            return Err(DecodeError::Invalid {
                field: "ProtocolId",
                value,
            });
        }
        reader.structure_size("SMB2 header", 64)?;
        let credit_charge = reader.u16("CreditCharge")?;
        let status = Status(reader.u32("Status")?);
        let command = Command(reader.u16("Command")?);
        let credits = reader.u16("CreditRequest")?;
        let flags = Flags(reader.u32("Flags")?);
        let next_command = reader.u32("NextCommand")?;
        let message_id = MessageId(reader.u64("MessageId")?);
        let target = if flags.contains(Flags::ASYNC_COMMAND) {
            Target::Async(AsyncId(reader.u64("AsyncId")?))
        } else {
            let process_id = reader.u32("Reserved")?;
            Target::Sync {
                process_id,
                tree_id: TreeId(reader.u32("TreeId")?),
            }
        };
        let session_id = SessionId(reader.u64("SessionId")?);
        let signature = reader.array("Signature")?;
        Ok(Self {
            credit_charge,
            status,
            command,
            credits,
            flags,
            next_command,
            message_id,
            target,
            session_id,
            signature,
        })
    }

    /// Appends the 64 bytes. Whether the target is a tree or an async id sets the flag.
    pub fn encode(&self, message: &mut Vec<u8>) {
        message.put(&PROTOCOL_ID);
        message.put_u16(64);
        message.put_u16(self.credit_charge);
        message.put_u32(self.status.0);
        message.put_u16(self.command.0);
        message.put_u16(self.credits);
        let flags = self.flags.without(Flags::ASYNC_COMMAND);
        match self.target {
            Target::Sync { .. } => message.put_u32(flags.0),
            Target::Async(_) => message.put_u32((flags | Flags::ASYNC_COMMAND).0),
        }
        message.put_u32(self.next_command);
        message.put_u64(self.message_id.0);
        match self.target {
            Target::Sync {
                process_id,
                tree_id,
            } => {
                message.put_u32(process_id);
                message.put_u32(tree_id.0);
            }
            Target::Async(async_id) => message.put_u64(async_id.0),
        }
        message.put_u64(self.session_id.0);
        message.put(&self.signature);
    }

    /// The tree, where the header names one.
    pub fn tree_id(&self) -> Option<TreeId> {
        match self.target {
            Target::Sync { tree_id, .. } => Some(tree_id),
            Target::Async(_) => None,
        }
    }

    /// Whether the message answers a request.
    pub fn is_response(&self) -> bool {
        self.flags.contains(Flags::SERVER_TO_REDIR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_round_trip() {
        let header = Header {
            credit_charge: 1,
            status: Status(0x1234_5678),
            command: Command(0x77),
            credits: 31,
            flags: Flags::SERVER_TO_REDIR | Flags::SIGNED,
            next_command: 128,
            message_id: MessageId(9),
            target: Target::Sync {
                process_id: 0xFEFF,
                tree_id: TreeId(7),
            },
            session_id: SessionId(0x4400_0000_0001),
            signature: [9; 16],
        };
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        assert_eq!(bytes.len(), HEADER_LEN);
        assert_eq!(Header::decode(&bytes), Ok(header));
        let cut = &bytes[..HEADER_LEN - 1];
        assert!(matches!(
            Header::decode(cut),
            Err(DecodeError::Truncated { .. })
        ));
    }
}
