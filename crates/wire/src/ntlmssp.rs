//! The three messages of NTLM and what is in them. [MS-NLMP] 2.2
//!
//! Names stay UTF-16LE bytes, as they were sent: NTLM hashes some of them, and a name that is not
//! valid UTF-16 must not become another name on the way. [`text`] and [`utf16`] convert.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::BitOr;

/// What every message begins with. [MS-NLMP] 2.2.1
pub const SIGNATURE: [u8; 8] = *b"NTLMSSP\0";

/// Bytes of the MIC of an AUTHENTICATE. [MS-NLMP] 2.2.1.3
pub const MIC_LEN: usize = 16;

/// Where the MIC lies in an AUTHENTICATE that has one, in bytes. [MS-NLMP] 2.2.1.3
pub const MIC_OFFSET: usize = 72;

/// Pairs in one target info before it counts as garbage; there are 11 ids.
pub const AV_PAIRS_MAX: usize = 64;

/// What the client offers first. [MS-NLMP] 2.2.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// What the client can do.
    pub flags: Flags,
    /// The client's domain in its OEM code page; mostly empty.
    pub domain: &'a [u8],
    /// The client's name in its OEM code page; mostly empty.
    pub workstation: &'a [u8],
    /// With [`Flags::VERSION`].
    pub version: Option<Version>,
}

/// What the server answers. [MS-NLMP] 2.2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// What was agreed on so far.
    pub flags: Flags,
    /// The server's name or domain, UTF-16LE.
    pub target_name: &'a [u8],
    /// Random bytes that the client's proof covers.
    pub server_challenge: [u8; 8],
    /// [`AvPairs`] with [`Flags::TARGET_INFO`], otherwise empty.
    pub target_info: &'a [u8],
    /// With [`Flags::VERSION`].
    pub version: Option<Version>,
}

/// The client's proof. [MS-NLMP] 2.2.1.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate<'a> {
    /// What was agreed on.
    pub flags: Flags,
    /// 24 bytes of LM or LMv2 response; zeros or nothing from anybody new.
    pub lm_response: &'a [u8],
    /// A [`Ntlmv2Response`], or 24 bytes of the older NTLM; empty when anonymous.
    pub nt_response: &'a [u8],
    /// The account's domain, UTF-16LE.
    pub domain: &'a [u8],
    /// The account's name, UTF-16LE; empty when anonymous.
    pub user: &'a [u8],
    /// The client's name, UTF-16LE.
    pub workstation: &'a [u8],
    /// The session key under the key exchange key, with [`Flags::KEY_EXCHANGE`].
    pub encrypted_session_key: &'a [u8],
    /// With [`Flags::VERSION`].
    pub version: Option<Version>,
    /// The 16 bytes at [`MIC_OFFSET`] when the payload leaves room for them. They are a MIC only
    /// if the client's target info says so: see [`AvFlags::MIC`].
    pub mic: Option<[u8; MIC_LEN]>,
}

/// One of the three messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The client's first.
    Negotiate(Negotiate<'a>),
    /// The server's.
    Challenge(Challenge<'a>),
    /// The client's second.
    Authenticate(Authenticate<'a>),
}

/// NtChallengeResponse of NTLMv2. [MS-NLMP] 2.2.2.7, 2.2.2.8
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ntlmv2Response<'a> {
    /// NTProofStr: the HMAC over the server's challenge and `client_data`.
    pub proof: [u8; 16],
    /// NTLMv2_CLIENT_CHALLENGE, everything that the proof covers from the client.
    pub client_data: &'a [u8],
    /// When, in units of 100 ns since 1601.
    pub timestamp: u64,
    /// ChallengeFromClient.
    pub client_challenge: [u8; 8],
    /// [`AvPairs`]: those of the server, with the client's additions.
    pub target_info: &'a [u8],
}

/// NEGOTIATE flags. [MS-NLMP] 2.2.2.5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u32);

#[expect(missing_docs, reason = "the names are those of [MS-NLMP] 2.2.2.5")]
impl Flags {
    pub const UNICODE: Self = Self(0x0000_0001);
    pub const OEM: Self = Self(0x0000_0002);
    pub const REQUEST_TARGET: Self = Self(0x0000_0004);
    pub const SIGN: Self = Self(0x0000_0010);
    pub const SEAL: Self = Self(0x0000_0020);
    pub const LM_KEY: Self = Self(0x0000_0080);
    pub const NTLM: Self = Self(0x0000_0200);
    pub const ANONYMOUS: Self = Self(0x0000_0800);
    pub const OEM_DOMAIN_SUPPLIED: Self = Self(0x0000_1000);
    pub const OEM_WORKSTATION_SUPPLIED: Self = Self(0x0000_2000);
    pub const ALWAYS_SIGN: Self = Self(0x0000_8000);
    pub const TARGET_TYPE_DOMAIN: Self = Self(0x0001_0000);
    pub const TARGET_TYPE_SERVER: Self = Self(0x0002_0000);
    pub const EXTENDED_SESSION_SECURITY: Self = Self(0x0008_0000);
    pub const TARGET_INFO: Self = Self(0x0080_0000);
    pub const VERSION: Self = Self(0x0200_0000);
    pub const KEY_128: Self = Self(0x2000_0000);
    pub const KEY_EXCHANGE: Self = Self(0x4000_0000);
    pub const KEY_56: Self = Self(0x8000_0000);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These without `flags`.
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

/// The sender's operating system, for debugging only. [MS-NLMP] 2.2.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub [u8; 8]);

impl Version {
    /// What Windows 10 and Server 2016 and later send: 10.0, NTLM revision 15.
    pub const WINDOWS_10: Self = Self([10, 0, 0, 0, 0, 0, 0, 15]);
}

/// What an AV_PAIR is about; unknown ids are passed on. [MS-NLMP] 2.2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvId(pub u16);

#[expect(missing_docs, reason = "the names are those of [MS-NLMP] 2.2.2.1")]
impl AvId {
    pub const EOL: Self = Self(0);
    pub const NETBIOS_COMPUTER_NAME: Self = Self(1);
    pub const NETBIOS_DOMAIN_NAME: Self = Self(2);
    pub const DNS_COMPUTER_NAME: Self = Self(3);
    pub const DNS_DOMAIN_NAME: Self = Self(4);
    pub const DNS_TREE_NAME: Self = Self(5);
    pub const FLAGS: Self = Self(6);
    pub const TIMESTAMP: Self = Self(7);
    pub const SINGLE_HOST: Self = Self(8);
    pub const TARGET_NAME: Self = Self(9);
    pub const CHANNEL_BINDINGS: Self = Self(10);
}

/// The value of [`AvId::FLAGS`]. [MS-NLMP] 2.2.2.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AvFlags(pub u32);

impl AvFlags {
    /// The account may authenticate only so much.
    pub const CONSTRAINED: Self = Self(1);
    /// The AUTHENTICATE carries a MIC.
    pub const MIC: Self = Self(2);
    /// The target name came from an untrusted source.
    pub const UNTRUSTED_TARGET: Self = Self(4);

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

/// Walks the AV_PAIRs of a target info up to its end mark. [MS-NLMP] 2.2.2.1
#[derive(Clone, Debug)]
pub struct AvPairs<'a> {
    rest: &'a [u8],
    left: usize,
    ended: bool,
}

/// Why bytes are no message of NTLM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Ends before its fixed part does.
    Truncated,
    /// Does not begin with [`SIGNATURE`].
    Signature,
    /// None of the three messages.
    MessageType(u32),
    /// This field lies outside the message, or inside its fixed part.
    Field(&'static str),
    /// The target info is cut off, has no end mark or no end.
    AvPairs,
    /// The response is not of NTLMv2.
    NotNtlmv2,
}

impl<'a> Message<'a> {
    /// Reads any of the three.
    ///
    /// # Errors
    /// When a field lies outside `bytes`, or it is no message of NTLM at all.
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

    /// Reads one. Everything after the flags may be missing. [MS-NLMP] 2.2.1.1
    ///
    /// # Errors
    /// When a field lies outside `bytes`, or it is another message.
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

    /// The bytes to send.
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

    /// Reads one. [MS-NLMP] 2.2.1.2
    ///
    /// # Errors
    /// When a field lies outside `bytes`, or it is another message.
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

    /// The bytes to send.
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

    /// Reads one. [MS-NLMP] 2.2.1.3
    ///
    /// # Errors
    /// When a field lies outside `bytes`, or it is another message.
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

    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let mic_len = if self.mic.is_some() { MIC_LEN } else { 0 };
        let mut message = Writer::new(Self::TYPE, MIC_OFFSET + mic_len);
        message.put(60, &self.flags.0.to_le_bytes());
        message.put_version(64, self.version);
        message.put(MIC_OFFSET, self.mic.as_ref().map_or(&[], |mic| &mic[..]));
        // The order in which Windows lays them out.
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
    /// Bytes of the proof and of the fixed part of the client's data. [MS-NLMP] 2.2.2.7
    const FIXED_LEN: usize = 16 + 28;

    /// Reads NtChallengeResponse, whose pairs are checked as well.
    ///
    /// # Errors
    /// When it is an older NTLM's, cut off, or its target info is not well formed.
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

    /// NTLMv2_CLIENT_CHALLENGE, with the four zero bytes that end it. [MS-NLMP] 3.3.2
    pub fn client_data(timestamp: u64, client_challenge: [u8; 8], target_info: &[u8]) -> Vec<u8> {
        let mut data = Vec::from([1, 1, 0, 0, 0, 0, 0, 0]);
        data.extend_from_slice(&timestamp.to_le_bytes());
        data.extend_from_slice(&client_challenge);
        data.extend_from_slice(&[0; 4]);
        data.extend_from_slice(target_info);
        data.extend_from_slice(&[0; 4]);
        data
    }

    /// The flags of the client's target info.
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
    /// Starts at the first pair.
    pub const fn new(target_info: &'a [u8]) -> Self {
        Self {
            rest: target_info,
            left: AV_PAIRS_MAX,
            ended: false,
        }
    }

    /// The value of the first pair with this id, before anything malformed.
    pub fn find(self, id: AvId) -> Option<&'a [u8]> {
        self.map_while(Result::ok)
            .find(|(found, _)| *found == id)
            .map(|(_, value)| value)
    }

    /// Appends one pair to a target info.
    ///
    /// # Panics
    /// When the value is longer than 65,535 bytes.
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

/// UTF-16LE as text; `None` when it is not valid UTF-16.
pub fn text(utf16: &[u8]) -> Option<String> {
    let (units, rest) = utf16.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    rest.is_empty()
        .then(|| char::decode_utf16(units).collect::<Result<_, _>>().ok())?
}

/// Text as UTF-16LE.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Reads at offsets, and the payload that offsets and lengths point to.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes of the fixed part that payload may not overlap.
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

    /// Length and offset, both in bytes, of the field whose descriptor lies at `at`.
    fn extent(&self, at: usize) -> Result<(u64, u64), DecodeError> {
        let len = u16::from_le_bytes(self.array(at)?);
        Ok((u64::from(len), u64::from(self.u32(at + 4)?)))
    }

    /// An empty field may claim any offset: senders leave it zero, or worse.
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

    /// Where the first field that is not empty begins; the message's end if all are.
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

/// A message with its fixed part zeroed, to be filled in and grown.
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

    /// Appends `value` and describes it at `at`.
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
            Self::Truncated => f.write_str("message of NTLM is cut off"),
            Self::Signature => f.write_str("no message of NTLM"),
            Self::MessageType(found) => write!(f, "unexpected message {found} of NTLM"),
            Self::Field(name) => write!(f, "{name} lies outside the message of NTLM"),
            Self::AvPairs => f.write_str("target info of NTLM is malformed"),
            Self::NotNtlmv2 => f.write_str("response is not of NTLMv2"),
        }
    }
}

impl core::error::Error for DecodeError {}
