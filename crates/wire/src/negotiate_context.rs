//! What 3.1.1 adds to NEGOTIATE: the list of contexts and what they say. \[MS-SMB2\] 2.2.3.1

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u16_of;
use crate::open_enum::{open_enum, open_flags};
use crate::text::Utf16;

/// Most contexts of a message. The specification knows eight types, each once; the rest is room
/// for those to come.
pub const MAX_CONTEXTS: u16 = 64;

open_enum! {
    /// What a context is about. \[MS-SMB2\] 2.2.3.1
    ContextType(u16) {
        /// The hash that guards the messages before the login.
        PREAUTH_INTEGRITY_CAPABILITIES = 0x0001,
        /// Ciphers.
        ENCRYPTION_CAPABILITIES = 0x0002,
        /// Compression algorithms.
        COMPRESSION_CAPABILITIES = 0x0003,
        /// The name by which the client calls the server.
        NETNAME_NEGOTIATE_CONTEXT_ID = 0x0005,
        /// What the transport does by itself.
        TRANSPORT_CAPABILITIES = 0x0006,
        /// What is done to data that go by RDMA.
        RDMA_TRANSFORM_CAPABILITIES = 0x0007,
        /// Signing algorithms.
        SIGNING_CAPABILITIES = 0x0008,
        /// The POSIX extensions of Samba and Linux; not of \[MS-SMB2\].
        POSIX_EXTENSIONS_AVAILABLE = 0x0100,
    }
}

open_enum! {
    /// A hash of the preauthentication integrity. \[MS-SMB2\] 2.2.3.1.1
    HashAlgorithm(u16) {
        /// SHA-512.
        SHA_512 = 0x0001,
    }
}

open_enum! {
    /// A cipher. \[MS-SMB2\] 2.2.3.1.2
    Cipher(u16) {
        /// In a response: no cipher in common.
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
        /// In a response: none in common.
        NONE = 0x0000,
        /// LZNT1.
        LZNT1 = 0x0001,
        /// LZ77.
        LZ77 = 0x0002,
        /// LZ77 with Huffman coding.
        LZ77_HUFFMAN = 0x0003,
        /// A run of one byte.
        PATTERN_V1 = 0x0004,
        /// LZ4.
        LZ4 = 0x0005,
    }
}

open_flags! {
    /// How messages are compressed. \[MS-SMB2\] 2.2.3.1.3
    CompressionFlags(u32) {
        /// Several payloads may be chained.
        CHAINED = 0x0000_0001,
    }
}

open_flags! {
    /// What the transport does. \[MS-SMB2\] 2.2.3.1.5
    TransportFlags(u32) {
        /// The transport encrypts; SMB need not.
        ACCEPT_TRANSPORT_LEVEL_SECURITY = 0x0000_0001,
    }
}

open_enum! {
    /// What is done to data that go by RDMA. \[MS-SMB2\] 2.2.3.1.6
    RdmaTransform(u16) {
        /// Nothing.
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

/// The only content of POSIX_EXTENSIONS_AVAILABLE: 93AD2550-9CB4-11E7-B423-83DE968BCD7C, as its
/// bytes stand on the wire.
pub const POSIX_EXTENSIONS: Guid = Guid([
    0x93, 0xAD, 0x25, 0x50, 0x9C, 0xB4, 0x11, 0xE7, 0xB4, 0x23, 0x83, 0xDE, 0x96, 0x8B, 0xCD, 0x7C,
]);

/// A context as it stands in the message. \[MS-SMB2\] 2.2.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawContext<'a> {
    /// What it is about.
    pub context_type: ContextType,
    /// What it says.
    pub data: &'a [u8],
}

/// Reads the contexts of a message. Each starts at a multiple of 8 bytes; the padding of the last
/// may be missing.
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

/// Appends the contexts at a multiple of 8 bytes.
pub(crate) fn encode_list(contexts: &[RawContext<'_>], message: &mut Vec<u8>) {
    for context in contexts {
        message.align(8);
        message.put_u16(context.context_type.0);
        message.put_u16(u16_of(context.data.len()));
        message.put_u32(0);
        message.put(context.data);
    }
}

/// Reads `count` numbers of 16 bits.
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

/// Hashes that a side can compute, and its salt. \[MS-SMB2\] 2.2.3.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreauthIntegrity<'a> {
    /// In a response: the one chosen.
    pub hash_algorithms: Vec<HashAlgorithm>,
    /// Random bytes.
    pub salt: &'a [u8],
}

impl<'a> PreauthIntegrity<'a> {
    /// Reads the data of a context.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("HashAlgorithmCount")?;
        let salt_length = reader.u16("SaltLength")?;
        Ok(Self {
            hash_algorithms: decode_ids(&mut reader, "HashAlgorithms", count, HashAlgorithm)?,
            salt: reader.bytes("Salt", salt_length.into())?,
        })
    }

    /// The data of a context.
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

/// Ciphers that a side can do, best first. \[MS-SMB2\] 2.2.3.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// In a response: the one chosen, or NONE.
    pub ciphers: Vec<Cipher>,
}

impl Encryption {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("CipherCount")?;
        let ciphers = decode_ids(&mut reader, "Ciphers", count, Cipher)?;
        Ok(Self { ciphers })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.ciphers.len()));
        for cipher in &self.ciphers {
            data.put_u16(cipher.0);
        }
        data
    }
}

/// Compression algorithms that a side can do. \[MS-SMB2\] 2.2.3.1.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compression {
    /// Whether payloads may be chained.
    pub flags: CompressionFlags,
    /// In a response: those chosen, or NONE.
    pub algorithms: Vec<CompressionAlgorithm>,
}

impl Compression {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("CompressionAlgorithmCount")?;
        reader.skip("Padding", 2)?;
        let flags = CompressionFlags(reader.u32("Flags")?);
        let field = "CompressionAlgorithms";
        let algorithms = decode_ids(&mut reader, field, count, CompressionAlgorithm)?;
        Ok(Self { flags, algorithms })
    }

    /// The data of a context.
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

/// The name by which the client calls the server. \[MS-SMB2\] 2.2.3.1.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetName<'a>(pub Utf16<'a>);

impl<'a> NetName<'a> {
    /// Reads the data of a context: all of it is the name.
    pub fn decode(data: &'a [u8]) -> Self {
        Self(Utf16(data))
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        self.0.0.to_vec()
    }
}

/// What the transport does by itself. \[MS-SMB2\] 2.2.3.1.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// What it does.
    pub flags: TransportFlags,
}

impl Transport {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let flags = TransportFlags(Reader::new(data).u32("Flags")?);
        Ok(Self { flags })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        self.flags.0.to_le_bytes().to_vec()
    }
}

/// What a side can do to data that go by RDMA. \[MS-SMB2\] 2.2.3.1.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RdmaTransforms {
    /// The transforms.
    pub transforms: Vec<RdmaTransform>,
}

impl RdmaTransforms {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("TransformCount")?;
        reader.skip("Reserved", 6)?;
        let transforms = decode_ids(&mut reader, "RDMATransformIds", count, RdmaTransform)?;
        Ok(Self { transforms })
    }

    /// The data of a context.
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

/// Signing algorithms that a side can do, best first. \[MS-SMB2\] 2.2.3.1.7
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    /// In a response: the one chosen.
    pub algorithms: Vec<SigningAlgorithm>,
}

impl Signing {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let count = reader.u16("SigningAlgorithmCount")?;
        let algorithms = decode_ids(&mut reader, "SigningAlgorithms", count, SigningAlgorithm)?;
        Ok(Self { algorithms })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(u16_of(self.algorithms.len()));
        for algorithm in &self.algorithms {
            data.put_u16(algorithm.0);
        }
        data
    }
}
