//! The pool of large buffers as callers see it.

use std::future::poll_fn;
use std::task::Poll;

use crate::buffer::Buffer;
use crate::memory::Mapping;
use crate::runtime::Handle;
use crate::shares::Starved;

/// The I/O buffers of one runtime, from 16 KiB to 8 MiB each. A clone is cheap and refers to the
/// same buffers.
///
/// A buffer that was used before still has its old bytes: the caller fills it before it sends it.
#[derive(Clone, Debug)]
pub struct Pool {
    handle: Handle,
}

/// An account of one user of a [`Pool`], such as a connection, that takes buffers. The pool counts
/// the bytes of each holder and of each group of holders, and limits both when free memory is
/// short.
///
/// After the holder is dropped, its buffers stay valid.
#[derive(Debug)]
pub struct Holder {
    pool: Pool,
    key: usize,
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

    /// Makes a holder, which takes buffers of this pool for one user of it, such as a connection.
    /// The holder is in group 0 until [`Holder::set_group`].
    #[must_use]
    pub fn holder(&self) -> Holder {
        let key = self.handle.inner().buffers.add_holder();
        let pool = self.clone();
        Holder { pool, key }
    }

    /// Returns information about a user of the pool, such as a connection, that has no buffer and
    /// waits for one; `None` if no user waits so. Users with buffers do not count, because they
    /// can release their own.
    #[must_use]
    pub fn starved(&self) -> Option<Starved> {
        self.handle.inner().buffers.starved()
    }

    /// Returns memory to the system that was not used since the last call. The caller calls this at
    /// regular intervals; unused memory returns after one to two of them.
    pub fn trim(&self) {
        let inner = self.handle.inner();
        inner.buffers.trim(&|slot| inner.unregister_slab(slot));
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

impl Holder {
    /// Moves the holder and its buffers to the group with the number `group`, for example all
    /// connections of a user. The pool limits the bytes of each group.
    pub fn set_group(&self, group: u64) {
        self.pool.handle.inner().buffers.set_group(self.key, group);
    }

    /// Returns the total length in bytes of the buffers that were taken by this holder and are in
    /// use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pool.handle.inner().buffers.bytes_of(self.key)
    }

    /// Takes a buffer of at least `len` bytes from the pool. Returns `None` if this holder or its
    /// group has used up its share, if the pool has reached its memory limit, or if other holders
    /// wait for a buffer.
    #[must_use]
    pub fn take(&self, len: usize) -> Option<Buffer> {
        let inner = self.pool.handle.inner();
        let register = |mapping: &Mapping| inner.register_slab(mapping);
        let unregister = |slot| inner.unregister_slab(slot);
        let buffers = &inner.buffers;
        buffers.take_for(self.key, len, &register, &unregister)
    }

    /// Takes a buffer of at least `len` bytes from the pool, and waits while it is not available.
    /// Waiting holders get buffers in turn: first the group ([`Holder::set_group`]) with the fewest
    /// bytes, in it the holder with the fewest bytes. Dropping the future withdraws the request.
    ///
    /// # Panics
    /// When `len` exceeds [`Pool::largest`].
    pub async fn take_or_wait(&self, len: usize) -> Buffer {
        assert!(
            len <= self.pool.largest(),
            "a buffer of {len} bytes is larger than the pool allows"
        );
        let mut wait = Wait {
            holder: self,
            number: None,
        };
        poll_fn(|context| {
            let inner = self.pool.handle.inner();
            // Register first: another thread may return a buffer between the two steps.
            let waker = context.waker();
            let number = inner.buffers.wait_for(self.key, wait.number, len, waker);
            wait.number = Some(number);
            let register = |mapping: &Mapping| inner.register_slab(mapping);
            let unregister = |slot| inner.unregister_slab(slot);
            let request = (self.key, number);
            match (inner.buffers).take_in_turn(request, len, &register, &unregister) {
                Some(buffer) => {
                    wait.number = None;
                    Poll::Ready(buffer)
                }
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.pool.handle.inner().buffers.remove_holder(self.key);
    }
}

/// A waiting request. Dropping it withdraws the request.
struct Wait<'a> {
    holder: &'a Holder,
    number: Option<u64>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let buffers = &self.holder.pool.handle.inner().buffers;
            buffers.withdraw(self.holder.key, number);
        }
    }
}
