//! An SMB 3.1.1 client: files on servers, over one or several connections, signed or sealed.
//!
//! # The first file
//!
//! A [`Client`] has the I/O threads; one is enough for a program. It connects to a server and logs
//! in: that is a [`Session`]. A session opens a [`Share`], a share opens a [`File`].
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
//!     // A small file takes one message.
//!     let notes = share.read("notes/today.txt").wait()?;
//!     println!("{} bytes", notes.len());
//!
//!     // A large one is read where it is needed, straight into the buffer.
//!     let file = share.open("movie.mkv", &OpenOptions::new().read(true)).wait()?;
//!     let (count, buffer) = file.read_at(vec![0; 4 << 20], 1 << 30).wait();
//!     println!("{} bytes, the first is {}", count?, buffer[0]);
//!     file.close().wait()
//! }
//! ```
//!
//! # Waiting
//!
//! Everything that asks the server is an `async` function. Its future needs no particular
//! runtime: the client's own threads wake it. In a program without a runtime, [`Wait::wait`]
//! parks the thread until it is done, as above. In one with a runtime, `.await` it:
//!
//! ```no_run
//! # use smbeam_client::{Error, Share};
//! async fn sizes(share: &Share) -> Result<u64, Error> {
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
//! [`Client`], [`Session`], [`Share`] and [`File`] are cheap to clone and may be used by any
//! number of threads at once. What is no longer referred to is closed in the background; `close`
//! does so at once and tells what went wrong. After a fork the child's handles fail with
//! [`Error::Forked`] and leave the parent's connections alone.
//!
//! # Buffers
//!
//! [`File::read_at`] and [`File::write_at`] take a buffer and give it back: until then the kernel
//! may be at work on it, even where the future is dropped. Who would rather lend one, on a thread
//! that may block, has [`File::read_exact_at_blocking`] and [`File::write_all_at_blocking`].
//! [`File::reader`] and [`File::writer`] are [`std::io::Read`] and [`std::io::Write`].
//!
//! # Whole files
//!
//! [`transfer`] keeps every connection of the session busy:
//!
//! ```no_run
//! # use smbeam_client::{Error, File, Wait};
//! use smbeam_client::transfer::{LocalFile, TransferOptions, download};
//!
//! fn save(file: &File, local: std::fs::File) -> Result<u64, Error> {
//!     let len = file.len().wait()?;
//!     let mut sink = LocalFile::from(local);
//!     let mut progress = |bytes| println!("{bytes} more");
//!     download(file, 0..len, &mut sink, &TransferOptions::default(), &mut progress).wait()
//! }
//! ```
//!
//! # Protection and channels
//!
//! [`Options::protection`] says whether everything is signed or sealed; a server or a share that
//! asks for more gets it. [`Options::channels`] says over how many connections a session runs:
//! by itself it opens more than one where the server's network can use them.
//! [`Options::transports`] says what carries them. When a connection
//! breaks and another lives, what can be sent again safely is; what cannot fails with
//! [`Error::Lost`].
//!
//! # What goes wrong
//!
//! An [`Error`] says what was tried on what, and the server's own word ([`Error::status`]).
//! Displayed, it is a line for a user.
#![forbid(unsafe_code)]

mod buffer;
mod channels;
mod client;
mod connect;
mod error;
mod file;
mod fork;
mod interfaces;
mod io;
mod metadata;
mod open_options;
mod options;
mod path;
mod read_dir;
mod read_each;
mod second_session;
mod session;
mod share;
mod shares;
mod stream;
pub mod transfer;
mod transports;
mod wait;
mod watch;
mod write;

pub use buffer::{IoBuf, IoSource};
pub use client::Client;
pub use error::Error;
pub use file::File;
pub use file::lock::LockKind;
pub use interfaces::Interface;
pub use metadata::{Changes, Metadata, Volume};
pub use open_options::OpenOptions;
pub use options::{
    CHANNELS_MAX, Channels, Credentials, Options, Protection, REQUEST_BYTES, Transports,
};
pub use read_dir::{Blocking, Entry, ReadDir};
pub use read_each::FILES_TOGETHER;
pub use session::{ChannelInfo, Session, SessionInfo};
pub use share::Share;
pub use shares::ShareInfo;
pub use stream::{FileReader, FileWriter};
pub use wait::Wait;
pub use watch::{Change, Watch};
pub use write::WriteOptions;

pub use net::quic::{Congestion as QuicCongestion, Settings as QuicSettings};
pub use net::tls;
pub use net::{Endpoint, Endpoints, Transport};
pub use net::{KeepAlive, TcpOptions};
pub use proto::pattern::Pattern;
pub use rdma::Choice as RdmaChoice;
pub use ring::{Io, Region};
pub use wire::access::{AccessMask, FileAttributes};
pub use wire::change_notify::CompletionFilter;
pub use wire::fscc::FileAction;
pub use wire::rpc::srvsvc::ShareType as ShareKind;
pub use wire::{FileTime, Status};
