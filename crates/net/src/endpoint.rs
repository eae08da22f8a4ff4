//! Which transport on which port: `transport[:port]`.

use std::fmt;
use std::str::FromStr;

/// A way in which frames move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Frames of a 24-bit length over TCP. \[MS-SMB2\] 2.1
    Tcp,
    /// The NetBIOS session service. RFC 1002
    Nbt,
    /// The frames of direct TCP on one stream of QUIC. \[MS-SMB2\] 2.1
    Quic,
    /// SMB Direct: messages over RDMA. \[MS-SMBD\]
    SmbDirect,
}

impl Transport {
    /// The name in a configuration and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Nbt => "nbt",
            Self::Quic => "quic",
            Self::SmbDirect => "smbdirect",
        }
    }

    /// The well-known port.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Tcp => 445,
            Self::Nbt => 139,
            Self::Quic => 443,
            // Of iWARP; over RoCE and InfiniBand it is that of direct TCP.
            Self::SmbDirect => 5445,
        }
    }

    /// Whether a frame has room for requests of more than 64 KiB. \[MS-SMB2\] 3.3.5.4
    pub const fn has_large_frames(self) -> bool {
        match self {
            Self::Tcp | Self::Quic | Self::SmbDirect => true,
            Self::Nbt => false,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transport and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// How frames move.
    pub transport: Transport,
    /// The port; 0 lets the kernel choose.
    pub port: u16,
}

/// What is wrong with a `transport[:port]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// No transport of that name.
    UnknownTransport(String),
    /// Not a port.
    BadPort(String),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTransport(name) => {
                write!(f, "unknown transport `{name}`; there are `tcp` and `nbt`")
            }
            Self::BadPort(port) => write!(f, "`{port}` is not a port (0 to 65535)"),
        }
    }
}

impl std::error::Error for EndpointError {}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        let transport = match name {
            "tcp" => Transport::Tcp,
            "nbt" => Transport::Nbt,
            _ => return Err(EndpointError::UnknownTransport(name.to_owned())),
        };
        let port = match port {
            None => transport.default_port(),
            Some(port) => port
                .parse()
                .map_err(|_| EndpointError::BadPort(port.to_owned()))?,
        };
        Ok(Self { transport, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.transport, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        let parse = |text: &str| text.parse::<Endpoint>();
        assert_eq!(
            parse("tcp"),
            Ok(Endpoint {
                transport: Transport::Tcp,
                port: 445
            })
        );
        assert_eq!(
            parse("nbt:1139"),
            Ok(Endpoint {
                transport: Transport::Nbt,
                port: 1139
            })
        );
        assert_eq!(parse("tcp:x"), Err(EndpointError::BadPort("x".into())));
        assert_eq!(
            parse("quick"),
            Err(EndpointError::UnknownTransport("quick".into()))
        );
    }
}
