//! Several requests in flight, answered in any order.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use proto::client::RequestId;

use crate::io::call::{Done, Pending};

/// Requests in flight, each with what the owner knows of it. Its owner keeps it small.
pub(crate) struct Window<K> {
    pending: Vec<(K, Pending)>,
}

impl<K> Default for Window<K> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
        }
    }
}

impl<K> Window<K> {
    pub(crate) fn push(&mut self, key: K, pending: Pending) {
        self.pending.push((key, pending));
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// What is known of those in flight, in the order in which they were begun.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.pending.iter().map(|(key, _)| key)
    }

    /// Their numbers as well.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (&K, RequestId)> {
        let pending = self.pending.iter();
        pending.map(|(key, pending)| (key, pending.id()))
    }

    /// The next answer, whichever it is; `None` where nothing is in flight.
    pub(crate) async fn next(&mut self) -> Option<(K, Done)>
    where
        K: Unpin,
    {
        if self.pending.is_empty() {
            return None;
        }
        let (index, done) = poll_fn(|context| {
            for (index, (_, pending)) in self.pending.iter_mut().enumerate() {
                if let Poll::Ready(done) = Pin::new(pending).poll(context) {
                    return Poll::Ready((index, done));
                }
            }
            Poll::Pending
        })
        .await;
        let (key, _) = self.pending.remove(index);
        Some((key, done))
    }
}
