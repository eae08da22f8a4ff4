//! A queue of tasks of the same worker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// A queue of tasks of one thread that need the same thing, such as bytes of a quota. Only the
/// first one tries to get it. So a release wakes one task, however many wait, and none overtakes
/// another.
#[derive(Debug, Default)]
pub struct TaskQueue {
    next: Cell<u64>,
    /// In the order of their numbers.
    entries: RefCell<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    /// `None` before the first poll.
    waker: Option<Waker>,
}

impl TaskQueue {
    /// Adds an entry at the end of the queue.
    pub fn enter(&self) -> Place<'_> {
        let number = self.next.get();
        self.next.set(number + 1);
        let waker = None;
        self.entries.borrow_mut().push_back(Entry { number, waker });
        Place {
            queue: self,
            number,
        }
    }

    /// Returns whether no task is in the queue.
    pub fn is_empty(&self) -> bool {
        self.entries.borrow().is_empty()
    }
}

/// An entry of a [`TaskQueue`]. It leaves the queue on drop.
#[derive(Debug)]
#[must_use = "the entry leaves the queue on drop"]
pub struct Place<'a> {
    queue: &'a TaskQueue,
    number: u64,
}

impl Place<'_> {
    /// Waits until this entry is the first one.
    pub async fn first(&self) {
        poll_fn(|context| self.poll_first(context)).await;
    }

    fn poll_first(&self, context: &Context<'_>) -> Poll<()> {
        let entries = &mut *self.queue.entries.borrow_mut();
        match find(entries, self.number) {
            0 => Poll::Ready(()),
            index => {
                entries[index].waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let entries = &mut *self.queue.entries.borrow_mut();
        let index = find(entries, self.number);
        entries.remove(index);
        if index == 0
            && let Some(waker) = entries.front_mut().and_then(|entry| entry.waker.take())
        {
            waker.wake();
        }
    }
}

/// The index of the entry with a number.
fn find(entries: &VecDeque<Entry>, number: u64) -> usize {
    let index = entries.binary_search_by_key(&number, |entry| entry.number);
    index.expect("an entry is in the queue until it is dropped")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_entry_becomes_the_first_one_in_its_turn() {
        let queue = TaskQueue::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let is_first = |place: &Place<'_>| {
            let polled = place.poll_first(&Context::from_waker(&waker));
            polled.is_ready()
        };
        let wakes = || count.0.load(Ordering::Relaxed);
        let mut places: VecDeque<_> = (0..5).map(|_| queue.enter()).collect();
        let first: Vec<_> = places.iter().map(is_first).collect();
        assert_eq!(first, [true, false, false, false, false]);
        // One that gives up in the middle wakes none.
        drop(places.remove(2));
        assert_eq!(wakes(), 0);
        for woken in 1..=3 {
            places.pop_front();
            assert_eq!(wakes(), woken);
            assert!(is_first(&places[0]));
        }
        places.pop_front();
        assert!(queue.is_empty() && wakes() == 3);
    }

    #[test]
    fn an_entry_that_gives_up_when_it_is_first_wakes_the_next_one() {
        let queue = TaskQueue::default();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let places = [queue.enter(), queue.enter(), queue.enter()];
        for place in &places {
            let _ = place.poll_first(&Context::from_waker(&waker));
        }
        let [one, two, three] = places;
        drop(one);
        drop(two);
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        let polled = three.poll_first(&Context::from_waker(&waker));
        assert!(polled.is_ready());
    }
}
