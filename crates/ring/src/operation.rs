//! Operations with one completion: submit, await, cancel.

use std::future::poll_fn;
use std::io;

use io_uring::squeue::Entry;

use crate::op::Hold;
use crate::runtime::Handle;

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
        let uring = self.inner().uring().expect("only a ring has operations");
        // SAFETY: the caller guarantees the contract of `Uring::submit`, which is this function's.
        let key = unsafe { uring.submit(entry, hold) };
        let mut operation = Operation {
            handle: self.clone(),
            key: Some(key),
        };
        async move {
            poll_fn(move |context| {
                let key = operation.key.expect("a finished operation is not polled");
                let uring = operation
                    .handle
                    .inner()
                    .uring()
                    .expect("the driver does not change");
                uring.poll(key, context).map(|(completion, hold)| {
                    operation.key = None;
                    let hold = hold.expect("a plain operation has one completion");
                    (check(completion.result), hold)
                })
            })
            .await
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

impl Drop for Operation {
    fn drop(&mut self) {
        if let (Some(key), Some(uring)) = (self.key, self.handle.inner().uring()) {
            uring.abandon(key);
        }
    }
}
