//! LsarOpenPolicy, LsarOpenPolicy2, LsarClose and LsarQueryInformationPolicy. \[MS-LSAD\] 3.1.4.4

use alloc::string::String;
use alloc::vec::Vec;

use super::domains::invalid;
use super::{PolicyAccess, PolicyHandle};
use crate::Status;
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::open_enum;
use crate::rpc::ndr::{Reader, Writer};
use crate::security::Sid;

/// The arguments of the RPC calls LsarOpenPolicy and LsarOpenPolicy2. Servers ignore the name of
/// the server and the attributes of the object. \[MS-LSAD\] 3.1.4.4.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPolicy {
    /// The access rights that the client asks for.
    pub access: PolicyAccess,
}

impl OpenPolicy {
    /// Decodes the stub of LsarOpenPolicy2: the NDR encoding of the fields, without RPC headers.
    /// Fails when `stub` is truncated, or its attributes have a security descriptor.
    pub fn decode_2(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        reader.unique_string("SystemName")?;
        Self::read(&mut reader)
    }

    /// Decodes the stub of LsarOpenPolicy, which has a single character as the name of the server.
    /// Fails as [`decode_2`](Self::decode_2).
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        if reader.pointer("SystemName")? {
            reader.u16("SystemName")?;
        }
        Self::read(&mut reader)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        skip_attributes(reader)?;
        let access = PolicyAccess(reader.u32("DesiredAccess")?);
        Ok(Self { access })
    }

    /// Encodes the stub of LsarOpenPolicy2: the NDR encoding of the fields, without RPC headers.
    pub fn encode_2(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_pointer(false);
        // LSAPR_OBJECT_ATTRIBUTES without any attribute.
        out.put_u32(24);
        (0..5).for_each(|_| out.put_u32(0));
        out.put_u32(self.access.0);
        out.into_stub()
    }
}

/// Skips LSAPR_OBJECT_ATTRIBUTES. \[MS-LSAD\] 2.2.2.4
fn skip_attributes(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    reader.u32("Length")?;
    let has_root = reader.pointer("RootDirectory")?;
    let has_name = reader.pointer("ObjectName")?;
    reader.u32("Attributes")?;
    let has_descriptor = reader.pointer("SecurityDescriptor")?;
    let has_quality = reader.pointer("SecurityQualityOfService")?;
    if has_root || has_name || has_descriptor {
        // No known client sends them, and they have no meaning for a policy.
        return Err(invalid("ObjectAttributes", 0));
    }
    if has_quality {
        // Length, impersonation level, tracking mode and effective only: 8 bytes.
        reader.u32("SecurityQualityOfService")?;
        reader.u16("SecurityQualityOfService")?;
        reader.u16("SecurityQualityOfService")?;
    }
    Ok(())
}

/// The results of the RPC calls LsarOpenPolicy and LsarOpenPolicy2. \[MS-LSAD\] 3.1.4.4.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPolicyResponse {
    /// The open policy; zero after an error.
    pub policy: PolicyHandle,
    /// SUCCESS, or an error.
    pub status: Status,
}

/// The arguments of the RPC call LsarClose. \[MS-LSAD\] 3.1.4.9.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// The policy to close.
    pub policy: PolicyHandle,
}

impl Close {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let policy = PolicyHandle::read(&mut Reader::new(stub))?;
        Ok(Self { policy })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        self.policy.put(&mut out);
        out.into_stub()
    }
}

/// The results of the RPC call LsarClose: a handle of zero, and the status.
pub type CloseResponse = OpenPolicyResponse;

impl OpenPolicyResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            policy: PolicyHandle::read(&mut reader)?,
            status: Status(reader.u32("return value")?),
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        self.policy.put(&mut out);
        out.put_u32(self.status.0);
        out.into_stub()
    }
}

open_enum! {
    /// The kind of information about a policy. \[MS-LSAD\] 2.2.4.1
    InformationClass(u16) {
        /// The domain or workgroup that the server belongs to.
        PRIMARY_DOMAIN = 3,
        /// The domain of the server's own accounts.
        ACCOUNT_DOMAIN = 5,
        /// Whether the server accepts changes of accounts.
        SERVER_ROLE = 6,
        /// The domain or workgroup that the server belongs to, with its names in DNS.
        DNS_DOMAIN = 12,
    }
}

/// The arguments of the RPC calls LsarQueryInformationPolicy and LsarQueryInformationPolicy2.
/// \[MS-LSAD\] 3.1.4.4.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryInformation {
    /// The open policy.
    pub policy: PolicyHandle,
    /// The kind of information.
    pub class: InformationClass,
}

impl QueryInformation {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        Ok(Self {
            policy: PolicyHandle::read(&mut reader)?,
            class: InformationClass(reader.u16("InformationClass")?),
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        self.policy.put(&mut out);
        out.put_u16(self.class.0);
        out.into_stub()
    }
}

/// A domain or workgroup: its name, and the SID of a domain. \[MS-LSAD\] 2.2.4.5
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainInformation {
    /// NetBIOS name of the domain or workgroup.
    pub name: String,
    /// SID of the domain; `None` for a workgroup.
    pub sid: Option<Sid>,
}

/// Information about a policy. \[MS-LSAD\] 2.2.4.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyInformation {
    /// The domain or workgroup that the server belongs to.
    PrimaryDomain(DomainInformation),
    /// The domain of the server's own accounts.
    AccountDomain(DomainInformation),
    /// The number of the role: 3 for a server that accepts changes of accounts.
    ServerRole(u16),
    /// The domain or workgroup that the server belongs to. It has no names in DNS.
    DnsDomain(DomainInformation),
}

impl PolicyInformation {
    fn class(&self) -> InformationClass {
        match self {
            Self::PrimaryDomain(_) => InformationClass::PRIMARY_DOMAIN,
            Self::AccountDomain(_) => InformationClass::ACCOUNT_DOMAIN,
            Self::ServerRole(_) => InformationClass::SERVER_ROLE,
            Self::DnsDomain(_) => InformationClass::DNS_DOMAIN,
        }
    }

    fn put(&self, out: &mut Writer) {
        match self {
            Self::ServerRole(role) => out.put_u16(*role),
            Self::PrimaryDomain(domain) | Self::AccountDomain(domain) => {
                out.put_counted(Some(&domain.name));
                put_referents(domain, out);
            }
            Self::DnsDomain(domain) => {
                out.put_counted(Some(&domain.name));
                out.put_counted(None);
                out.put_counted(None);
                out.put_guid(&Guid::default());
                put_referents(domain, out);
            }
        }
    }

    fn read(class: InformationClass, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match class {
            InformationClass::SERVER_ROLE => Ok(Self::ServerRole(reader.u16("Role")?)),
            InformationClass::PRIMARY_DOMAIN => {
                let name = reader.counted("Name")?;
                Ok(Self::PrimaryDomain(read_referents(name, reader)?))
            }
            InformationClass::ACCOUNT_DOMAIN => {
                let name = reader.counted("Name")?;
                Ok(Self::AccountDomain(read_referents(name, reader)?))
            }
            InformationClass::DNS_DOMAIN => {
                let name = reader.counted("Name")?;
                let has_dns = reader.counted("DnsDomainName")?.is_some();
                let has_forest = reader.counted("DnsForestName")?.is_some();
                reader.guid("DomainGuid")?;
                if has_dns || has_forest {
                    return Err(invalid("DnsDomainName", 0));
                }
                Ok(Self::DnsDomain(read_referents(name, reader)?))
            }
            other => Err(invalid("InformationClass", other.0.into())),
        }
    }
}

/// Appends the pointer to the SID, the name and the SID.
fn put_referents(domain: &DomainInformation, out: &mut Writer) {
    out.put_pointer(domain.sid.is_some());
    out.put_counted_text(&domain.name);
    domain.sid.iter().for_each(|sid| out.put_sid(sid));
}

fn read_referents(
    name: Option<u16>,
    reader: &mut Reader<'_>,
) -> Result<DomainInformation, DecodeError> {
    let has_sid = reader.pointer("Sid")?;
    let name = name.map(|length| reader.counted_text("Name", length));
    let name = name.transpose()?.unwrap_or_default();
    let sid = has_sid.then(|| reader.sid("Sid")).transpose()?;
    Ok(DomainInformation { name, sid })
}

/// The results of the RPC calls LsarQueryInformationPolicy and LsarQueryInformationPolicy2.
/// \[MS-LSAD\] 3.1.4.4.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryInformationResponse {
    /// The information; `None` after an error.
    pub information: Option<PolicyInformation>,
    /// SUCCESS, or an error.
    pub status: Status,
}

impl QueryInformationResponse {
    /// Decodes the stub: the NDR encoding of the fields, without RPC headers. Fails when `stub` is
    /// truncated, or the information is of a kind that this crate does not support.
    pub fn decode(stub: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(stub);
        let mut information = None;
        if reader.pointer("PolicyInformation")? {
            let class = InformationClass(reader.u16("InformationClass")?);
            information = Some(PolicyInformation::read(class, &mut reader)?);
        }
        Ok(Self {
            information,
            status: Status(reader.u32("return value")?),
        })
    }

    /// Encodes the stub: the NDR encoding of the fields, without RPC headers.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.put_pointer(self.information.is_some());
        if let Some(information) = &self.information {
            out.put_u16(information.class().0);
            information.put(&mut out);
        }
        out.put_u32(self.status.0);
        out.into_stub()
    }
}
