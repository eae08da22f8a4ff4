//! Name resolution, and transport connections that carry frames.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Instant;

use net::{Framing, Stream, Transport};
use ring::{Handle, Part};
use wire::nbt::{FRAME_HEADER_LEN, NetbiosName, SessionHeader, SessionPacketType, SessionRequest};

use crate::error::{Error, NotSmb};
use crate::io::message::Target;
use crate::io::slot::slot;
use crate::io::{quic, smbdirect};

/// Largest count of addresses of a host that the client tries.
const ADDRESSES_MAX: usize = 16;
/// Length of the longest response in bytes. RFC 1002 4.3.4
const RESPONSE_MAX: usize = 6;

/// Resolves the addresses of a host. Uses a separate thread, because the system's resolver blocks.
pub(crate) async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let failed = |error| Error::Resolve(host.to_owned(), Arc::new(error));
    if let Ok(address) = host.trim_matches(['[', ']']).parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (filler, pickup) = slot();
    let name = host.to_owned();
    std::thread::Builder::new()
        .name("smbeam-resolve".to_owned())
        .spawn(move || {
            let found = (name.as_str(), port).to_socket_addrs();
            let _ = filler.fill(found.map(Iterator::collect::<Vec<_>>));
        })
        .map_err(failed)?;
    let ended = || io::Error::other("the resolver ended");
    let mut found = pickup.await.map_err(|_| failed(ended()))?.map_err(failed)?;
    found.truncate(ADDRESSES_MAX);
    if found.is_empty() {
        return Err(failed(io::Error::other("the host has no address")));
    }
    Ok(found)
}

/// Connects within the time limit.
pub(crate) async fn stream(handle: &Handle, target: &Target) -> io::Result<(Stream, Framing)> {
    let started = Instant::now();
    let timed = handle.timeout(target.connect_timeout, by_transport(handle, target));
    let stream = timed
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if target.transport == Transport::Nbt {
        let left = target.connect_timeout.saturating_sub(started.elapsed());
        let asking = handle.timeout(left, ask_for_session(handle, &stream));
        let asked = asking.await;
        asked.unwrap_or_else(|_| Err(not_netbios("the NetBIOS session request timed out")))?;
    }
    Ok((stream, Framing::established(target.transport)))
}

/// Connects by the transport of the target.
async fn by_transport(handle: &Handle, target: &Target) -> io::Result<Stream> {
    match target.transport {
        Transport::Tcp | Transport::Nbt => tcp(handle, target).await,
        Transport::Quic => quic::stream(handle, target.address, &target.tls, &target.quic).await,
        Transport::SmbDirect => smbdirect::stream(handle, target.address, &target.rdma).await,
    }
}

async fn tcp(handle: &Handle, target: &Target) -> io::Result<Stream> {
    let stream = ring::Stream::connect(handle, target.address).await?;
    // This fails if the server has closed the connection; the first receive reports that.
    if let Err(error) = target.tcp.apply(&stream) {
        tracing::debug!(address = %target.address, %error, "the system refuses the TCP options");
    }
    Ok(stream.into())
}

/// RFC 1002 4.3.2. Any server listens to `*SMBSERVER`.
async fn ask_for_session(handle: &Handle, stream: &Stream) -> io::Result<()> {
    let calling = NetbiosName::new("SMBEAM", NetbiosName::WORKSTATION);
    let request = SessionRequest {
        called: NetbiosName::ANY_SERVER,
        calling: calling.expect("six characters are a NetBIOS name"),
    };
    let mut bytes = Vec::new();
    request.encode(&mut bytes);
    let closed = |error: io::Error| not_netbios(&error.to_string());
    stream
        .send(vec![Part::Bytes(bytes)])
        .await
        .0
        .map_err(closed)?;
    let mut buffer = handle.pool().take_or_wait(RESPONSE_MAX).await;
    loop {
        let (result, back) = stream.recv_into(buffer, 0..FRAME_HEADER_LEN).await;
        result.map_err(closed)?;
        buffer = back;
        let header = *buffer.first_chunk().expect("the buffer has more bytes");
        let header = SessionHeader::decode(header);
        match header.map(|header| (header.packet_type, header.length)) {
            Ok((SessionPacketType::POSITIVE_RESPONSE, 0)) => return Ok(()),
            Ok((SessionPacketType::KEEP_ALIVE, 0)) => {}
            Ok((SessionPacketType::NEGATIVE_RESPONSE, _)) => {
                return Err(io::Error::new(
                    io::ErrorKind::ConnectionRefused,
                    "the server refuses a NetBIOS session",
                ));
            }
            _ => return Err(not_netbios("its answer is no NetBIOS session response")),
        }
    }
}

/// The peer does not speak the NetBIOS session service.
fn not_netbios(why: &str) -> io::Error {
    io::Error::other(NotSmb(why.to_owned()))
}
