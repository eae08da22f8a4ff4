//! A value that one task passes to another, once.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A cell for one value. Clones refer to the same cell.
pub(crate) struct Once<T> {
    shared: Rc<RefCell<Inner<T>>>,
}

struct Inner<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T> Once<T> {
    pub(crate) fn new() -> Self {
        let (value, waker) = (None, None);
        Self {
            shared: Rc::new(RefCell::new(Inner { value, waker })),
        }
    }

    /// Stores the value and wakes the waiting task.
    pub(crate) fn set(&self, value: T) {
        let waker = {
            let mut inner = self.shared.borrow_mut();
            inner.value = Some(value);
            inner.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits for the value and takes it.
    pub(crate) async fn take(&self) -> T {
        poll_fn(|context| {
            let mut inner = self.shared.borrow_mut();
            match inner.value.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    inner.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl<T> Clone for Once<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
        }
    }
}
