//! Negotiate contexts of dialect 3.1.1: the list in a message, and the data of each context.
//! \[MS-SMB2\] 2.2.3.1

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u16_of;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

/// Maximum number of contexts in a message. The specification defines eight types, each at most
/// once; the rest is reserve for future ones.
pub const MAX_CONTEXTS: u16 = 64;

open_enum! {
    /// The type of a negotiate context. \[MS-SMB2\] 2.2.3.1
    ContextType(u16) {
        /// Hash algorithms for preauthentication integrity.
        PREAUTH_INTEGRITY_CAPABILITIES = 0x0001,
        /// Ciphers.
        ENCRYPTION_CAPABILITIES = 0x0002,
        /// Compression algorithms.
        COMPRESSION_CAPABILITIES = 0x0003,
        /// The server name that the client uses.
        NETNAME_NEGOTIATE_CONTEXT_ID = 0x0005,
        /// Security features of the transport.
        TRANSPORT_CAPABILITIES = 0x0006,
        /// Transforms of data that RDMA transfers.
        RDMA_TRANSFORM_CAPABILITIES = 0x0007,
        /// Signing algorithms.
        SIGNING_CAPABILITIES = 0x0008,
        /// The SMB3 POSIX extensions of Samba and Linux, not part of \[MS-SMB2\].
        POSIX_EXTENSIONS_AVAILABLE = 0x0100,
    }
}

open_enum! {
    /// A hash algorithm for preauthentication integrity. \[MS-SMB2\] 2.2.3.1.1
    HashAlgorithm(u16) {
        /// SHA-512.
        SHA_512 = 0x0001,
    }
}

open_enum! {
    /// A cipher. \[MS-SMB2\] 2.2.3.1.2
    Cipher(u16) {
        /// Response: the peers have no common cipher.
        NONE = 0x0000,
        /// AES-128-CCM.
        AES_128_CCM = 0x0001,
        /// AES-128-GCM.
        AES_128_GCM = 0x0002,
        /// AES-256-CCM.
        AES_256_CCM = 0x0003,
        /// AES-256-GCM.
        AES_256_GCM = 0x0004,
    }
}

open_enum! {
    /// A compression algorithm. \[MS-SMB2\] 2.2.3.1.3
    CompressionAlgorithm(u16) {
        /// Response: the peers have no common algorithm.
        NONE = 0x0000,
        /// LZNT1.
        LZNT1 = 0x0001,
        /// LZ77.
        LZ77 = 0x0002,
        /// LZ77 with Huffman coding.
        LZ77_HUFFMAN = 0x0003,
        /// Pattern_V1: runs of one byte.
        PATTERN_V1 = 0x0004,
        /// LZ4.
        LZ4 = 0x0005,
    }
}

open_flags! {
    /// Compression flags. \[MS-SMB2\] 2.2.3.1.3
    CompressionFlags(u32) {
        /// Chained compression payloads are allowed.
        CHAINED = 0x0000_0001,
    }
}

open_flags! {
    /// Security features of the transport. \[MS-SMB2\] 2.2.3.1.5
    TransportFlags(u32) {
        /// The peer accepts the encryption of the transport instead of SMB encryption.
        ACCEPT_TRANSPORT_LEVEL_SECURITY = 0x0000_0001,
    }
}

open_enum! {
    /// A transform of data that RDMA transfers. \[MS-SMB2\] 2.2.3.1.6
    RdmaTransform(u16) {
        /// No transform.
        NONE = 0x0000,
        /// Encryption.
        ENCRYPTION = 0x0001,
        /// Signing.
        SIGNING = 0x0002,
    }
}

open_enum! {
    /// A signing algorithm. \[MS-SMB2\] 2.2.3.1.7
    SigningAlgorithm(u16) {
        /// HMAC-SHA256.
        HMAC_SHA256 = 0x0000,
        /// AES-CMAC.
        AES_CMAC = 0x0001,
        /// AES-GMAC.
        AES_GMAC = 0x0002,
    }
}

/// The only data of POSIX_EXTENSIONS_AVAILABLE: 93AD2550-9CB4-11E7-B423-83DE968BCD7C, with the
/// bytes in wire order.
pub const POSIX_EXTENSIONS: Guid = Guid([
    0x93, 0xAD, 0x25, 0x50, 0x9C, 0xB4, 0x11, 0xE7, 0xB4, 0x23, 0x83, 0xDE, 0x96, 0x8B, 0xCD, 0x7C,
]);

/// One negotiate context, with undecoded data. \[MS-SMB2\] 2.2.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawContext<'a> {
    /// Type of the context.
    pub context_type: ContextType,
    /// Data of the context.
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

/// Data of PREAUTH_INTEGRITY_CAPABILITIES. \[MS-SMB2\] 2.2.3.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreauthIntegrity<'a> {
    /// Request: the supported algorithms. Response: the selected one.
    pub hash_algorithms: Vec<HashAlgorithm>,
    /// Random bytes of the sender, which make its messages unpredictable.
    pub salt: &'a [u8],
}

impl<'a> PreauthIntegrity<'a> {
    /// Decodes the data of the context.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("HashAlgorithmCount")?;
        let salt_length = reader.u16("SaltLength")?;
        Ok(Self {
            hash_algorithms: decode_ids(&mut reader, "HashAlgorithms", count, HashAlgorithm)?,
            salt: reader.bytes("Salt", salt_length.into())?,
        })
    }

    /// Encodes the data of the context.
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

/// Data of ENCRYPTION_CAPABILITIES. \[MS-SMB2\] 2.2.3.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// Request: the supported ciphers, the preferred one first. Response: the selected one, or
    /// NONE.
    pub ciphers: Vec<Cipher>,
}

impl Encryption {
    /// Decodes the data of the context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("CipherCount")?;
        let ciphers = decode_ids(&mut reader, "Ciphers", count, Cipher)?;
        Ok(Self { ciphers })
    }

    /// Encodes the data of the context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.ciphers.len()));
        for cipher in &self.ciphers {
            data.put_u16(cipher.0);
        }
        data
    }
}

/// Data of COMPRESSION_CAPABILITIES. \[MS-SMB2\] 2.2.3.1.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Whether chained payloads are allowed.
    pub flags: CompressionFlags,
    /// Request: the supported algorithms. Response: the selected ones, or NONE.
    pub algorithms: Vec<CompressionAlgorithm>,
}

impl Compression {
    /// Decodes the data of the context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("CompressionAlgorithmCount")?;
        reader.skip("Padding", 2)?;
        let flags = CompressionFlags(reader.u32("Flags")?);
        let field = "CompressionAlgorithms";
        let algorithms = decode_ids(&mut reader, field, count, CompressionAlgorithm)?;
        Ok(Self { flags, algorithms })
    }

    /// Encodes the data of the context.
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

/// Data of NETNAME_NEGOTIATE_CONTEXT_ID: the server name that the client uses. \[MS-SMB2\]
/// 2.2.3.1.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetName<'a>(pub Utf16<'a>);

impl<'a> NetName<'a> {
    /// Decodes the data of the context. All of it is the name.
    pub fn decode(data: &'a [u8]) -> Self {
        Self(Utf16(data))
    }

    /// Encodes the data of the context.
    pub fn encode(&self) -> Vec<u8> {
        self.0.0.to_vec()
    }
}

/// Data of TRANSPORT_CAPABILITIES. \[MS-SMB2\] 2.2.3.1.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Security features of the transport.
    pub flags: TransportFlags,
}

impl Transport {
    /// Decodes the data of the context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let flags = TransportFlags(Reader::new(data).u32("Flags")?);
        Ok(Self { flags })
    }

    /// Encodes the data of the context.
    pub fn encode(&self) -> Vec<u8> {
        self.flags.0.to_le_bytes().to_vec()
    }
}

/// Data of RDMA_TRANSFORM_CAPABILITIES. \[MS-SMB2\] 2.2.3.1.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaTransforms {
    /// The supported transforms.
    pub transforms: Vec<RdmaTransform>,
}

impl RdmaTransforms {
    /// Decodes the data of the context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("TransformCount")?;
        reader.skip("Reserved", 6)?;
        let transforms = decode_ids(&mut reader, "RDMATransformIds", count, RdmaTransform)?;
        Ok(Self { transforms })
    }

    /// Encodes the data of the context.
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

/// Data of SIGNING_CAPABILITIES. \[MS-SMB2\] 2.2.3.1.7
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    /// Request: the supported algorithms, the preferred one first. Response: the selected one.
    pub algorithms: Vec<SigningAlgorithm>,
}

impl Signing {
    /// Decodes the data of the context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("SigningAlgorithmCount")?;
        let algorithms = decode_ids(&mut reader, "SigningAlgorithms", count, SigningAlgorithm)?;
        Ok(Self { algorithms })
    }

    /// Encodes the data of the context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.algorithms.len()));
        for algorithm in &self.algorithms {
            data.put_u16(algorithm.0);
        }
        data
    }
}
