//! The header of every SMB2 message. \[MS-SMB2\] 2.2.1

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::{AsyncId, MessageId, SessionId, TreeId};
use crate::open_enum::{open_enum, open_flags};
use crate::status::Status;

/// Length in bytes of the SMB2 header, with which each SMB2 message starts.
pub const HEADER_LEN: usize = 64;
/// The first four bytes of an SMB2 message (ProtocolId). \[MS-SMB2\] 2.2.1.1
pub const PROTOCOL_ID: [u8; 4] = *b"\xFESMB";
/// Byte range of the 16-byte Signature in the SMB2 header.
pub const SIGNATURE: core::ops::Range<usize> = 48..64;

open_enum! {
    /// The command of a request or response. \[MS-SMB2\] 2.2.1.2
    Command(u16) {
        /// Negotiate the dialect of the connection and its parameters.
        NEGOTIATE = 0x00,
        /// Authenticate a user and create a session.
        SESSION_SETUP = 0x01,
        /// End a session and all opens in it.
        LOGOFF = 0x02,
        /// Connect to a share.
        TREE_CONNECT = 0x03,
        /// Disconnect from a share.
        TREE_DISCONNECT = 0x04,
        /// Open or create a file, a directory or a pipe.
        CREATE = 0x05,
        /// Close an open file, directory or pipe.
        CLOSE = 0x06,
        /// Write cached data of an open to stable storage.
        FLUSH = 0x07,
        /// Read from a file or pipe.
        READ = 0x08,
        /// Write to a file or pipe.
        WRITE = 0x09,
        /// Lock and unlock byte ranges of a file.
        LOCK = 0x0A,
        /// Send a control code to a file, a file system or the server.
        IOCTL = 0x0B,
        /// Cancel a pending request.
        CANCEL = 0x0C,
        /// Check that the server still responds.
        ECHO = 0x0D,
        /// List a directory.
        QUERY_DIRECTORY = 0x0E,
        /// Report changes in a directory.
        CHANGE_NOTIFY = 0x0F,
        /// Query a file, a file system, a security descriptor or quotas.
        QUERY_INFO = 0x10,
        /// Change a file, a file system, a security descriptor or quotas.
        SET_INFO = 0x11,
        /// Break an oplock or a lease, or acknowledge the break.
        OPLOCK_BREAK = 0x12,
        /// A notification from the server without a request.
        SERVER_TO_CLIENT_NOTIFICATION = 0x13,
    }
}

open_flags! {
    /// Flags of the SMB2 header. \[MS-SMB2\] 2.2.1.2
    Flags(u32) {
        /// The message is a response.
        SERVER_TO_REDIR = 0x0000_0001,
        /// The header is ASYNC: it contains an AsyncId instead of a TreeId.
        ASYNC_COMMAND = 0x0000_0002,
        /// The message is part of a compound and uses session, tree and open of the message before
        /// it.
        RELATED_OPERATIONS = 0x0000_0004,
        /// The message is signed.
        SIGNED = 0x0000_0008,
        /// The bits of the request's priority, a number from 0 to 7. Dialect 3.1.1 only.
        PRIORITY_MASK = 0x0000_0070,
        /// The path in the request is a DFS path.
        DFS_OPERATIONS = 0x1000_0000,
        /// The client sends the request again after the loss of a channel. Dialects 3.x.
        REPLAY_OPERATION = 0x2000_0000,
    }
}

/// The 8 bytes of the SMB2 header that hold a reserved field and the TreeId in a SYNC header, and
/// the AsyncId in an ASYNC header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A SYNC header, which all requests and most responses have. \[MS-SMB2\] 2.2.1.2
    Sync {
        /// ProcessId of older dialects, now reserved; cifs.ko and Windows send 0xFEFF.
        process_id: u32,
        /// Identifier of the tree connect that the request uses; 0 for commands without a tree
        /// connect.
        tree_id: TreeId,
    },
    /// An ASYNC header: the identifier of a request that the server completes asynchronously.
    /// Interim and final responses to that request carry it, and its CANCEL. \[MS-SMB2\] 2.2.1.1
    Async(AsyncId),
}

/// The SMB2 header, the first 64 bytes of each SMB2 message. \[MS-SMB2\] 2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of credits that the request consumes (CreditCharge); reserved in dialect 2.0.2.
    pub credit_charge: u16,
    /// In a response, the result of the request. In a request of dialect 3.0 and later,
    /// ChannelSequence in the low 16 bits.
    pub status: Status,
    /// The command of the message, such as CREATE; a response repeats that of its request.
    pub command: Command,
    /// In a request, the number of credits that the client requests. In a response, the number that
    /// the server grants.
    pub credits: u16,
    /// Flags of the message, such as SIGNED or RELATED_OPERATIONS.
    pub flags: Flags,
    /// Distance in bytes from the start of this header to the next message of the compound; 0 in
    /// the last message.
    pub next_command: u32,
    /// MessageId: the number of the request on its connection, which the response repeats.
    pub message_id: MessageId,
    /// TreeId of the share that the request uses (SYNC header), or AsyncId of an asynchronous
    /// request (ASYNC header).
    pub target: Target,
    /// Identifier of the session that the request uses; 0 in the first SESSION_SETUP request and
    /// before it.
    pub session_id: SessionId,
    /// Signature of the whole message; zeros in an unsigned message.
    pub signature: [u8; 16],
}

impl Header {
    /// Decodes the SMB2 header at the start of `message`. Fails when `message` has less than 64
    /// bytes, or ProtocolId or StructureSize is wrong.
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

    /// Appends the 64 bytes of the header to `message`. `target` determines the flag ASYNC_COMMAND;
    /// the value in `flags` is ignored.
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

    /// Returns the TreeId of a SYNC header; `None` for an ASYNC header, which has an AsyncId
    /// instead.
    pub fn tree_id(&self) -> Option<TreeId> {
        match self.target {
            Target::Sync { tree_id, .. } => Some(tree_id),
            Target::Async(_) => None,
        }
    }

    /// Returns true if the message is a response (flag SERVER_TO_REDIR), false for a request.
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
