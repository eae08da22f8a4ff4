//! Whole files on their way: downloads, uploads and copies that keep every channel busy.
//!
//! Each fills a window of requests over all channels of the session and keeps to so much memory
//! (`depth` pieces of `io_size` bytes). Pieces are taken in whatever order they come. Large
//! downloads and uploads that have one connection may open a second one: see
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
