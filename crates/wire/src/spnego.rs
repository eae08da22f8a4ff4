//! SPNEGO tokens, which select a mechanism and carry its tokens. RFC 4178, [MS-SPNG] 2.2
//!
//! The decoder accepts the subset of DER that SPNEGO uses: definite lengths of at most four bytes,
//! and the nesting of the grammar. It tolerates lengths that are not minimal, and unknown fields.

use alloc::vec::Vec;
use core::fmt;

/// Maximum number of mechanisms in an SPNEGO list that [`MechList::decode`] accepts; Windows offers
/// five.
pub const MECHANISMS_MAX: usize = 32;

/// The constant text (hintName) in the server's first SPNEGO token, where a name once was.
/// [MS-SPNG] 2.2.1
pub const HINT_NAME: &[u8] = b"not_defined_in_RFC4178@please_ignore";

/// An object identifier (OID) that names a security mechanism, such as Kerberos: the contents of
/// its DER element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Oid<'a>(pub &'a [u8]);

impl Oid<'static> {
    /// Object identifier of SPNEGO itself, 1.3.6.1.5.5.2.
    pub const SPNEGO: Self = Self(&[0x2b, 0x06, 0x01, 0x05, 0x05, 0x02]);
    /// Object identifier of NTLM, 1.3.6.1.4.1.311.2.2.10. [MS-NLMP] 1.9
    pub const NTLMSSP: Self = Self(&[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0a]);
    /// Object identifier of NegoEx, an extension of SPNEGO, 1.3.6.1.4.1.311.2.2.30. [MS-NEGOEX]
    pub const NEGOEX: Self = Self(&[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x1e]);
    /// Object identifier of Kerberos, 1.2.840.113554.1.2.2. RFC 4121
    pub const KERBEROS: Self = Self(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02]);
    /// Object identifier of Kerberos that Windows 2000 sent by mistake and later versions accept,
    /// 1.2.840.48018.1.2.2. [MS-SPNG] 3.1.5.1
    pub const MS_KERBEROS: Self = Self(&[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 0x01, 0x02, 0x02]);
}

/// A list of security mechanisms (MechTypeList of SPNEGO), encoded as DER. The bytes are exactly
/// those that the peer sent, because mechListMIC covers them. RFC 4178, 4.1, 5
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MechList<'a>(&'a [u8]);

/// The first SPNEGO token of a client, or the token of a server in the NEGOTIATE response
/// (NegTokenInit2). It lists the sender's security mechanisms. RFC 4178, 4.2.1; [MS-SPNG] 2.2.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegTokenInit<'a> {
    /// The security mechanisms that the sender offers, the preferred one first.
    pub mechanisms: MechList<'a>,
    /// The first token of the first mechanism in `mechanisms`; `None` when the sender waits for the
    /// peer's choice.
    pub mech_token: Option<&'a [u8]>,
    /// The hintName of negHints, a constant. Only the token of a server in the NEGOTIATE response
    /// has it; otherwise `None`.
    pub hint_name: Option<&'a [u8]>,
    /// The MIC (message integrity code) over `mechanisms`; usually `None` in a first token.
    pub mech_list_mic: Option<&'a [u8]>,
}

/// An SPNEGO token after the first one, from the client or the server. RFC 4178, 4.2.2
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NegTokenResp<'a> {
    /// State of the SPNEGO negotiation in the view of the sender; `None` when the token does not
    /// state it.
    pub state: Option<NegState>,
    /// The security mechanism that the server selected. Only the server's first token has it;
    /// otherwise `None`.
    pub mechanism: Option<Oid<'a>>,
    /// The next token of the selected mechanism; `None` when the mechanism has no token to send.
    pub response_token: Option<&'a [u8]>,
    /// The MIC (message integrity code) over the client's list of mechanisms. Only a last token has
    /// it; otherwise `None`.
    pub mech_list_mic: Option<&'a [u8]>,
}

/// A decoded SPNEGO token: the first token of a login (NegTokenInit), or a later one
/// (NegTokenResp). RFC 4178 4.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// The first token of a client, or the token of a server in the NEGOTIATE response.
    Init(NegTokenInit<'a>),
    /// Any later token of the client or the server.
    Response(NegTokenResp<'a>),
}

/// State of an SPNEGO negotiation in the view of the sender (negState). Unknown values are
/// preserved. RFC 4178, 4.2.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegState(pub u8);

impl NegState {
    /// SPNEGO state: the sender has accepted the authentication.
    pub const ACCEPT_COMPLETED: Self = Self(0);
    /// SPNEGO state: the authentication requires at least one more token.
    pub const ACCEPT_INCOMPLETE: Self = Self(1);
    /// SPNEGO state: the sender rejects the authentication.
    pub const REJECT: Self = Self(2);
    /// SPNEGO state: the authentication requires more tokens, and the last ones must carry a
    /// mechListMIC, the signature of the list of mechanisms.
    pub const REQUEST_MIC: Self = Self(3);
}

/// The reason why bytes are not a valid SPNEGO token, or not a valid list of security mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A DER element is truncated, or exceeds the element around it.
    Truncated,
    /// The length of a DER element is indefinite, or has more than four bytes.
    Length,
    /// The input has another DER element in place of the one with this name.
    Expected(&'static str),
    /// The required field with this name is absent.
    Missing(&'static str),
    /// The list has more than [`MECHANISMS_MAX`] mechanisms.
    TooManyMechanisms,
}

mod tag {
    pub(super) const OCTET_STRING: u8 = 0x04;
    pub(super) const OID: u8 = 0x06;
    pub(super) const ENUMERATED: u8 = 0x0a;
    pub(super) const GENERAL_STRING: u8 = 0x1b;
    pub(super) const SEQUENCE: u8 = 0x30;
    /// `[APPLICATION 0]`, the tag of a GSS-API token. RFC 2743, 3.1
    pub(super) const GSS: u8 = 0x60;
    /// `[n]`, constructed.
    pub(super) const fn context(number: u8) -> u8 {
        0xa0 + number
    }
}

impl<'a> Token<'a> {
    /// Returns true if the first byte of `bytes` is that of an SPNEGO token. A mechanism without
    /// SPNEGO sends other bytes: an NTLM message starts with
    /// [`SIGNATURE`](crate::ntlmssp::SIGNATURE).
    pub fn is_plausible(bytes: &[u8]) -> bool {
        matches!(bytes.first(), Some(&(tag::GSS | 0xa0 | 0xa1)))
    }

    /// Decodes an SPNEGO token, a first or a later one. Bytes after it are ignored.
    ///
    /// # Errors
    /// Fails when the bytes are not an SPNEGO token, or an element of it is malformed or absent.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut outer = Der(bytes);
        if outer.peek() == Some(tag::GSS) {
            let mut framed = Der(outer.expect(tag::GSS, "GSS-API frame")?);
            if Oid(framed.expect(tag::OID, "thisMech")?) != Oid::SPNEGO {
                return Err(DecodeError::Expected("the OID of SPNEGO"));
            }
            outer = framed;
        }
        match outer.peek() {
            Some(0xa0) => {
                let fields = outer.nested(tag::context(0), "NegTokenInit")?;
                NegTokenInit::decode(fields).map(Self::Init)
            }
            Some(0xa1) => {
                let fields = outer.nested(tag::context(1), "NegTokenResp")?;
                NegTokenResp::decode(fields).map(Self::Response)
            }
            _ => Err(DecodeError::Expected("NegTokenInit or NegTokenResp")),
        }
    }
}

impl<'a> NegTokenInit<'a> {
    fn decode(mut fields: Der<'a>) -> Result<Self, DecodeError> {
        let (mut mechanisms, mut mech_token) = (None, None);
        let (mut hint_name, mut mech_list_mic) = (None, None);
        while let Some((tag, content)) = fields.next()? {
            let mut field = Der(content);
            match (tag, field.peek()) {
                (0xa0, _) => mechanisms = Some(MechList::decode(content)?),
                (0xa2, _) => mech_token = Some(field.expect(tag::OCTET_STRING, "mechToken")?),
                // [3] is mechListMIC in NegTokenInit and negHints in NegTokenInit2.
                (0xa3, Some(tag::SEQUENCE)) => hint_name = hint(field)?,
                (0xa3 | 0xa4, _) => {
                    mech_list_mic = Some(field.expect(tag::OCTET_STRING, "mechListMIC")?);
                }
                _ => {}
            }
        }
        let mechanisms = mechanisms.ok_or(DecodeError::Missing("mechTypes"))?;
        Ok(Self {
            mechanisms,
            mech_token,
            hint_name,
            mech_list_mic,
        })
    }

    /// Encodes the first SPNEGO token of a login as DER, with the GSS-API header in front.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = element(tag::context(0), &[self.mechanisms.0]);
        let mic_number = if self.hint_name.is_some() { 4 } else { 3 };
        push_field(&mut fields, 2, tag::OCTET_STRING, self.mech_token);
        if let Some(name) = self.hint_name {
            let name = element(tag::context(0), &[&element(tag::GENERAL_STRING, &[name])]);
            push_field(&mut fields, 3, tag::SEQUENCE, Some(&name));
        }
        push_field(
            &mut fields,
            mic_number,
            tag::OCTET_STRING,
            self.mech_list_mic,
        );
        let token = element(tag::context(0), &[&element(tag::SEQUENCE, &[&fields])]);
        element(tag::GSS, &[&element(tag::OID, &[Oid::SPNEGO.0]), &token])
    }
}

/// hintName of negHints. [MS-SPNG] 2.2.1
fn hint(mut field: Der<'_>) -> Result<Option<&[u8]>, DecodeError> {
    let mut hints = Der(field.expect(tag::SEQUENCE, "negHints")?);
    while let Some((tag, content)) = hints.next()? {
        if tag == tag::context(0) {
            return Der(content)
                .expect(tag::GENERAL_STRING, "hintName")
                .map(Some);
        }
    }
    Ok(None)
}

impl<'a> NegTokenResp<'a> {
    fn decode(mut fields: Der<'a>) -> Result<Self, DecodeError> {
        let mut token = Self::default();
        while let Some((tag, content)) = fields.next()? {
            let mut field = Der(content);
            match tag {
                0xa0 => token.state = Some(state(field.expect(tag::ENUMERATED, "negState")?)?),
                0xa1 => token.mechanism = Some(Oid(field.expect(tag::OID, "supportedMech")?)),
                0xa2 => {
                    token.response_token = Some(field.expect(tag::OCTET_STRING, "responseToken")?);
                }
                0xa3 => {
                    token.mech_list_mic = Some(field.expect(tag::OCTET_STRING, "mechListMIC")?);
                }
                _ => {}
            }
        }
        Ok(token)
    }

    /// Encodes an SPNEGO token after the first one as DER. Such tokens have no GSS-API header.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        let state = self.state.map(|state| [state.0]);
        push_field(
            &mut fields,
            0,
            tag::ENUMERATED,
            state.as_ref().map(|state| &state[..]),
        );
        push_field(
            &mut fields,
            1,
            tag::OID,
            self.mechanism.map(|mechanism| mechanism.0),
        );
        push_field(&mut fields, 2, tag::OCTET_STRING, self.response_token);
        push_field(&mut fields, 3, tag::OCTET_STRING, self.mech_list_mic);
        element(tag::context(1), &[&element(tag::SEQUENCE, &[&fields])])
    }
}

fn state(content: &[u8]) -> Result<NegState, DecodeError> {
    match content {
        [state] => Ok(NegState(*state)),
        _ => Err(DecodeError::Expected("negState of one byte")),
    }
}

impl<'a> MechList<'a> {
    /// Checks the DER of a MechTypeList (a SEQUENCE of OIDs) at the start of `bytes`, and returns
    /// it. Bytes after the list are ignored.
    ///
    /// # Errors
    /// Fails when the list has another element than an OID, is truncated, or has more than
    /// [`MECHANISMS_MAX`] mechanisms.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut rest = Der(bytes);
        let mut mechanisms = Der(rest.expect(tag::SEQUENCE, "mechTypes")?);
        let mut count = 0;
        while mechanisms.peek().is_some() {
            mechanisms.expect(tag::OID, "MechType")?;
            count += 1;
            if count > MECHANISMS_MAX {
                return Err(DecodeError::TooManyMechanisms);
            }
        }
        Ok(Self(&bytes[..bytes.len() - rest.0.len()]))
    }

    /// Encodes `mechanisms`, the preferred one first, as the DER of a MechTypeList.
    /// [`MechList::decode`] accepts the result.
    pub fn encode(mechanisms: &[Oid<'_>]) -> Vec<u8> {
        let mut content = Vec::new();
        for mechanism in mechanisms {
            content.extend_from_slice(&element(tag::OID, &[mechanism.0]));
        }
        element(tag::SEQUENCE, &[&content])
    }

    /// Returns the DER of the list, over which the mechListMIC (message integrity code) is
    /// computed.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Returns an iterator over the mechanisms of the list, the preferred one first.
    pub fn iter(&self) -> impl Iterator<Item = Oid<'a>> + use<'a> {
        let mut mechanisms = Der(self.0).expect(tag::SEQUENCE, "mechTypes").map(Der).ok();
        core::iter::from_fn(move || {
            mechanisms
                .as_mut()?
                .expect(tag::OID, "MechType")
                .ok()
                .map(Oid)
        })
    }
}

/// DER input that is not yet read.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Reads the tag and contents of the next element; `None` at the end.
    fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, DecodeError> {
        let Some((&tag, rest)) = self.0.split_first() else {
            return Ok(None);
        };
        let (&first, rest) = rest.split_first().ok_or(DecodeError::Truncated)?;
        let (len, rest) = long_len(first, rest)?;
        let len = usize::try_from(len).map_err(|_| DecodeError::Length)?;
        let (content, rest) = rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(Some((tag, content)))
    }

    fn expect(&mut self, tag: u8, element: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.next()? {
            Some((found, content)) if found == tag => Ok(content),
            _ => Err(DecodeError::Expected(element)),
        }
    }

    /// The fields of a SEQUENCE inside an explicit tag.
    fn nested(&mut self, tag: u8, element: &'static str) -> Result<Self, DecodeError> {
        Der(self.expect(tag, element)?)
            .expect(tag::SEQUENCE, element)
            .map(Der)
    }
}

/// Decodes a length with the first byte `first`; returns it and the bytes after it. X.690, 8.1.3
fn long_len(first: u8, rest: &[u8]) -> Result<(u32, &[u8]), DecodeError> {
    let count = usize::from(first & 0x7f);
    if first < 0x80 {
        return Ok((u32::from(first), rest));
    }
    if count == 0 || count > 4 {
        return Err(DecodeError::Length);
    }
    let (bytes, rest) = rest.split_at_checked(count).ok_or(DecodeError::Truncated)?;
    Ok((
        bytes
            .iter()
            .fold(0, |len, byte| len << 8 | u32::from(*byte)),
        rest,
    ))
}

fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let len: usize = content.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(len + 6);
    bytes.push(tag);
    push_len(
        &mut bytes,
        u32::try_from(len).expect("tokens are shorter than 4 GiB"),
    );
    content
        .iter()
        .for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Appends a length in the shortest encoding, as DER requires.
fn push_len(bytes: &mut Vec<u8>, len: u32) {
    if len < 0x80 {
        bytes.push(len as u8);
        return;
    }
    let digits = len.to_be_bytes();
    let digits = &digits[len.leading_zeros() as usize / 8..];
    bytes.push(0x80 | digits.len() as u8);
    bytes.extend_from_slice(digits);
}

/// Appends `[number]` around one element, if `value` is present.
fn push_field(fields: &mut Vec<u8>, number: u8, tag: u8, value: Option<&[u8]>) {
    if let Some(value) = value {
        fields.extend_from_slice(&element(tag::context(number), &[&element(tag, &[value])]));
    }
}

impl fmt::Debug for Oid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Oid::SPNEGO => f.write_str("SPNEGO"),
            Oid::NTLMSSP => f.write_str("NTLMSSP"),
            Oid::NEGOEX => f.write_str("NEGOEX"),
            Oid::KERBEROS => f.write_str("KERBEROS"),
            Oid::MS_KERBEROS => f.write_str("MS_KERBEROS"),
            Oid(other) => write!(f, "Oid({other:02x?})"),
        }
    }
}

impl fmt::Debug for MechList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("SPNEGO token is truncated"),
            Self::Length => f.write_str("SPNEGO token has a length that DER does not allow"),
            Self::Expected(element) => {
                write!(f, "SPNEGO token has no {element} at the expected position")
            }
            Self::Missing(field) => write!(f, "SPNEGO token lacks {field}"),
            Self::TooManyMechanisms => f.write_str("SPNEGO token offers too many mechanisms"),
        }
    }
}

impl core::error::Error for DecodeError {}
