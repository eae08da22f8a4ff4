//! Operations with one completion: submit, await, cancel.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use io_uring::squeue::Entry;

use crate::op::Hold;
use crate::runtime::Handle;
use crate::signal::Signal;
use crate::uring::Uring;

impl Handle {
    /// Submits an operation with one completion and awaits it. Dropping the future cancels the
    /// operation, and the driver frees the hold after the last completion.
    ///
    /// # Safety
    ///
    /// As for `Uring::submit`.
    pub(crate) unsafe fn operate(
        &self,
        entry: Entry,
        hold: Hold,
    ) -> impl Future<Output = (io::Result<i32>, Hold)> + use<> {
        // SAFETY: the caller guarantees the contract of `Uring::submit`, which is this function's.
        let mut operation = unsafe { self.submit(entry, hold) };
        async move { poll_fn(move |context| operation.poll(context)).await }
    }

    /// As [`operate`](Self::operate). Once `interrupt` is raised, the driver cancels the operation,
    /// and the future still awaits its completion.
    ///
    /// # Safety
    ///
    /// As for `Uring::submit`.
    pub(crate) unsafe fn operate_until<'a>(
        &self,
        entry: Entry,
        hold: Hold,
        interrupt: Option<&'a Signal>,
    ) -> impl Future<Output = (io::Result<i32>, Hold)> + use<'a> {
        // SAFETY: the caller guarantees the contract of `Uring::submit`, which is this function's.
        let mut operation = unsafe { self.submit(entry, hold) };
        let mut interrupted = interrupt.map(Signal::raised);
        async move {
            poll_fn(move |context| {
                let polled = operation.poll(context);
                let interrupted = interrupted.as_mut().map(Pin::new);
                if polled.is_pending()
                    && interrupted.is_some_and(|raised| raised.poll(context).is_ready())
                {
                    // The driver cancels an operation once.
                    operation.cancel();
                }
                polled
            })
            .await
        }
    }

    /// Submits an operation with one completion.
    ///
    /// # Safety
    ///
    /// As for `Uring::submit`.
    unsafe fn submit(&self, entry: Entry, hold: Hold) -> Operation {
        let uring = self.inner().uring().expect("only a ring has operations");
        // SAFETY: the caller guarantees the contract of `Uring::submit`, which is this function's.
        let key = unsafe { uring.submit(entry, hold) };
        Operation {
            handle: self.clone(),
            key: Some(key),
        }
    }
}

/// Turns the result of a completion, which may be a negated errno, into a `Result`.
pub(crate) fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}

/// A submitted operation. Dropping it before the completion abandons the operation.
struct Operation {
    handle: Handle,
    /// Key in the table of operations; `None` after the completion.
    key: Option<usize>,
}

impl Operation {
    fn uring(&self) -> &Uring {
        let uring = self.handle.inner().uring();
        uring.expect("the driver does not change")
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(io::Result<i32>, Hold)> {
        let key = self.key.expect("a finished operation is not polled");
        let polled = self.uring().poll(key, context);
        polled.map(|(completion, hold)| {
            self.key = None;
            let hold = hold.expect("a plain operation has one completion");
            (check(completion.result), hold)
        })
    }

    fn cancel(&self) {
        if let Some(key) = self.key {
            self.uring().cancel(key);
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let (Some(key), Some(uring)) = (self.key, self.handle.inner().uring()) {
            uring.abandon(key);
        }
    }
}
