//! The opens of a file in a transfer: the caller's open, and a second one for a large file.
//!
//! The second open is on a second session (the module `second_session` has the reason). It is made
//! while the transfer runs. If the server refuses it, or its connection is lost, the transfer
//! continues with the first one.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use wire::create_context::LeaseState;

use crate::error::Error;
use crate::file::File;
use crate::io::call::Done;
use crate::io::window::Window;
use crate::open_options::OpenOptions;

/// Length of a transfer in bytes from which a second login pays off: a tenth of a second on a fast
/// network.
const SPREAD_BYTES: u64 = 256 << 20;

/// The future that opens the file a second time.
type Opening = Pin<Box<dyn Future<Output = Option<File>> + Send>>;

/// Direction of the transfer.
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

/// One of the two opens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    #[default]
    First,
    Second,
}

/// An event of a transfer.
pub(crate) enum Next<K> {
    /// A request is done.
    Done(K, Done),
    /// The second open is available.
    Opened,
    /// Nothing is in flight.
    Nothing,
}

impl<'a> Opens<'a> {
    /// The opens of a transfer of `total` bytes.
    pub(crate) fn of(first: &'a File, total: u64, purpose: Use) -> Self {
        let is_worth_it = total >= SPREAD_BYTES && first.may_be_opened_again();
        let opening = is_worth_it.then(|| Box::pin(open(first.clone(), purpose)) as Opening);
        Self {
            first,
            second: None,
            opening,
        }
    }

    /// The less busy open, if it accepts a further request. `depth` is the limit of requests in
    /// flight of both together.
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

    /// Share of one open in `depth` requests.
    pub(crate) fn share(&self, depth: usize) -> usize {
        match self.second {
            Some(_) => depth.div_ceil(2),
            None => depth,
        }
    }

    /// The file of an open.
    pub(crate) fn file(&self, which: Which) -> &File {
        match (which, &self.second) {
            (Which::Second, Some(second)) => second,
            _ => self.first,
        }
    }

    /// Handles a failed request of an open. Returns whether the other open may repeat it.
    pub(crate) fn give_up(&mut self, which: Which) -> bool {
        if which == Which::Second {
            self.second = None;
        }
        which == Which::Second
    }

    /// Waits for the first event.
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

    /// Closes the second open, so that only the caller's open affects the share mode again.
    pub(crate) async fn close(mut self) -> Result<(), Error> {
        match self.second.take() {
            Some(file) => file.close().await,
            None => Ok(()),
        }
    }
}

async fn open(first: File, purpose: Use) -> Option<File> {
    // The lease of the first open serves for both.
    let options = OpenOptions::new().lease(LeaseState::NONE);
    let path = first.path();
    let options = match purpose {
        Use::Read => options.read(true),
        Use::Write => options.write(true),
    };
    let opened = async {
        let share = first.share().of_another_client().await?;
        let file = share.open(path, &options).await?;
        // Another file may have replaced the first one.
        let numbers = (first.metadata().await?, file.metadata().await?);
        let (one, other) = (numbers.0.file_id, numbers.1.file_id);
        Ok::<_, Error>((one.is_some() && one == other).then_some(file))
    };
    opened.await.unwrap_or_else(|error| {
        tracing::debug!(path, %error, "no second open");
        None
    })
}
