//! The pool of large buffers as callers see it.

use std::future::poll_fn;
use std::task::Poll;

use crate::buffer::Buffer;
use crate::memory::Mapping;
use crate::runtime::Handle;

/// The I/O buffers of one runtime, from 16 KiB to 8 MiB each. A clone is cheap and refers to the
/// same buffers.
///
/// A buffer that was used before still has its old bytes: the caller fills it before it sends it.
#[derive(Clone, Debug)]
pub struct Pool {
    handle: Handle,
}

impl Handle {
    /// Returns the pool of I/O buffers of this runtime.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool {
            handle: self.clone(),
        }
    }
}

impl Pool {
    /// Returns the largest length in bytes that a buffer of the pool can have.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.handle.inner().buffers.largest()
    }

    /// Takes a buffer of at least `len` bytes from the pool. Returns `None` while the buffers in
    /// use reach the memory limit of the pool, and if `len` exceeds [`largest`](Self::largest).
    #[must_use]
    pub fn take(&self, len: usize) -> Option<Buffer> {
        let inner = self.handle.inner();
        let register = |mapping: &Mapping| inner.register_slab(mapping);
        let unregister = |slot| inner.unregister_slab(slot);
        inner.buffers.take(len, &register, &unregister)
    }

    /// Takes a buffer of at least `len` bytes from the pool. Waits while the buffers in use reach
    /// the memory limit of the pool.
    ///
    /// # Panics
    /// When `len` exceeds [`largest`](Self::largest).
    pub async fn take_or_wait(&self, len: usize) -> Buffer {
        assert!(
            len <= self.largest(),
            "a buffer of {len} bytes is larger than the pool allows"
        );
        poll_fn(|context| {
            // Register first: another thread may return a buffer between the two steps.
            self.handle.inner().buffers.wait(context.waker());
            match self.take(len) {
                Some(buffer) => Poll::Ready(buffer),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Returns the length in bytes of the memory that the pool has allocated, for used and free
    /// buffers.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.handle.inner().buffers.used_bytes()
    }

    /// Returns the number of buffers of the pool in use by callers and operations.
    #[must_use]
    pub fn buffers_out(&self) -> usize {
        self.handle.inner().buffers.out()
    }
}
