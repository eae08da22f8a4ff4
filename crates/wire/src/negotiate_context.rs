//! Negotiate contexts of dialect 3.1.1: the list in a message, and the data of each context.
//! \[MS-SMB2\] 2.2.3.1

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u16_of;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

/// Maximum number of negotiate contexts in a NEGOTIATE message; decoding fails for more. The
/// specification defines eight types, each at most once; the higher limit leaves space for types of
/// later versions.
pub const MAX_CONTEXTS: u16 = 64;

open_enum! {
    /// The type of a negotiate context: the parameter of dialect 3.1.1 that it carries. \[MS-SMB2\]
    /// 2.2.3.1
    ContextType(u16) {
        /// The context carries hash algorithms for preauthentication integrity.
        PREAUTH_INTEGRITY_CAPABILITIES = 0x0001,
        /// The context carries ciphers for encryption.
        ENCRYPTION_CAPABILITIES = 0x0002,
        /// The context carries compression algorithms.
        COMPRESSION_CAPABILITIES = 0x0003,
        /// The context carries the name of the server that the client connects to.
        NETNAME_NEGOTIATE_CONTEXT_ID = 0x0005,
        /// The context states whether the peer accepts transport encryption (QUIC) in place of SMB
        /// encryption.
        TRANSPORT_CAPABILITIES = 0x0006,
        /// The context carries transforms, such as encryption, of data that RDMA transfers.
        RDMA_TRANSFORM_CAPABILITIES = 0x0007,
        /// The context carries signing algorithms.
        SIGNING_CAPABILITIES = 0x0008,
        /// The peer supports the SMB3 POSIX extensions of Samba and Linux, which are not part of
        /// \[MS-SMB2\].
        POSIX_EXTENSIONS_AVAILABLE = 0x0100,
    }
}

open_enum! {
    /// A hash algorithm for preauthentication integrity, which detects changes of NEGOTIATE and
    /// SESSION_SETUP messages. \[MS-SMB2\] 2.2.3.1.1
    HashAlgorithm(u16) {
        /// SHA-512, the only hash algorithm of the specification.
        SHA_512 = 0x0001,
    }
}

open_enum! {
    /// A cipher for encrypted messages in dialect 3.1.1. \[MS-SMB2\] 2.2.3.1.2
    Cipher(u16) {
        /// Only in a response: the peers have no common cipher.
        NONE = 0x0000,
        /// AES-CCM with a 128-bit key.
        AES_128_CCM = 0x0001,
        /// AES-GCM with a 128-bit key.
        AES_128_GCM = 0x0002,
        /// AES-CCM with a 256-bit key.
        AES_256_CCM = 0x0003,
        /// AES-GCM with a 256-bit key.
        AES_256_GCM = 0x0004,
    }
}

open_enum! {
    /// A compression algorithm for messages in dialect 3.1.1. \[MS-SMB2\] 2.2.3.1.3
    CompressionAlgorithm(u16) {
        /// Only in a response: the peers have no common algorithm.
        NONE = 0x0000,
        /// LZNT1 of \[MS-XCA\].
        LZNT1 = 0x0001,
        /// Plain LZ77 of \[MS-XCA\].
        LZ77 = 0x0002,
        /// LZ77 with Huffman coding of \[MS-XCA\].
        LZ77_HUFFMAN = 0x0003,
        /// Pattern_V1: the encoding of a run of one repeated byte.
        PATTERN_V1 = 0x0004,
        /// LZ4, in its block format.
        LZ4 = 0x0005,
    }
}

open_flags! {
    /// Flags of a compression context. \[MS-SMB2\] 2.2.3.1.3
    CompressionFlags(u32) {
        /// The peer supports chained compression: several compressed parts in one message.
        CHAINED = 0x0000_0001,
    }
}

open_flags! {
    /// Security features of the transport, in a TRANSPORT_CAPABILITIES context. \[MS-SMB2\]
    /// 2.2.3.1.5
    TransportFlags(u32) {
        /// The peer accepts the encryption of the transport, such as QUIC, instead of SMB
        /// encryption.
        ACCEPT_TRANSPORT_LEVEL_SECURITY = 0x0000_0001,
    }
}

open_enum! {
    /// A transform of data that RDMA transfers. \[MS-SMB2\] 2.2.3.1.6
    RdmaTransform(u16) {
        /// RDMA transfers the data as they are.
        NONE = 0x0000,
        /// The sender encrypts the data before the RDMA transfer.
        ENCRYPTION = 0x0001,
        /// The sender signs the data before the RDMA transfer.
        SIGNING = 0x0002,
    }
}

open_enum! {
    /// An algorithm that signs messages in dialect 3.1.1. \[MS-SMB2\] 2.2.3.1.7
    SigningAlgorithm(u16) {
        /// HMAC-SHA256, cut to 16 bytes.
        HMAC_SHA256 = 0x0000,
        /// AES-128-CMAC, the default.
        AES_CMAC = 0x0001,
        /// AES-128-GMAC, with a nonce from the MessageId.
        AES_GMAC = 0x0002,
    }
}

/// The only data of a POSIX_EXTENSIONS_AVAILABLE negotiate context (SMB3 POSIX extensions): the
/// GUID 93AD2550-9CB4-11E7-B423-83DE968BCD7C, with the bytes in wire order.
pub const POSIX_EXTENSIONS: Guid = Guid([
    0x93, 0xAD, 0x25, 0x50, 0x9C, 0xB4, 0x11, 0xE7, 0xB4, 0x23, 0x83, 0xDE, 0x96, 0x8B, 0xCD, 0x7C,
]);

/// One negotiate context of a NEGOTIATE request or response: a type and undecoded data. Such
/// contexts carry the parameters of dialect 3.1.1. \[MS-SMB2\] 2.2.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawContext<'a> {
    /// Type of the negotiate context, which defines the format of the data.
    pub context_type: ContextType,
    /// Data of the negotiate context, not decoded.
    pub data: &'a [u8],
}

/// Decodes the contexts of a message. Each starts at a multiple of 8 bytes; the padding after the
/// last one may be absent.
pub(crate) fn decode_list(
    message: &[u8],
    offset: u32,
    count: u16,
) -> Result<Vec<RawContext<'_>>, DecodeError> {
    if count > MAX_CONTEXTS {
        let (field, value) = ("NegotiateContextCount", u64::from(count));
        return Err(DecodeError::Invalid { field, value });
    }
    let mut reader = Reader::new(message);
    if count > 0 {
        reader.skip("NegotiateContextList", offset as usize)?;
    }
    let mut contexts = Vec::with_capacity(count.into());
    for index in 0..count {
        if index > 0 {
            let padding = reader.position().next_multiple_of(8) - reader.position();
            reader.skip("NegotiateContextList", padding)?;
        }
        contexts.push(decode_one(&mut reader)?);
    }
    Ok(contexts)
}

fn decode_one<'a>(reader: &mut Reader<'a>) -> Result<RawContext<'a>, DecodeError> {
    let context_type = ContextType(reader.u16("ContextType")?);
    let data_length = reader.u16("DataLength")?;
    reader.skip("Reserved", 4)?;
    let data = reader.bytes("Data", data_length.into())?;
    Ok(RawContext { context_type, data })
}

/// Appends the encoded contexts, which start at a multiple of 8 bytes.
pub(crate) fn encode_list(contexts: &[RawContext<'_>], message: &mut Vec<u8>) {
    for context in contexts {
        message.align(8);
        message.put_u16(context.context_type.0);
        message.put_u16(u16_of(context.data.len()));
        message.put_u32(0);
        message.put(context.data);
    }
}

/// Reads `count` 16-bit identifiers.
fn decode_ids<T>(
    reader: &mut Reader<'_>,
    field: &'static str,
    count: u16,
    id: fn(u16) -> T,
) -> Result<Vec<T>, DecodeError> {
    let bytes = reader.bytes(field, 2 * usize::from(count))?;
    let pairs = bytes.chunks_exact(2);
    Ok(pairs
        .map(|pair| id(u16::from_le_bytes([pair[0], pair[1]])))
        .collect())
}

/// Data of a PREAUTH_INTEGRITY_CAPABILITIES negotiate context: the algorithms for the hash of the
/// first messages, which protects them from changes. \[MS-SMB2\] 2.2.3.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreauthIntegrity<'a> {
    /// In a request, the hash algorithms that the client supports. In a response, the selected one.
    pub hash_algorithms: Vec<HashAlgorithm>,
    /// Random bytes of the sender, which make its NEGOTIATE message unpredictable.
    pub salt: &'a [u8],
}

impl<'a> PreauthIntegrity<'a> {
    /// Decodes the data of a PREAUTH_INTEGRITY_CAPABILITIES negotiate context. Fails when `data` is
    /// shorter than its counts require.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("HashAlgorithmCount")?;
        let salt_length = reader.u16("SaltLength")?;
        Ok(Self {
            hash_algorithms: decode_ids(&mut reader, "HashAlgorithms", count, HashAlgorithm)?,
            salt: reader.bytes("Salt", salt_length.into())?,
        })
    }

    /// Encodes the data of a PREAUTH_INTEGRITY_CAPABILITIES negotiate context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.hash_algorithms.len()));
        data.put_u16(u16_of(self.salt.len()));
        for algorithm in &self.hash_algorithms {
            data.put_u16(algorithm.0);
        }
        data.put(self.salt);
        data
    }
}

/// Data of an ENCRYPTION_CAPABILITIES negotiate context: the encryption algorithms that the client
/// offers or the server selects. \[MS-SMB2\] 2.2.3.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// In a request, the ciphers that the client supports, the preferred one first. In a response,
    /// the selected one, or NONE.
    pub ciphers: Vec<Cipher>,
}

impl Encryption {
    /// Decodes the data of an ENCRYPTION_CAPABILITIES negotiate context. Fails when `data` is
    /// shorter than its count requires.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("CipherCount")?;
        let ciphers = decode_ids(&mut reader, "Ciphers", count, Cipher)?;
        Ok(Self { ciphers })
    }

    /// Encodes the data of an ENCRYPTION_CAPABILITIES negotiate context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.ciphers.len()));
        for cipher in &self.ciphers {
            data.put_u16(cipher.0);
        }
        data
    }
}

/// Data of a COMPRESSION_CAPABILITIES negotiate context: the compression algorithms that the client
/// offers or the server selects. \[MS-SMB2\] 2.2.3.1.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Flags of the context: whether the sender supports chained compression, with several
    /// algorithms in a message.
    pub flags: CompressionFlags,
    /// In a request, the algorithms that the client supports. In a response, the selected ones, or
    /// NONE.
    pub algorithms: Vec<CompressionAlgorithm>,
}

impl Compression {
    /// Decodes the data of a COMPRESSION_CAPABILITIES negotiate context. Fails when `data` is
    /// shorter than its count requires.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("CompressionAlgorithmCount")?;
        reader.skip("Padding", 2)?;
        let flags = CompressionFlags(reader.u32("Flags")?);
        let field = "CompressionAlgorithms";
        let algorithms = decode_ids(&mut reader, field, count, CompressionAlgorithm)?;
        Ok(Self { flags, algorithms })
    }

    /// Encodes the data of a COMPRESSION_CAPABILITIES negotiate context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.algorithms.len()));
        data.put_u16(0);
        data.put_u32(self.flags.0);
        for algorithm in &self.algorithms {
            data.put_u16(algorithm.0);
        }
        data
    }
}

/// Data of a NETNAME_NEGOTIATE_CONTEXT_ID negotiate context: the name of the server that the client
/// connects to. Only a request has this context. \[MS-SMB2\] 2.2.3.1.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetName<'a>(pub Utf16<'a>);

impl<'a> NetName<'a> {
    /// Makes the name from the data of a NETNAME_NEGOTIATE_CONTEXT_ID context, all of which is the
    /// name. Never fails; does not check the UTF-16.
    pub fn decode(data: &'a [u8]) -> Self {
        Self(Utf16(data))
    }

    /// Encodes the data of a NETNAME_NEGOTIATE_CONTEXT_ID negotiate context.
    pub fn encode(&self) -> Vec<u8> {
        self.0.0.to_vec()
    }
}

/// Data of a TRANSPORT_CAPABILITIES negotiate context: whether the encryption of the transport,
/// such as QUIC, can replace SMB encryption. \[MS-SMB2\] 2.2.3.1.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Flags of the context: whether the sender accepts the encryption of the transport instead of
    /// SMB encryption.
    pub flags: TransportFlags,
}

impl Transport {
    /// Decodes the data of a TRANSPORT_CAPABILITIES negotiate context. Fails when `data` has less
    /// than 4 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let flags = TransportFlags(Reader::new(data).u32("Flags")?);
        Ok(Self { flags })
    }

    /// Encodes the data of a TRANSPORT_CAPABILITIES negotiate context: 4 bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.flags.0.to_le_bytes().to_vec()
    }
}

/// Data of an RDMA_TRANSFORM_CAPABILITIES negotiate context: the transforms, such as encryption, of
/// data that RDMA transfers. \[MS-SMB2\] 2.2.3.1.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaTransforms {
    /// In a request, the transforms that the client supports. In a response, those that the server
    /// selected.
    pub transforms: Vec<RdmaTransform>,
}

impl RdmaTransforms {
    /// Decodes the data of an RDMA_TRANSFORM_CAPABILITIES negotiate context. Fails when `data` is
    /// shorter than its count requires.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("TransformCount")?;
        reader.skip("Reserved", 6)?;
        let transforms = decode_ids(&mut reader, "RDMATransformIds", count, RdmaTransform)?;
        Ok(Self { transforms })
    }

    /// Encodes the data of an RDMA_TRANSFORM_CAPABILITIES negotiate context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.transforms.len()));
        data.put(&[0; 6]);
        for transform in &self.transforms {
            data.put_u16(transform.0);
        }
        data
    }
}

/// Data of a SIGNING_CAPABILITIES negotiate context: the signing algorithms that the client offers
/// or the server selects. \[MS-SMB2\] 2.2.3.1.7
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    /// In a request, the algorithms that the client supports, the preferred one first. In a
    /// response, the selected one.
    pub algorithms: Vec<SigningAlgorithm>,
}

impl Signing {
    /// Decodes the data of a SIGNING_CAPABILITIES negotiate context. Fails when `data` is shorter
    /// than its count requires.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("SigningAlgorithmCount")?;
        let algorithms = decode_ids(&mut reader, "SigningAlgorithms", count, SigningAlgorithm)?;
        Ok(Self { algorithms })
    }

    /// Encodes the data of a SIGNING_CAPABILITIES negotiate context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.algorithms.len()));
        for algorithm in &self.algorithms {
            data.put_u16(algorithm.0);
        }
        data
    }
}
