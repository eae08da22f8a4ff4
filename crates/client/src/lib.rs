//! An SMB 3.1.1 client: files on servers, over one or several connections, signed or encrypted.
//!
//! # Quick start
//!
//! A [`Client`] owns the I/O threads; a program needs one. It connects to a server and logs in,
//! which gives a [`Session`]. A session opens a [`Share`], and a share opens a [`File`].
//!
//! ```no_run
//! use smbeam_client::{Client, Credentials, Error, OpenOptions, Options, Wait};
//!
//! fn main() -> Result<(), Error> {
//!     let client = Client::new(Options::default())?;
//!     let credentials = Credentials::new(None, "alice", "open sesame");
//!     let session = client.connect("server.example", None, &credentials).wait()?;
//!     let share = session.share("data").wait()?;
//!
//!     // A small file takes one round trip.
//!     let notes = share.read("notes/today.txt").wait()?;
//!     println!("{} bytes", notes.len());
//!
//!     // Read a part of a large file straight into the buffer.
//!     let file = share.open("movie.mkv", &OpenOptions::new().read(true)).wait()?;
//!     let (count, buffer) = file.read_at(vec![0; 4 << 20], 1 << 30).wait();
//!     println!("{} bytes, the first is {}", count?, buffer[0]);
//!     file.close().wait()
//! }
//! ```
//!
//! [`Client::open`] does all of that for one `smb://` URL.
//!
//! # Waiting
//!
//! Every function that sends a request is an `async` function. Its future works on any runtime,
//! because the client's own threads wake it. In a program without a runtime, [`Wait::wait`] parks
//! the thread until the future is done, as above. In a program with a runtime, `.await` it:
//!
//! ```no_run
//! # use smbeam_client::{Error, Share};
//! async fn total_size(share: &Share) -> Result<u64, Error> {
//!     let mut total = 0;
//!     let mut listing = share.read_dir("photos", "*.jpg").await?;
//!     while let Some(entry) = listing.next().await {
//!         total += entry?.metadata.size;
//!     }
//!     Ok(total)
//! }
//! ```
//!
//! # Handles
//!
//! [`Client`], [`Session`], [`Share`] and [`File`] are handles: cheap to clone, and usable from any
//! number of threads at once. Dropping the last clone closes the object in the background; `close`
//! closes it at once and returns the error of that. After a fork the handles of the child process
//! fail with [`Error::Forked`] and do not touch the connections of the parent.
//!
//! # Buffers
//!
//! [`File::read_at`] and [`File::write_at`] take ownership of a buffer and return it. In between
//! the kernel may access the buffer, even if the future is dropped. On a thread that may block,
//! [`File::read_exact_at_blocking`] and [`File::write_all_at_blocking`] borrow a slice instead.
//! [`File::reader`] and [`File::writer`] implement [`std::io::Read`] and [`std::io::Write`].
//!
//! # Whole files
//!
//! The functions of [`transfer`] download, upload and copy large files. They keep every connection
//! of the session busy:
//!
//! ```no_run
//! # use smbeam_client::{Error, File, Wait};
//! use smbeam_client::transfer::{LocalFile, TransferOptions, download};
//!
//! fn save(file: &File, local: std::fs::File) -> Result<u64, Error> {
//!     let len = file.len().wait()?;
//!     let mut sink = LocalFile::from(local);
//!     let mut progress = |bytes| println!("{bytes} more bytes");
//!     download(file, 0..len, &mut sink, &TransferOptions::default(), &mut progress).wait()
//! }
//! ```
//!
//! # Protection and channels
//!
//! [`Options::protection`] chooses whether all messages are signed or encrypted; a server or a
//! share can require more. [`Options::channels`] chooses the count of connections of a session: by
//! default the client opens several if the server's network interfaces make use of them.
//! [`Options::transports`] chooses TCP, NetBIOS, QUIC or SMB Direct. When a connection breaks and
//! another one remains, the client sends the requests again that are safe to repeat. The others
//! fail with [`Error::Lost`].
//!
//! # Lost connections
//!
//! When the last connection of a session breaks, the client connects again by itself, for as long
//! as [`Options::reconnect_timeout`] allows. Files stay valid if the server granted durable opens
//! ([`File::durable_timeout`]): it preserves them and their byte-range locks meanwhile. A file that
//! is only read is also opened again by its path, if it has not changed. Requests wait for the
//! connection, and take effect once. Those that the client cannot repeat or check fail with
//! [`Error::Lost`]: an append at the end, an open that creates a file, and changes by path such as
//! [`Share::rename`].
//!
//! Functions that work by path in one message, such as [`Share::read`], [`Share::write`] and
//! [`Share::metadata`], request neither leases nor durable opens: their opens last for one message.
//!
//! # Streams, attributes, descriptors and links
//!
//! [`Share::open_stream`] opens a named stream, and [`Share::streams`] lists them.
//! [`Share::extended_attributes`] are names with values, and [`Share::security`] queries owner,
//! group and access control list. [`Share::symlink`] creates a symbolic link and
//! [`Share::read_link`] reads its target. When a server stops at a symbolic link, the client
//! follows it within the share, and never out of it.
//!
//! # Errors
//!
//! An [`Error`] names the operation, its object and the reason. Displayed, it is a line for a user.
//! [`Error::kind`] sorts errors by what a program can do about them, and [`Error::status`] returns
//! the status of the server's response.
//!
//! # Cargo features
//!
//! Both are off by default, and neither starts a runtime.
//!
//! - `futures`: [`ReadDir`] and [`Watch`] implement `futures_core::Stream`; [`FileReader`] and
//!   [`FileWriter`] implement the traits of `futures_io`.
//! - `tokio`: [`FileReader`] and [`FileWriter`] implement the traits of `tokio::io`.
#![forbid(unsafe_code)]

mod buffer;
mod channels;
mod client;
mod connect;
mod ea;
mod errno;
mod error;
mod file;
mod fork;
mod further_channels;
mod interfaces;
mod io;
mod maximal_access;
mod metadata;
mod open;
mod open_options;
mod options;
mod path;
mod posix;
mod posix_changes;
mod posix_query;
mod read_dir;
mod read_each;
mod reparse;
mod second_session;
mod security;
mod session;
mod share;
mod shares;
mod stream;
mod streams;
mod symlink;
pub mod transfer;
mod transports;
mod unix_metadata;
mod url;
mod wait;
mod watch;
mod write;

pub use buffer::{IoBuf, IoSource};
pub use client::Client;
pub use ea::ExtendedAttribute;
pub use error::{Error, ErrorKind};
pub use file::File;
pub use file::lease::Lease;
pub use file::lock::LockKind;
pub use interfaces::Interface;
pub use io::leases::LeaseBreak;
pub use metadata::{Changes, Metadata, Volume};
pub use open_options::OpenOptions;
pub use options::{
    CHANNELS_MAX, Channels, Credentials, Options, Protection, REQUEST_BYTES, Transports,
};
pub use posix_changes::PosixChanges;
pub use read_dir::{Blocking, Entry, ReadDir};
pub use read_each::FILES_TOGETHER;
pub use reparse::ReparsePoint;
pub use session::{ChannelInfo, Session, SessionInfo};
pub use share::Share;
pub use shares::ShareInfo;
pub use stream::{FileReader, FileWriter};
pub use streams::StreamInfo;
pub use unix_metadata::UnixMetadata;
pub use url::{Url, UrlError};
pub use wait::Wait;
pub use watch::{Change, Watch};
pub use write::WriteOptions;

/// Traits and types for programs that log in with a security mechanism other than NTLM, such as
/// Kerberos: see [`Credentials::with_mechanism`].
pub mod mechanism {
    pub use auth::{
        Entropy, FileTime, InitiatorContext, InitiatorError, InitiatorMechanism, InitiatorProgress,
        InitiatorProvider, Integrity,
    };
    pub use wire::spnego::Oid;
}

pub use crypto::{Cipher, SigningAlgorithm};
pub use net::quic::{Congestion as QuicCongestion, Settings as QuicSettings};
pub use net::tls;
pub use net::{Endpoint, Endpoints, Transport};
pub use net::{KeepAlive, TcpOptions};
pub use proto::pattern::Pattern;
pub use rdma::Choice as RdmaChoice;
pub use ring::{Io, Region, Source};
pub use wire::access::{AccessMask, FileAttributes};
pub use wire::change_notify::CompletionFilter;
pub use wire::create_context::LeaseState;
pub use wire::dialect::{Capabilities, Dialect};
pub use wire::fscc::FileAction;
pub use wire::reparse::ReparseTag;
pub use wire::rpc::srvsvc::ShareType as ShareKind;
pub use wire::security::{
    Ace, AceFlags, AceType, Acl, DescriptorControl, ParseSddlError, ParseSidError,
    SecurityDescriptor, SecurityInformation, Sid, WELL_KNOWN as WELL_KNOWN_SIDS, WellKnownSid,
};
pub use wire::tree_connect::ShareType;
pub use wire::{FileTime, Guid, Status};
