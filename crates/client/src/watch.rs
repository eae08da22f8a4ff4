//! Notifications of changes in a directory. \[MS-SMB2\] 2.2.35

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use proto::client::request::Reply;
use proto::client::{Request, Step};
use wire::Status;
use wire::access::AccessMask;
use wire::change_notify::CompletionFilter;
use wire::fscc::{FileAction, NotifyEntries};

use crate::error::{Cause, Error, unexpected};
use crate::file::File;
use crate::io::call::{Memory, Pending};
use crate::open_options::OpenOptions;
use crate::share::Share;

/// Largest list of changes in one response, in bytes.
const LENGTH: u32 = 64 << 10;

/// A change that the server reports for a directory that the client watches, or the report that the
/// server dropped changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A file was created, deleted, renamed or changed.
    Name {
        /// Kind of the change: created, deleted, changed, or the old or new name of a rename.
        action: FileAction,
        /// Path of the file relative to the watched directory; `/` separates components.
        path: String,
    },
    /// The server dropped changes because too many occurred. The program must list the directory
    /// again.
    Overflow,
}

/// The changes in a directory. Made by [`Share::watch`]; dropping it ends the watch. The server
/// collects changes from the first request on and stores them between two calls of
/// [`next`](Self::next), so no change is lost between the calls.
///
/// With the cargo feature `futures` this is a `futures_core::Stream`.
pub struct Watch {
    directory: File,
    recursive: bool,
    filter: CompletionFilter,
    pending: Pending,
    #[cfg(feature = "futures")]
    has_failed: bool,
}

impl Share {
    /// Watches the directory `path`, relative to the root of the share; if `recursive` is true,
    /// also everything below it. `filter` selects the kinds of changes.
    ///
    /// The client has sent the request when this function returns, but a change that reaches the
    /// server before the request is not reported. A program that must not miss changes lists the
    /// directory after the first notification.
    ///
    /// # Errors
    /// The directory does not exist, or the user may not list it.
    pub async fn watch(
        &self,
        path: &str,
        recursive: bool,
        filter: CompletionFilter,
    ) -> Result<Watch, Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_LIST_DIRECTORY | AccessMask::FILE_READ_ATTRIBUTES)
            .directory(true);
        let directory = self.open(path, &options).await?;
        let pending = ask(&directory, recursive, filter);
        Ok(Watch {
            directory,
            recursive,
            filter,
            pending,
            #[cfg(feature = "futures")]
            has_failed: false,
        })
    }
}

impl Watch {
    /// Waits until the server reports changes, and returns them in the order of the server.
    ///
    /// # Errors
    /// The server does not support notifications, or the connection is lost.
    pub async fn next(&mut self) -> Result<Vec<Change>, Error> {
        poll_fn(|context| self.poll_changes(context)).await
    }

    fn poll_changes(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<Change>, Error>> {
        let (reply, _) = ready!(Pin::new(&mut self.pending).poll(context)).only();
        self.pending = ask(&self.directory, self.recursive, self.filter);
        let changes = match reply {
            // An empty response and NOTIFY_ENUM_DIR report dropped changes. [MS-SMB2] 3.3.4.4
            Ok(Reply::Output(bytes, _)) if bytes.is_empty() => Ok(vec![Change::Overflow]),
            Ok(Reply::Output(bytes, _)) => parse(&bytes),
            Ok(_) => Err(unexpected()),
            Err(cause) if cause.status() == Some(Status::NOTIFY_ENUM_DIR) => {
                Ok(vec![Change::Overflow])
            }
            Err(cause) => Err(cause),
        };
        Poll::Ready(changes.map_err(|cause| self.directory.failed("watch", cause)))
    }

    /// Returns the path of the watched directory, relative to the root of the share.
    pub fn path(&self) -> &str {
        self.directory.path()
    }
}

fn ask(directory: &File, recursive: bool, filter: CompletionFilter) -> Pending {
    let share = directory.share();
    let step = Step::ChangeNotify {
        file: directory.file(),
        recursive,
        filter,
        length: LENGTH.min(share.session().negotiated().negotiated.max_transact),
    };
    let mut request = Request::new(None, vec![step]);
    request.timeout = Some(None);
    directory.start_request(request, Memory::None)
}

fn parse(bytes: &[u8]) -> Result<Vec<Change>, Cause> {
    NotifyEntries::new(bytes)
        .map(|entry| {
            let entry = entry?;
            let bad = || Cause::Malformed("a name is not valid UTF-16".to_owned());
            let path = entry.name.decode().ok_or_else(bad)?;
            Ok(Change::Name {
                action: entry.action,
                path: path.replace('\\', "/"),
            })
        })
        .collect()
}

impl Watch {
    /// The changes that most programs want: names, attributes, sizes, and times of the last write
    /// and of the creation.
    pub const USUAL: CompletionFilter = CompletionFilter(
        CompletionFilter::FILE_NAME.0
            | CompletionFilter::DIR_NAME.0
            | CompletionFilter::ATTRIBUTES.0
            | CompletionFilter::SIZE.0
            | CompletionFilter::LAST_WRITE.0
            | CompletionFilter::CREATION.0,
    );
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.directory.path())
    }
}

/// The stream ends after an error.
#[cfg(feature = "futures")]
impl futures_core::Stream for Watch {
    type Item = Result<Vec<Change>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let watch = self.get_mut();
        if watch.has_failed {
            return Poll::Ready(None);
        }
        let changes = ready!(watch.poll_changes(context));
        watch.has_failed = changes.is_err();
        Poll::Ready(Some(changes))
    }
}
