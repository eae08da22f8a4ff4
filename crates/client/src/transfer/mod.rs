//! Transfers of whole files: downloads, uploads and copies that keep every channel busy.
//!
//! A transfer keeps a window of requests in flight over all channels of the session. Its memory is
//! limited to `depth` pieces of `io_size` bytes. Pieces complete in any order. A large download or
//! upload over one connection may open a second one: see
//! [`Channels::Auto`](crate::Channels::Auto).

mod copy;
mod download;
mod local;
mod opens;
mod options;
mod pieces;
mod plan;
mod upload;

pub use copy::{copy_range, relay};
pub use download::download;
pub use local::{LocalFile, Sink, Source};
pub use options::{Ranges, TransferOptions};
pub use upload::upload;
