//! The network interfaces of the server.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::open_enum::open_flags;

open_flags! {
    /// Capabilities of a network interface. \[MS-SMB2\] 2.2.32.5
    InterfaceCapability(u32) {
        /// The interface supports receive-side scaling (RSS).
        RSS_CAPABLE = 0x0000_0001,
        /// The interface supports RDMA.
        RDMA_CAPABLE = 0x0000_0002,
    }
}

/// The IP address of a network interface of the server, in FSCTL_QUERY_NETWORK_INTERFACE_INFO.
/// \[MS-SMB2\] 2.2.32.5.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// An IPv4 address in network byte order; family 0x0002. \[MS-SMB2\] 2.2.32.5.1.1
    V4([u8; 4]),
    /// An IPv6 address in network byte order; family 0x0017. \[MS-SMB2\] 2.2.32.5.1.2
    V6([u8; 16]),
    /// An address of another family, with the number of the family. The other 126 bytes are
    /// ignored.
    Other(u16),
}

/// One address of a network interface of the server, to which the client can open a further
/// channel. It is an element in the output of FSCTL_QUERY_NETWORK_INTERFACE_INFO. \[MS-SMB2\]
/// 2.2.32.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Index of the network interface on the server. Several addresses may have the same index.
    pub if_index: u32,
    /// Capabilities of the network interface: receive-side scaling (RSS) and RDMA.
    pub capability: InterfaceCapability,
    /// Link speed in bits per second.
    pub link_speed: u64,
    /// IP address of the interface.
    pub address: SocketAddress,
}

impl NetworkInterface {
    /// Length of an encoded element in bytes.
    pub const LEN: usize = 152;
    /// Maximum number of elements that [`Self::decode_list`] accepts.
    pub const MAX_COUNT: usize = 1024;

    /// Decodes the output of FSCTL_QUERY_NETWORK_INTERFACE_INFO. Fails when an element is
    /// truncated, its Next offset is not valid, or the list has more than [`Self::MAX_COUNT`]
    /// elements.
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut interfaces = Vec::new();
        let mut left = output;
        while !left.is_empty() {
            let mut reader = Reader::new(left);
            let next = reader.u32("Next")?;
            let is_forward = (next as usize) >= Self::LEN && (next as usize) < left.len();
            if (next != 0 && !is_forward) || interfaces.len() == Self::MAX_COUNT {
                let (field, value) = ("Next", next.into());
                return Err(DecodeError::Invalid { field, value });
            }
            interfaces.push(Self::decode(&mut reader)?);
            left = if next == 0 {
                &[]
            } else {
                &left[next as usize..]
            };
        }
        Ok(interfaces)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let if_index = reader.u32("IfIndex")?;
        let capability = InterfaceCapability(reader.u32("Capability")?);
        reader.skip("Reserved", 4)?;
        let link_speed = reader.u64("LinkSpeed")?;
        let address = decode_address(reader.bytes("SockAddr_Storage", 128)?)?;
        Ok(Self {
            if_index,
            capability,
            link_speed,
            address,
        })
    }

    /// Encodes the output of FSCTL_QUERY_NETWORK_INTERFACE_INFO, with [`Self::LEN`] bytes for each
    /// element.
    pub fn encode_list(interfaces: &[Self]) -> Vec<u8> {
        let mut output = Vec::with_capacity(interfaces.len() * Self::LEN);
        for (index, interface) in interfaces.iter().enumerate() {
            let is_last = index + 1 == interfaces.len();
            output.put_u32(if is_last { 0 } else { u32_of(Self::LEN) });
            interface.encode(&mut output);
        }
        output
    }

    fn encode(&self, output: &mut Vec<u8>) {
        output.put_u32(self.if_index);
        output.put_u32(self.capability.0);
        output.put_u32(0);
        output.put_u64(self.link_speed);
        let end = output.len() + 128;
        encode_address(&self.address, output);
        output.resize(end, 0);
    }
}

/// AF_INET of Windows.
const FAMILY_V4: u16 = 0x0002;
/// AF_INET6 of Windows.
const FAMILY_V6: u16 = 0x0017;

fn decode_address(storage: &[u8]) -> Result<SocketAddress, DecodeError> {
    let mut reader = Reader::new(storage);
    match reader.u16("Family")? {
        FAMILY_V4 => {
            reader.skip("Port", 2)?;
            reader.array("IPv4Address").map(SocketAddress::V4)
        }
        FAMILY_V6 => {
            reader.skip("Port", 6)?;
            reader.array("IPv6Address").map(SocketAddress::V6)
        }
        family => Ok(SocketAddress::Other(family)),
    }
}

fn encode_address(address: &SocketAddress, output: &mut Vec<u8>) {
    match address {
        SocketAddress::V4(address) => {
            output.put_u16(FAMILY_V4);
            output.put_u16(0);
            output.put(address);
        }
        SocketAddress::V6(address) => {
            output.put_u16(FAMILY_V6);
            output.put(&[0; 6]);
            output.put(address);
        }
        SocketAddress::Other(family) => output.put_u16(*family),
    }
}
