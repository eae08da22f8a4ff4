//! What happens in a directory.

use std::fmt;

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

/// Bytes of changes that are asked for at a time.
const LENGTH: u32 = 64 << 10;

/// Something that happened in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// To a name.
    Name {
        /// What happened.
        action: FileAction,
        /// The path from the directory that is watched, with `/` between components.
        path: String,
    },
    /// More than the server keeps: look at the directory anew.
    Overflow,
}

/// What happens in a directory. Nothing is missed between two calls of [`next`](Self::next): the
/// server keeps count from the first request on. Made by [`Share::watch`]; dropped, it ends.
pub struct Watch {
    directory: File,
    recursive: bool,
    filter: CompletionFilter,
    pending: Pending,
}

impl Share {
    /// Watches a directory, and what is below it where `recursive`. The request is on its way when
    /// this is done: what others change in the next moments may come before it and is not told
    /// then. Who must miss nothing lists the directory after the first changes were told.
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
        })
    }
}

impl Watch {
    /// Waits for the next changes.
    pub async fn next(&mut self) -> Result<Vec<Change>, Error> {
        let (reply, _) = (&mut self.pending).await.only();
        self.pending = ask(&self.directory, self.recursive, self.filter);
        let changes = match reply {
            // An empty answer, or this word: too much happened. [MS-SMB2] 3.3.4.4
            Ok(Reply::Output(bytes, _)) if bytes.is_empty() => Ok(vec![Change::Overflow]),
            Ok(Reply::Output(bytes, _)) => parse(&bytes),
            Ok(_) => Err(unexpected()),
            Err(cause) if cause.status() == Some(Status::NOTIFY_ENUM_DIR) => {
                Ok(vec![Change::Overflow])
            }
            Err(cause) => Err(cause),
        };
        changes.map_err(|cause| self.directory.failed("watch", cause))
    }

    /// The directory.
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
    share.start_request(request, Memory::None)
}

fn parse(bytes: &[u8]) -> Result<Vec<Change>, Cause> {
    NotifyEntries::new(bytes)
        .map(|entry| {
            let entry = entry?;
            let bad = || Cause::Malformed("a name that is not text".to_owned());
            let path = entry.name.decode().ok_or_else(bad)?;
            Ok(Change::Name {
                action: entry.action,
                path: path.replace('\\', "/"),
            })
        })
        .collect()
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.directory.path())
    }
}
