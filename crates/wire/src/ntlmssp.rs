//! The three NTLM messages and their structures. [MS-NLMP] 2.2
//!
//! Names remain UTF-16LE bytes, because NTLM hashes some of them, and a conversion could change a
//! name that is not valid UTF-16. [`text`] and [`utf16`] convert them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::BitOr;

/// The first eight bytes of every NTLM message. [MS-NLMP] 2.2.1
pub const SIGNATURE: [u8; 8] = *b"NTLMSSP\0";

/// Length in bytes of the MIC (message integrity code) of an NTLM AUTHENTICATE message. [MS-NLMP]
/// 2.2.1.3
pub const MIC_LEN: usize = 16;

/// Offset in bytes of the MIC (message integrity code) in an NTLM AUTHENTICATE message. [MS-NLMP]
/// 2.2.1.3
pub const MIC_OFFSET: usize = 72;

/// Maximum number of AV_PAIRs in a target info of NTLM that [`AvPairs`] accepts. The specification
/// defines 11 identifiers.
pub const AV_PAIRS_MAX: usize = 64;

/// NEGOTIATE_MESSAGE: the first message of an NTLM login, from client to server, which offers
/// capabilities. [MS-NLMP] 2.2.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// The capabilities (NTLM flags) that the client offers.
    pub flags: Flags,
    /// Domain of the client in the client's OEM code page; usually empty.
    pub domain: &'a [u8],
    /// Name of the client computer in the client's OEM code page; usually empty.
    pub workstation: &'a [u8],
    /// Version of the client's operating system; `None` without [`Flags::VERSION`].
    pub version: Option<Version>,
}

/// CHALLENGE_MESSAGE: the second message of an NTLM login, from server to client. It has the random
/// challenge of the server. [MS-NLMP] 2.2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// The capabilities (NTLM flags) that the server grants.
    pub flags: Flags,
    /// Name of the server or its domain, in UTF-16LE, or in an OEM code page without
    /// [`Flags::UNICODE`].
    pub target_name: &'a [u8],
    /// Eight random bytes of the server, over which the client computes its proof of the password.
    pub server_challenge: [u8; 8],
    /// Names and time of the server: a list of AV_PAIRs, which [`AvPairs`] decodes; empty without
    /// [`Flags::TARGET_INFO`].
    pub target_info: &'a [u8],
    /// Version of the server's operating system; `None` without [`Flags::VERSION`].
    pub version: Option<Version>,
}

/// AUTHENTICATE_MESSAGE: the third and last message of an NTLM login, from client to server. It has
/// the names of user and domain, and the client's responses to the challenge, which prove the
/// password. [MS-NLMP] 2.2.1.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate<'a> {
    /// The capabilities (NTLM flags) that both peers offer.
    pub flags: Flags,
    /// The LM or LMv2 response to the server's challenge, 24 bytes; current clients send zeros, or
    /// no bytes.
    pub lm_response: &'a [u8],
    /// The client's response to the server's challenge: an encoded [`Ntlmv2Response`], or the 24
    /// bytes of an NTLMv1 response; empty for an anonymous client.
    pub nt_response: &'a [u8],
    /// Domain of the account, in UTF-16LE, or in an OEM code page without [`Flags::UNICODE`].
    pub domain: &'a [u8],
    /// User name of the account, in UTF-16LE, or in an OEM code page without [`Flags::UNICODE`];
    /// empty for an anonymous client.
    pub user: &'a [u8],
    /// Name of the client computer, in UTF-16LE, or in an OEM code page without [`Flags::UNICODE`].
    pub workstation: &'a [u8],
    /// The 16-byte session key that the client chose, encrypted. Empty without
    /// [`Flags::KEY_EXCHANGE`].
    pub encrypted_session_key: &'a [u8],
    /// Version of the client's operating system; `None` without [`Flags::VERSION`].
    pub version: Option<Version>,
    /// The 16 bytes at [`MIC_OFFSET`]; `None` when the variable part of the message starts before
    /// their end. They are a MIC (message integrity code) only if the client's target info has
    /// [`AvFlags::MIC`].
    pub mic: Option<[u8; MIC_LEN]>,
}

/// A decoded NTLM message: NEGOTIATE, CHALLENGE or AUTHENTICATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The first message of the client.
    Negotiate(Negotiate<'a>),
    /// The message of the server.
    Challenge(Challenge<'a>),
    /// The second message of the client.
    Authenticate(Authenticate<'a>),
}

/// NTLMv2_RESPONSE: the client's proof of the password in an NTLM AUTHENTICATE message. [MS-NLMP]
/// 2.2.2.7, 2.2.2.8
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ntlmv2Response<'a> {
    /// NTProofStr: an HMAC over the server's challenge and `client_data`, with a key from the
    /// password.
    pub proof: [u8; 16],
    /// NTLMv2_CLIENT_CHALLENGE: the encoded data of the client that the proof covers. The fields
    /// `timestamp`, `client_challenge` and `target_info` are decoded from it.
    pub client_data: &'a [u8],
    /// Time at which the client made the response, in units of 100 ns since 1601-01-01 UTC.
    pub timestamp: u64,
    /// ChallengeFromClient: eight random bytes of the client.
    pub client_challenge: [u8; 8],
    /// The encoded list of [`AvPairs`] in the response: those of the server and the additions of
    /// the client.
    pub target_info: &'a [u8],
}

/// Capabilities that the peers of an NTLM login negotiate (NEGOTIATE flags), a bit mask. Unknown
/// bits are preserved. [MS-NLMP] 2.2.2.5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// NTLM capability: names in the messages are in UTF-16LE.
    pub const UNICODE: Self = Self(0x0000_0001);
    /// NTLM capability: names in the messages are in an OEM code page. UNICODE has precedence.
    pub const OEM: Self = Self(0x0000_0002);
    /// NTLM capability: the client asks for a target name in the CHALLENGE message.
    pub const REQUEST_TARGET: Self = Self(0x0000_0004);
    /// NTLM capability: the peers can sign messages with keys of the session.
    pub const SIGN: Self = Self(0x0000_0010);
    /// NTLM capability: the peers can encrypt messages with keys of the session.
    pub const SEAL: Self = Self(0x0000_0020);
    /// NTLM capability: the session key derives from the LM hash, which is obsolete.
    pub const LM_KEY: Self = Self(0x0000_0080);
    /// NTLM capability: the peer supports NTLM session security, version 1 or later. Every peer
    /// sets it.
    pub const NTLM: Self = Self(0x0000_0200);
    /// NTLM capability: the client logs in without a user name and password
    /// (NTLMSSP_NEGOTIATE_ANONYMOUS).
    pub const ANONYMOUS: Self = Self(0x0000_0800);
    /// NTLM capability: the NEGOTIATE message contains the domain of the client.
    pub const OEM_DOMAIN_SUPPLIED: Self = Self(0x0000_1000);
    /// NTLM capability: the NEGOTIATE message contains the name of the client computer.
    pub const OEM_WORKSTATION_SUPPLIED: Self = Self(0x0000_2000);
    /// NTLM capability: every message of the session has a signature, which is a constant without
    /// SIGN.
    pub const ALWAYS_SIGN: Self = Self(0x0000_8000);
    /// NTLM capability: the target name in the CHALLENGE message is the name of a domain.
    pub const TARGET_TYPE_DOMAIN: Self = Self(0x0001_0000);
    /// NTLM capability: the target name in the CHALLENGE message is the name of a server.
    pub const TARGET_TYPE_SERVER: Self = Self(0x0002_0000);
    /// NTLM capability: the peers use NTLMv2 session security, with HMAC-MD5 signatures.
    pub const EXTENDED_SESSION_SECURITY: Self = Self(0x0008_0000);
    /// NTLM capability: the CHALLENGE message contains a target info, a list of names of the
    /// server.
    pub const TARGET_INFO: Self = Self(0x0080_0000);
    /// NTLM capability: the message contains the version of the sender's operating system.
    pub const VERSION: Self = Self(0x0200_0000);
    /// NTLM capability: keys for encryption have 128 bits.
    pub const KEY_128: Self = Self(0x2000_0000);
    /// NTLM capability: the client chooses a random session key and sends it encrypted.
    pub const KEY_EXCHANGE: Self = Self(0x4000_0000);
    /// NTLM capability: keys for encryption have 56 bits, unless KEY_128 is set as well.
    pub const KEY_56: Self = Self(0x8000_0000);

    /// Returns true if every bit of `flags` is set in this value.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns these flags without the bits that are set in `flags`.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Version of the operating system of the sender of an NTLM message, as 8 bytes in wire order. It
/// is for debugging only. [MS-NLMP] 2.2.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub [u8; 8]);

impl Version {
    /// The NTLM version field of Windows 10, Server 2016 and later: 10.0, NTLM revision 15.
    pub const WINDOWS_10: Self = Self([10, 0, 0, 0, 0, 0, 0, 15]);
}

/// The identifier of an AV_PAIR: a typed value in the target info of an NTLM message. Unknown
/// identifiers are preserved. [MS-NLMP] 2.2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvId(pub u16);

impl AvId {
    /// AV_PAIR that ends a list (MsvAvEOL). It has no value.
    pub const EOL: Self = Self(0);
    /// AV_PAIR with the NetBIOS name of the server, in UTF-16LE.
    pub const NETBIOS_COMPUTER_NAME: Self = Self(1);
    /// AV_PAIR with the NetBIOS name of the server's domain, in UTF-16LE.
    pub const NETBIOS_DOMAIN_NAME: Self = Self(2);
    /// AV_PAIR with the fully qualified DNS name of the server, in UTF-16LE.
    pub const DNS_COMPUTER_NAME: Self = Self(3);
    /// AV_PAIR with the DNS name of the server's domain, in UTF-16LE.
    pub const DNS_DOMAIN_NAME: Self = Self(4);
    /// AV_PAIR with the DNS name of the server's Active Directory forest, in UTF-16LE.
    pub const DNS_TREE_NAME: Self = Self(5);
    /// AV_PAIR with flags of the client: an [`AvFlags`] of 4 bytes.
    pub const FLAGS: Self = Self(6);
    /// AV_PAIR with the time of the server: a FILETIME of 8 bytes (units of 100 ns since 1601).
    pub const TIMESTAMP: Self = Self(7);
    /// AV_PAIR with data that identify the client computer, for authentications on the same
    /// computer.
    pub const SINGLE_HOST: Self = Self(8);
    /// AV_PAIR with the service principal name of the server that the client means to reach, in
    /// UTF-16LE.
    pub const TARGET_NAME: Self = Self(9);
    /// AV_PAIR with an MD5 hash of 16 bytes that ties the authentication to a TLS channel; zeros
    /// for none.
    pub const CHANNEL_BINDINGS: Self = Self(10);
}

/// Flags of the client in the target info of an NTLM AUTHENTICATE message: the value of
/// [`AvId::FLAGS`]. [MS-NLMP] 2.2.2.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvFlags(pub u32);

impl AvFlags {
    /// Flag: a policy restricts the authentication of the account.
    pub const CONSTRAINED: Self = Self(1);
    /// Flag: the AUTHENTICATE message carries a MIC (message integrity code).
    pub const MIC: Self = Self(2);
    /// Flag: the client got the target name from a source that it does not trust.
    pub const UNTRUSTED_TARGET: Self = Self(4);

    /// Returns true if every bit of `flags` is set in this value.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// Iterates over the AV_PAIRs (identifier and value) of a target info of NTLM, up to the pair that
/// ends the list (MsvAvEOL). A malformed list gives an error, which ends the iteration. [MS-NLMP]
/// 2.2.2.1
#[derive(Clone, Debug)]
pub struct AvPairs<'a> {
    rest: &'a [u8],
    left: usize,
    ended: bool,
}

/// The reason why bytes are not a valid NTLM message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The message ends within its fixed part.
    Truncated,
    /// The message does not start with [`SIGNATURE`].
    Signature,
    /// The MessageType field has this value, which is none of the three messages, or not the
    /// expected one.
    MessageType(u32),
    /// The field with this name points outside the message, or into its fixed part.
    Field(&'static str),
    /// The target info is truncated, has no MsvAvEOL, or has more than [`AV_PAIRS_MAX`] pairs.
    AvPairs,
    /// The NT response is shorter than an NTLMv2 response, or has another version.
    NotNtlmv2,
}

impl<'a> Message<'a> {
    /// Decodes any of the three NTLM messages, by its MessageType.
    ///
    /// # Errors
    /// Fails when `bytes` is truncated or not an NTLM message, or a field points outside `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match Reader::message_type(bytes)? {
            Negotiate::TYPE => Negotiate::decode(bytes).map(Self::Negotiate),
            Challenge::TYPE => Challenge::decode(bytes).map(Self::Challenge),
            Authenticate::TYPE => Authenticate::decode(bytes).map(Self::Authenticate),
            other => Err(DecodeError::MessageType(other)),
        }
    }
}

impl<'a> Negotiate<'a> {
    const TYPE: u32 = 1;

    /// Decodes an NTLM NEGOTIATE message. The fields after the flags may be absent. [MS-NLMP]
    /// 2.2.1.1
    ///
    /// # Errors
    /// Fails when `bytes` is truncated or another message, or a field points outside `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let message = Reader::new(bytes, Self::TYPE, 32)?;
        let flags = Flags(message.u32(12)?);
        let supplied = |flag, at, name| match flags.contains(flag) {
            true => message.field(at, name),
            false => Ok(&[][..]),
        };
        Ok(Self {
            flags,
            domain: supplied(Flags::OEM_DOMAIN_SUPPLIED, 16, "DomainName")?,
            workstation: supplied(Flags::OEM_WORKSTATION_SUPPLIED, 24, "Workstation")?,
            version: message.version(flags, 32),
        })
    }

    /// Encodes the NTLM NEGOTIATE message. Panics when a field is longer than 65,535 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = Writer::new(Self::TYPE, 40);
        message.put(12, &self.flags.0.to_le_bytes());
        message.put_version(32, self.version);
        for (at, value) in [(16, self.domain), (24, self.workstation)] {
            if !value.is_empty() {
                message.field(at, value);
            }
        }
        message.bytes
    }
}

impl<'a> Challenge<'a> {
    const TYPE: u32 = 2;

    /// Decodes an NTLM CHALLENGE message. [MS-NLMP] 2.2.1.2
    ///
    /// # Errors
    /// Fails when `bytes` is truncated or another message, or a field points outside `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let message = Reader::new(bytes, Self::TYPE, 48)?;
        let flags = Flags(message.u32(20)?);
        let has_info = flags.contains(Flags::TARGET_INFO);
        Ok(Self {
            flags,
            target_name: message.field(12, "TargetName")?,
            server_challenge: message.array(24)?,
            target_info: if has_info {
                message.field(40, "TargetInfo")?
            } else {
                &[]
            },
            version: message.version(flags, 48),
        })
    }

    /// Encodes the NTLM CHALLENGE message. Panics when a field is longer than 65,535 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = Writer::new(Self::TYPE, 56);
        message.put(20, &self.flags.0.to_le_bytes());
        message.put(24, &self.server_challenge);
        message.put_version(48, self.version);
        message.field(12, self.target_name);
        message.field(40, self.target_info);
        message.bytes
    }
}

impl<'a> Authenticate<'a> {
    const TYPE: u32 = 3;
    const FIELDS: [usize; 6] = [12, 20, 28, 36, 44, 52];

    /// Decodes an NTLM AUTHENTICATE message. [MS-NLMP] 2.2.1.3
    ///
    /// # Errors
    /// Fails when `bytes` is truncated or another message, or a field points outside `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let message = Reader::new(bytes, Self::TYPE, 64)?;
        let flags = Flags(message.u32(60)?);
        let payload = message.payload_offset(&Self::FIELDS)?;
        let has_mic = payload >= MIC_OFFSET + MIC_LEN;
        Ok(Self {
            flags,
            lm_response: message.field(12, "LmChallengeResponse")?,
            nt_response: message.field(20, "NtChallengeResponse")?,
            domain: message.field(28, "DomainName")?,
            user: message.field(36, "UserName")?,
            workstation: message.field(44, "Workstation")?,
            encrypted_session_key: message.field(52, "EncryptedRandomSessionKey")?,
            version: if payload >= MIC_OFFSET {
                message.version(flags, 64)
            } else {
                None
            },
            mic: if has_mic {
                message.array(MIC_OFFSET).ok()
            } else {
                None
            },
        })
    }

    /// Encodes the NTLM AUTHENTICATE message. Panics when a field is longer than 65,535 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mic_len = if self.mic.is_some() { MIC_LEN } else { 0 };
        let mut message = Writer::new(Self::TYPE, MIC_OFFSET + mic_len);
        message.put(60, &self.flags.0.to_le_bytes());
        message.put_version(64, self.version);
        message.put(MIC_OFFSET, self.mic.as_ref().map_or(&[], |mic| &mic[..]));
        // The order of the payload fields in Windows.
        message.field(28, self.domain);
        message.field(36, self.user);
        message.field(44, self.workstation);
        message.field(12, self.lm_response);
        message.field(20, self.nt_response);
        message.field(52, self.encrypted_session_key);
        message.bytes
    }
}

impl<'a> Ntlmv2Response<'a> {
    /// Length in bytes of the proof and of the fixed part of the client's data. [MS-NLMP] 2.2.2.7
    const FIXED_LEN: usize = 16 + 28;

    /// Decodes the NT response of an AUTHENTICATE message as an NTLMv2 response, and checks its
    /// target info.
    ///
    /// # Errors
    /// Fails when `response` is truncated, is an NTLMv1 response, or its target info is not well
    /// formed.
    pub fn decode(response: &'a [u8]) -> Result<Self, DecodeError> {
        let (proof, client_data) = response.split_first_chunk().ok_or(DecodeError::NotNtlmv2)?;
        // RespType and HiRespType.
        if response.len() < Self::FIXED_LEN || client_data[..2] != [1, 1] {
            return Err(DecodeError::NotNtlmv2);
        }
        let target_info = &client_data[28..];
        AvPairs::new(target_info).try_for_each(|pair| pair.map(|_| ()))?;
        Ok(Self {
            proof: *proof,
            client_data,
            timestamp: u64::from_le_bytes(array_at(client_data, 8)?),
            client_challenge: array_at(client_data, 16)?,
            target_info,
        })
    }

    /// Encodes NTLMv2_CLIENT_CHALLENGE, the client's data that the proof covers, with the four zero
    /// bytes at its end. `timestamp` is in units of 100 ns since 1601-01-01 UTC. [MS-NLMP] 3.3.2
    pub fn client_data(timestamp: u64, client_challenge: [u8; 8], target_info: &[u8]) -> Vec<u8> {
        let mut data = Vec::from([1, 1, 0, 0, 0, 0, 0, 0]);
        data.extend_from_slice(&timestamp.to_le_bytes());
        data.extend_from_slice(&client_challenge);
        data.extend_from_slice(&[0; 4]);
        data.extend_from_slice(target_info);
        data.extend_from_slice(&[0; 4]);
        data
    }

    /// Returns the client's flags (MsvAvFlags) in the target info of the response; no flags when it
    /// has none.
    pub fn av_flags(&self) -> AvFlags {
        let value = AvPairs::new(self.target_info).find(AvId::FLAGS);
        AvFlags(
            value
                .and_then(|value| array_at(value, 0).ok())
                .map_or(0, u32::from_le_bytes),
        )
    }
}

impl<'a> AvPairs<'a> {
    /// Makes the iterator over the pairs of `target_info`, an encoded list of AV_PAIRs.
    pub const fn new(target_info: &'a [u8]) -> Self {
        Self {
            rest: target_info,
            left: AV_PAIRS_MAX,
            ended: false,
        }
    }

    /// Returns the value of the first pair with the identifier `id`; `None` when no pair has it
    /// before the end of the list or its first malformed pair.
    pub fn find(self, id: AvId) -> Option<&'a [u8]> {
        self.map_while(Result::ok)
            .find(|(found, _)| *found == id)
            .map(|(_, value)| value)
    }

    /// Appends one AV_PAIR with the identifier `id` and the value `value` to an encoded target
    /// info. The caller appends [`AvId::EOL`] as the last pair.
    ///
    /// # Panics
    /// Panics when the value is longer than 65,535 bytes.
    pub fn push(target_info: &mut Vec<u8>, id: AvId, value: &[u8]) {
        let len = u16::try_from(value.len()).expect("the length of an AV_PAIR has 16 bits");
        target_info.extend_from_slice(&id.0.to_le_bytes());
        target_info.extend_from_slice(&len.to_le_bytes());
        target_info.extend_from_slice(value);
    }

    fn read(&mut self) -> Option<(AvId, &'a [u8])> {
        let (head, rest) = self.rest.split_first_chunk::<4>()?;
        let len = u16::from_le_bytes([head[2], head[3]]);
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        self.rest = rest;
        self.left = self.left.checked_sub(1)?;
        Some((AvId(u16::from_le_bytes([head[0], head[1]])), value))
    }
}

impl<'a> Iterator for AvPairs<'a> {
    type Item = Result<(AvId, &'a [u8]), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let pair = self.read();
        self.ended = !matches!(pair, Some((id, _)) if id != AvId::EOL);
        match pair {
            Some((AvId::EOL, _)) => None,
            Some(pair) => Some(Ok(pair)),
            None => Some(Err(DecodeError::AvPairs)),
        }
    }
}

/// Converts UTF-16LE bytes to text; `None` when they are not valid UTF-16.
pub fn text(utf16: &[u8]) -> Option<String> {
    let (units, rest) = utf16.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    rest.is_empty()
        .then(|| char::decode_utf16(units).collect::<Result<_, _>>().ok())?
}

/// Converts text to UTF-16LE bytes, without a terminating zero.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Reads fields at fixed offsets, and the payload that their offsets and lengths point to.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Length in bytes of the fixed part, which the payload may not overlap.
    fixed_len: usize,
}

impl<'a> Reader<'a> {
    fn message_type(bytes: &[u8]) -> Result<u32, DecodeError> {
        if !bytes.starts_with(&SIGNATURE) {
            return Err(DecodeError::Signature);
        }
        Ok(u32::from_le_bytes(array_at(bytes, 8)?))
    }

    fn new(bytes: &'a [u8], expected: u32, fixed_len: usize) -> Result<Self, DecodeError> {
        match Self::message_type(bytes)? {
            found if found == expected => Ok(Self { bytes, fixed_len }),
            found => Err(DecodeError::MessageType(found)),
        }
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], DecodeError> {
        array_at(self.bytes, at)
    }

    fn u32(&self, at: usize) -> Result<u32, DecodeError> {
        self.array(at).map(u32::from_le_bytes)
    }

    /// Length and offset in bytes in the field descriptor at `at`.
    fn extent(&self, at: usize) -> Result<(u64, u64), DecodeError> {
        let len = u16::from_le_bytes(self.array(at)?);
        Ok((u64::from(len), u64::from(self.u32(at + 4)?)))
    }

    /// The payload of the field descriptor at `at`. An empty field may have any offset.
    fn field(&self, at: usize, name: &'static str) -> Result<&'a [u8], DecodeError> {
        let (len, offset) = self.extent(at)?;
        if len == 0 {
            return Ok(&[]);
        }
        let range = usize::try_from(offset)
            .ok()
            .zip(usize::try_from(offset + len).ok())
            .filter(|(start, _)| *start >= self.fixed_len);
        range
            .and_then(|(start, end)| self.bytes.get(start..end))
            .ok_or(DecodeError::Field(name))
    }

    /// Offset in bytes of the first non-empty field; the length of the message if all are empty.
    fn payload_offset(&self, fields: &[usize]) -> Result<usize, DecodeError> {
        let mut first = self.bytes.len();
        for at in fields {
            let (len, offset) = self.extent(*at)?;
            if len > 0 {
                first = first.min(usize::try_from(offset).unwrap_or(usize::MAX));
            }
        }
        Ok(first)
    }

    fn version(&self, flags: Flags, at: usize) -> Option<Version> {
        let version = self.array(at).ok().map(Version);
        version.filter(|_| flags.contains(Flags::VERSION))
    }
}

/// A message with zeros in its fixed part, for the encoder to fill in and extend.
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn new(message_type: u32, fixed_len: usize) -> Self {
        let mut message = Self {
            bytes: alloc::vec![0; fixed_len],
        };
        message.put(0, &SIGNATURE);
        message.put(8, &message_type.to_le_bytes());
        message
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn put_version(&mut self, at: usize, version: Option<Version>) {
        self.put(at, version.as_ref().map_or(&[], |version| &version.0[..]));
    }

    /// Appends `value` and writes its field descriptor at `at`.
    fn field(&mut self, at: usize, value: &[u8]) {
        let len = u16::try_from(value.len()).expect("fields of NTLM have 16-bit lengths");
        let offset = u32::try_from(self.bytes.len()).expect("six fields of 64 KiB fit 32 bits");
        self.put(at, &len.to_le_bytes());
        self.put(at + 2, &len.to_le_bytes());
        self.put(at + 4, &offset.to_le_bytes());
        self.bytes.extend_from_slice(value);
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], DecodeError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or(DecodeError::Truncated)
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("NTLM message is truncated"),
            Self::Signature => f.write_str("not an NTLM message"),
            Self::MessageType(found) => write!(f, "unexpected NTLM message type {found}"),
            Self::Field(name) => write!(f, "{name} points outside the NTLM message"),
            Self::AvPairs => f.write_str("NTLM target info is malformed"),
            Self::NotNtlmv2 => f.write_str("NT response is not an NTLMv2 response"),
        }
    }
}

impl core::error::Error for DecodeError {}
