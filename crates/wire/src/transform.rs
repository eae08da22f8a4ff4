//! The transform header before an encrypted message. \[MS-SMB2\] 2.2.41

use alloc::vec::Vec;
use core::ops::Range;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::SessionId;

/// Length in bytes of the transform header, which precedes an encrypted SMB message.
pub const TRANSFORM_LEN: usize = 52;
/// The first four bytes of a transform header (ProtocolId), which identify an encrypted message.
pub const PROTOCOL_ID: [u8; 4] = *b"\xFDSMB";
/// Byte range of Signature, the authentication tag of the cipher, in the transform header.
pub const SIGNATURE: Range<usize> = 4..20;
/// Byte range of Nonce, the nonce of the cipher, in the transform header.
pub const NONCE: Range<usize> = 20..36;
/// Byte range of the associated data of the cipher in the transform header: from Nonce to the end
/// of the header. The cipher authenticates these bytes but does not encrypt them.
/// \[MS-SMB2\] 3.1.4.3
pub const ASSOCIATED_DATA: Range<usize> = 20..52;
/// Length in bytes of the part of the Nonce field in the transform header that AES-CCM uses.
pub const CCM_NONCE_LEN: usize = 11;
/// Length in bytes of the part of the Nonce field in the transform header that AES-GCM uses.
pub const GCM_NONCE_LEN: usize = 12;

/// Value of the Flags field in a transform header: the message is encrypted. In dialects 3.0 and
/// 3.0.2 the field is EncryptionAlgorithm, where the same value means AES-128-CCM.
pub const FLAG_ENCRYPTED: u16 = 0x0001;

/// The transform header, which precedes an encrypted message. \[MS-SMB2\] 2.2.41
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    /// Authentication tag of the cipher over the encrypted message and the associated data.
    pub signature: [u8; 16],
    /// Nonce of the cipher: the first 11 bytes for AES-CCM, 12 for AES-GCM; the rest are zero.
    pub nonce: [u8; 16],
    /// Length of the encrypted message in bytes.
    pub original_message_size: u32,
    /// Flags of the transform header. Always [`FLAG_ENCRYPTED`], in every dialect.
    pub flags: u16,
    /// Identifier of the session that has the key for decryption.
    pub session_id: SessionId,
}

impl Transform {
    /// Decodes the transform header at the start of a frame. Fails when `frame` has less than 52
    /// bytes or another ProtocolId. [`split`] checks the length of the message.
    pub fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(frame);
        let protocol: [u8; 4] = reader.array("ProtocolId")?;
        if protocol != PROTOCOL_ID {
            let (field, value) = ("ProtocolId", u32::from_le_bytes(protocol).into());
            return Err(DecodeError::Invalid { field, value });
        }
        let signature = reader.array("Signature")?;
        let nonce = reader.array("Nonce")?;
        let original_message_size = reader.u32("OriginalMessageSize")?;
        reader.skip("Reserved", 2)?;
        Ok(Self {
            signature,
            nonce,
            original_message_size,
            flags: reader.u16("Flags")?,
            session_id: SessionId(reader.u64("SessionId")?),
        })
    }

    /// Encodes the 52 bytes of the transform header.
    pub fn encode(&self) -> [u8; TRANSFORM_LEN] {
        let mut bytes = Vec::with_capacity(TRANSFORM_LEN);
        bytes.put(&PROTOCOL_ID);
        bytes.put(&self.signature);
        bytes.put(&self.nonce);
        bytes.put_u32(self.original_message_size);
        bytes.put_u16(0);
        bytes.put_u16(self.flags);
        bytes.put_u64(self.session_id.0);
        bytes.try_into().expect("the fields are 52 bytes")
    }
}

/// The parts of an encrypted frame that its decryption needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The decoded transform header of the frame.
    pub header: Transform,
    /// The associated data of the cipher: the bytes of the transform header after Signature.
    pub associated_data: &'a [u8],
    /// The encrypted message, which the caller decrypts in place.
    pub ciphertext: &'a mut [u8],
}

/// Splits `frame`, a transform header and one encrypted message, into the parts that decryption
/// needs. Fails when the header is not valid, or OriginalMessageSize differs from the length after
/// the header.
pub fn split(frame: &mut [u8]) -> Result<Parts<'_>, DecodeError> {
    let header = Transform::decode(frame)?;
    let (head, ciphertext) = frame.split_at_mut(TRANSFORM_LEN);
    if ciphertext.len() as u64 != u64::from(header.original_message_size) {
        let (field, value) = ("OriginalMessageSize", header.original_message_size.into());
        return Err(DecodeError::Invalid { field, value });
    }
    Ok(Parts {
        header,
        associated_data: &head[ASSOCIATED_DATA],
        ciphertext,
    })
}
