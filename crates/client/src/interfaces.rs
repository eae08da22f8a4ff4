//! The network interfaces of a server. \[MS-SMB2\] 2.2.32.5

use std::net::IpAddr;

use proto::client::Step;
use proto::client::request::Reply;
use wire::fsctl::{CtlCode, InterfaceCapability, NetworkInterface, SocketAddress};

use crate::error::{Cause, Error, unexpected};
use crate::io::call::Memory;
use crate::session::Session;

/// Largest list of interfaces in bytes.
const INTERFACES_LEN: u32 = 64 << 10;

/// A network interface of a server, as the server announces it to clients that open further
/// connections (channels) for a session. \[MS-SMB2\] 2.2.32.5
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Index of the interface on the server. Several addresses of one interface have the same
    /// index.
    pub index: u32,
    /// IP address of the interface; `None` if the address is neither IPv4 nor IPv6.
    pub address: Option<IpAddr>,
    /// Link speed in bits per second.
    pub speed: u64,
    /// Whether the interface supports receive-side scaling: it distributes connections over the
    /// processors of the server.
    pub is_rss_capable: bool,
    /// Whether the interface supports RDMA, which the transport SMB Direct needs.
    pub is_rdma_capable: bool,
}

impl Session {
    /// Queries the network interfaces of the server (FSCTL_QUERY_NETWORK_INTERFACE_INFO).
    ///
    /// # Errors
    /// The server does not support the query, as servers before SMB 3.0, or the user may not
    /// connect to IPC$.
    pub async fn interfaces(&self) -> Result<Vec<Interface>, Error> {
        let share = self.share("IPC$").await?;
        let step = Step::Ioctl {
            file: None,
            code: CtlCode::QUERY_NETWORK_INTERFACE_INFO,
            input: Vec::new(),
            max_output: INTERFACES_LEN.min(self.negotiated().negotiated.max_transact),
        };
        let (reply, _) = share.start(vec![step], Memory::None).await.only();
        let context = ("query the interfaces of", self.host());
        match reply.map_err(|cause| cause.of(context.0, context.1))? {
            Reply::Ioctl(output, _) => NetworkInterface::decode_list(&output)
                .map(|list| list.iter().map(interface).collect())
                .map_err(|error| Cause::from(error).of(context.0, context.1)),
            _ => Err(unexpected().of(context.0, context.1)),
        }
    }
}

fn interface(interface: &NetworkInterface) -> Interface {
    let has = |capability| interface.capability.contains(capability);
    Interface {
        index: interface.if_index,
        address: match interface.address {
            SocketAddress::V4(bytes) => Some(IpAddr::from(bytes)),
            SocketAddress::V6(bytes) => Some(IpAddr::from(bytes)),
            SocketAddress::Other(_) => None,
        },
        speed: interface.link_speed,
        is_rss_capable: has(InterfaceCapability::RSS_CAPABLE),
        is_rdma_capable: has(InterfaceCapability::RDMA_CAPABLE),
    }
}
