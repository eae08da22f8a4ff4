//! The opens of a file by which a transfer reaches it: the caller's, and for large ones another.
//!
//! The other one is of another session ([`another`](crate::second_session) says why): the same
//! file,
//! opened once more. It is opened while the transfer is under way already, and where that is
//! refused, or the connection is lost, the transfer goes on without.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::error::Error;
use crate::file::File;
use crate::io::call::Done;
use crate::io::window::Window;
use crate::open_options::OpenOptions;

/// Bytes of a transfer from which on another login is worth its while: a tenth of a second on a
/// fast network.
const SPREAD_BYTES: u64 = 256 << 20;

/// Who opens the file once more.
type Opening = Pin<Box<dyn Future<Output = Option<File>> + Send>>;

/// What is done with the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Read,
    Write,
}

/// The opens of a transfer.
pub(crate) struct Opens<'a> {
    first: &'a File,
    second: Option<File>,
    opening: Option<Opening>,
}

/// Which of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    #[default]
    First,
    Second,
}

/// What happened.
pub(crate) enum Next<K> {
    /// An answer came.
    Done(K, Done),
    /// There is a second open.
    Opened,
    /// Nothing is in flight.
    Nothing,
}

impl<'a> Opens<'a> {
    /// Those of a transfer of so many bytes.
    pub(crate) fn of(first: &'a File, total: u64, purpose: Use) -> Self {
        let is_worth_it = total >= SPREAD_BYTES && first.may_be_opened_again();
        let opening = is_worth_it.then(|| Box::pin(open(first.clone(), purpose)) as Opening);
        Self {
            first,
            second: None,
            opening,
        }
    }

    /// The one that is less busy, if one takes a further request; `depth` are as many as are in
    /// flight in all.
    pub(crate) fn free(&self, busy: impl Iterator<Item = Which>, depth: usize) -> Option<Which> {
        let depth = self.share(depth);
        let (mut first, mut second) = (0, 0);
        busy.for_each(|which| match which {
            Which::First => first += 1,
            Which::Second => second += 1,
        });
        match self.second.is_some() && second < first {
            true => (second < depth).then_some(Which::Second),
            false => (first < depth).then_some(Which::First),
        }
    }

    /// How many of so many requests each of them has.
    pub(crate) fn share(&self, depth: usize) -> usize {
        match self.second {
            Some(_) => depth.div_ceil(2),
            None => depth,
        }
    }

    /// The file, opened so.
    pub(crate) fn file(&self, which: Which) -> &File {
        match (which, &self.second) {
            (Which::Second, Some(second)) => second,
            _ => self.first,
        }
    }

    /// A request failed there: whether it may be made again, by the other one.
    pub(crate) fn give_up(&mut self, which: Which) -> bool {
        if which == Which::Second {
            self.second = None;
        }
        which == Which::Second
    }

    /// Waits for what comes first.
    pub(crate) async fn next<K: Unpin>(&mut self, window: &mut Window<K>) -> Next<K> {
        let mut answer = pin!(window.next());
        poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                let done = |(key, done)| Next::Done(key, done);
                return Poll::Ready(answer.map_or(Next::Nothing, done));
            }
            let opened = self.opening.as_mut().map(|it| it.as_mut().poll(context));
            let Some(Poll::Ready(file)) = opened else {
                return Poll::Pending;
            };
            self.opening = None;
            self.second = file;
            match self.second {
                Some(_) => Poll::Ready(Next::Opened),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Closes what was opened here: what others may do with the file is up to the caller's open
    /// again.
    pub(crate) async fn close(mut self) -> Result<(), Error> {
        match self.second.take() {
            Some(file) => file.close().await,
            None => Ok(()),
        }
    }
}

async fn open(first: File, purpose: Use) -> Option<File> {
    let (path, options) = (first.path(), OpenOptions::new());
    let options = match purpose {
        Use::Read => options.read(true),
        Use::Write => options.write(true),
    };
    let opened = async {
        let share = first.share().of_another_client().await?;
        let file = share.open(path, &options).await?;
        // Somebody may have put another file there.
        let numbers = (first.metadata().await?, file.metadata().await?);
        let (one, other) = (numbers.0.file_id, numbers.1.file_id);
        Ok::<_, Error>((one.is_some() && one == other).then_some(file))
    };
    opened.await.unwrap_or_else(|error| {
        tracing::debug!(path, %error, "no second open");
        None
    })
}
