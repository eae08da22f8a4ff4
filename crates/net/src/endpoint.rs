//! Transports and ports: `transport[:port]`, and lists of them.
//!
//! Names, well-known ports and the meaning of a bare number are those of Samba's `server smb
//! transports` and `client smb transports`, with SMB Direct in addition. Samba ignores invalid
//! entries of a list. Here they are errors, because a missing port is hard to notice.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// Maximum number of entries in a list of transports.
pub const ENDPOINTS_MAX: usize = 10;

/// A transport of SMB2 messages: the protocol below SMB2 on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Direct TCP: frames with a length of 24 bits on a TCP connection. \[MS-SMB2\] 2.1
    Tcp,
    /// The NetBIOS session service on a TCP connection. RFC 1002
    Nbt,
    /// QUIC: the frames of direct TCP on one stream of a QUIC connection. \[MS-SMB2\] 2.1
    Quic,
    /// SMB Direct: messages over RDMA. \[MS-SMBD\]
    SmbDirect,
}

impl Transport {
    /// All transports: direct TCP, NetBIOS, QUIC and SMB Direct, in this order.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Nbt, Self::Quic, Self::SmbDirect];

    /// Returns the name in configurations and in the log: `tcp`, `nbt`, `quic` or `smbdirect`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Nbt => "nbt",
            Self::Quic => "quic",
            Self::SmbDirect => "smbdirect",
        }
    }

    /// Returns the well-known port of the transport: 445 for direct TCP, 139 for NetBIOS, 443 for
    /// QUIC (UDP), and 5445 for SMB Direct over iWARP.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Tcp => 445,
            Self::Nbt => 139,
            Self::Quic => 443,
            // The port of iWARP. Over RoCE and InfiniBand SMB Direct uses that of direct TCP.
            Self::SmbDirect => 5445,
        }
    }

    /// Returns whether a message on this transport can be long enough for READs and WRITEs of more
    /// than 64 KiB: true for all transports except NetBIOS. \[MS-SMB2\] 3.3.5.4
    pub const fn has_large_frames(self) -> bool {
        self.carrier().large_frames
    }

    /// Returns whether [`Stream::send`](crate::Stream::send) on this transport sends ranges of
    /// files without a copy into memory of the process. On other transports the caller must read
    /// the range first.
    pub const fn sends_files(self) -> bool {
        matches!(self, Self::Tcp | Self::Nbt)
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|transport| transport.name() == name)
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transport of SMB2 messages and its port, for a server or a client. The text form is
/// `transport[:port]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Transport of the SMB2 messages: direct TCP, NetBIOS, QUIC or SMB Direct.
    pub transport: Transport,
    /// Port number: of TCP or UDP, or of RDMA for SMB Direct. For a server, 0 means that the kernel
    /// chooses the port.
    pub port: u16,
}

/// Reason why the text of an [`Endpoint`] is malformed, or a list of endpoints is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// The text before the colon is not the name of a transport: that text.
    UnknownTransport(String),
    /// The text after the colon is not a port number from 0 to 65535: that text.
    BadPort(String),
    /// The list of endpoints is empty.
    Empty,
    /// The list of endpoints has more than [`ENDPOINTS_MAX`] entries: their count.
    TooMany(usize),
    /// The list of endpoints has this entry twice.
    Twice(Endpoint),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTransport(name) => {
                write!(f, "unknown transport `{name}`: use ")?;
                let [first, others @ .., last] = Transport::ALL;
                write!(f, "`{first}`")?;
                for other in others {
                    write!(f, ", `{other}`")?;
                }
                write!(f, " or `{last}`")
            }
            Self::BadPort(port) => write!(f, "`{port}` is not a port (0 to 65535)"),
            Self::Empty => f.write_str("the list is empty"),
            Self::TooMany(count) => {
                write!(f, "{count} transports: at most {ENDPOINTS_MAX} are allowed")
            }
            Self::Twice(endpoint) => write!(f, "the list has `{endpoint}` twice"),
        }
    }
}

impl std::error::Error for EndpointError {}

impl From<Transport> for Endpoint {
    fn from(transport: Transport) -> Self {
        Self {
            transport,
            port: transport.default_port(),
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// Parses `transport[:port]`, or a bare port: NetBIOS for 139, direct TCP for other ports.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None if text.starts_with(|first: char| first.is_ascii_digit()) => {
                return Ok(Self::of_port(port_of(text)?));
            }
            None => (text, None),
        };
        let Some(transport) = Transport::named(name) else {
            return Err(EndpointError::UnknownTransport(name.to_owned()));
        };
        let port = match port {
            None => transport.default_port(),
            Some(port) => port_of(port)?,
        };
        Ok(Self { transport, port })
    }
}

/// The port of SMB Direct over RoCE and InfiniBand. \[MS-SMBD\] 2.1
const SMBDIRECT_PORT: u16 = 445;

impl Endpoint {
    /// Parses one entry of a list in the form `transport[:port]`. Returns one endpoint, or two for
    /// `smbdirect` without a port: first that of iWARP, then that of RoCE and InfiniBand.
    ///
    /// # Errors
    /// The transport is not known, or the port is not a number.
    pub fn expand(text: &str) -> Result<Vec<Self>, EndpointError> {
        let first: Self = text.parse()?;
        let mut all = vec![first];
        if text == Transport::SmbDirect.name() {
            let port = SMBDIRECT_PORT;
            all.push(Self { port, ..first });
        }
        Ok(all)
    }

    fn of_port(port: u16) -> Self {
        let transport = match port {
            139 => Transport::Nbt,
            _ => Transport::Tcp,
        };
        Self { transport, port }
    }
}

fn port_of(text: &str) -> Result<u16, EndpointError> {
    let bad = || EndpointError::BadPort(text.to_owned());
    // A sign is none of a port, though one of a number.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    text.parse().map_err(|_| bad())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.transport, self.port)
    }
}

/// An ordered list of 1 to [`ENDPOINTS_MAX`] endpoints without duplicates. A client tries them in
/// this order; a server listens on all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(Vec<Endpoint>);

impl Endpoints {
    /// Makes a list of endpoints in this order.
    ///
    /// # Errors
    /// The list is empty, has more than [`ENDPOINTS_MAX`] entries, or has an entry twice. Entries
    /// with port 0, for which the kernel chooses, may occur several times.
    pub fn new(list: impl IntoIterator<Item = Endpoint>) -> Result<Self, EndpointError> {
        let list: Vec<Endpoint> = list.into_iter().collect();
        if list.is_empty() {
            return Err(EndpointError::Empty);
        }
        if list.len() > ENDPOINTS_MAX {
            return Err(EndpointError::TooMany(list.len()));
        }
        for (index, endpoint) in list.iter().enumerate() {
            if endpoint.port != 0 && list[..index].contains(endpoint) {
                return Err(EndpointError::Twice(*endpoint));
            }
        }
        Ok(Self(list))
    }
}

impl FromStr for Endpoints {
    type Err = EndpointError;

    /// Commas, blanks or both between them.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        let words = words.filter(|word| !word.is_empty());
        let list: Result<Vec<Vec<Endpoint>>, _> = words.map(Endpoint::expand).collect();
        Self::new(list?.into_iter().flatten())
    }
}

impl<T: Into<Endpoint>> From<T> for Endpoints {
    fn from(only: T) -> Self {
        Self(vec![only.into()])
    }
}

impl Deref for Endpoints {
    type Target = [Endpoint];

    fn deref(&self) -> &[Endpoint] {
        &self.0
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, endpoint) in self.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{endpoint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(transport: Transport, port: u16) -> Endpoint {
        Endpoint { transport, port }
    }

    #[test]
    fn a_port_may_be_left_out() {
        for (text, transport, port) in [
            ("tcp", Transport::Tcp, 445),
            ("nbt", Transport::Nbt, 139),
            ("quic", Transport::Quic, 443),
            ("smbdirect", Transport::SmbDirect, 5445),
            ("nbt:1139", Transport::Nbt, 1139),
            ("smbdirect:445", Transport::SmbDirect, 445),
            ("tcp:0", Transport::Tcp, 0),
        ] {
            assert_eq!(text.parse(), Ok(endpoint(transport, port)), "{text}");
        }
    }

    #[test]
    fn a_port_alone_is_one_of_tcp() {
        assert_eq!("8000".parse(), Ok(endpoint(Transport::Tcp, 8000)));
        assert_eq!("139".parse(), Ok(endpoint(Transport::Nbt, 139)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| text.parse::<Endpoint>().expect_err(text).to_string();
        assert_eq!(
            error("quick"),
            "unknown transport `quick`: use `tcp`, `nbt`, `quic` or `smbdirect`"
        );
        assert!(error("TCP").starts_with("unknown transport `TCP`"));
        assert!(error("").starts_with("unknown transport ``"));
        for text in [
            "tcp:x",
            "tcp:",
            "tcp:65536",
            "tcp:+1",
            "tcp:1:2",
            "70000",
            "1x",
        ] {
            assert!(
                error(text).ends_with("is not a port (0 to 65535)"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_list_has_an_order_and_nothing_twice() {
        let list = |text: &str| text.parse::<Endpoints>().map(|list| list.to_string());
        assert_eq!(
            list("quic, tcp:1445 139"),
            Ok("quic:443,tcp:1445,nbt:139".into())
        );
        assert_eq!(
            list("smbdirect,tcp,smbdirect:1"),
            Ok("smbdirect:5445,smbdirect:445,tcp:445,smbdirect:1".into())
        );
        assert_eq!(list("tcp:0,tcp:0"), Ok("tcp:0,tcp:0".into()));
        assert_eq!(list(" , "), Err(EndpointError::Empty));
        let twice = endpoint(Transport::Tcp, 445);
        assert_eq!(list("tcp,nbt,445"), Err(EndpointError::Twice(twice)));
        let ten: Vec<String> = (1..=10).map(|port| port.to_string()).collect();
        assert!(list(&ten.join(",")).is_ok());
        let eleven = format!("{},11", ten.join(","));
        assert_eq!(list(&eleven), Err(EndpointError::TooMany(11)));
    }
}
