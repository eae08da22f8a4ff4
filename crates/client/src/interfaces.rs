//! The network interfaces of a server. \[MS-SMB2\] 2.2.32.5

use std::net::IpAddr;

use proto::client::Step;
use proto::client::request::Reply;
use wire::fsctl::{CtlCode, InterfaceCapability, NetworkInterface, SocketAddress};

use crate::error::{Cause, Error, unexpected};
use crate::io::call::Memory;
use crate::session::Session;

/// Bytes of the list of interfaces that are asked for.
const INTERFACES_LEN: u32 = 64 << 10;

/// A network interface of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its address; `None` where it is of a family that we do not know.
    pub address: Option<IpAddr>,
    /// Bits per second.
    pub speed: u64,
    /// Whether it spreads connections over processors.
    pub is_rss_capable: bool,
    /// Whether it does RDMA.
    pub is_rdma_capable: bool,
}

impl Session {
    /// The server's network interfaces.
    pub async fn interfaces(&self) -> Result<Vec<Interface>, Error> {
        let share = self.share("IPC$").await?;
        let step = Step::Ioctl {
            file: None,
            code: CtlCode::QUERY_NETWORK_INTERFACE_INFO,
            input: Vec::new(),
            max_output: INTERFACES_LEN.min(self.negotiated().negotiated.max_transact),
        };
        let (reply, _) = share.start(vec![step], Memory::None).await.only();
        let context = ("ask for the interfaces of", self.host());
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
