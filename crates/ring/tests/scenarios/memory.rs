//! The pool is bounded, and all buffers return to it.

use std::cell::Cell;
use std::rc::Rc;

use smbeam_ring::{Buffer, Handle};

fn take_all(handle: &Handle, length: usize) -> Vec<Buffer> {
    let pool = handle.pool();
    std::iter::from_fn(|| pool.take(length)).collect()
}

pub(crate) async fn an_empty_pool_says_so(handle: Handle) {
    let pool = handle.pool();
    let all = take_all(&handle, 1 << 20);
    assert_eq!(
        all.len(),
        23,
        "24 MiB hold 23 buffers of 1 MiB and headroom"
    );
    assert!(pool.take(8 << 20).is_none());
    assert!(pool.take(9 << 20).is_none(), "larger than any");
    assert!(all.iter().all(|buffer| buffer.len() >= 1 << 20));
    assert!(
        all.iter()
            .all(|buffer| (buffer.as_ptr() as usize).is_multiple_of(4096))
    );
    drop(all);
    assert!(pool.take(8 << 20).is_some());
}

pub(crate) async fn a_returned_buffer_ends_the_wait(handle: Handle) {
    let mut all = take_all(&handle, 1 << 20);
    let got = Rc::new(Cell::new(0));
    for _ in 0..5 {
        let (pool, got) = (handle.pool(), Rc::clone(&got));
        handle.spawn(async move {
            let buffer = pool.take_or_wait(1 << 20).await;
            got.set(got.get() + 1);
            drop(buffer);
        });
    }
    handle.yield_now().await;
    assert_eq!(got.get(), 0, "all memory is out");
    all.pop();
    while got.get() < 5 {
        handle.yield_now().await;
    }
}

pub(crate) async fn idle_memory_moves_between_classes(handle: Handle) {
    let limit = 24 << 20;
    for length in [1, 8 << 20, 20_000, 1 << 20, 100, 4 << 20, 256 << 10] {
        let all = take_all(&handle, length);
        assert!(
            all.len() * length.max(16 << 10) > limit / 2,
            "most of the memory is had"
        );
        assert!(handle.pool().used_bytes() <= limit);
    }
}

pub(crate) async fn a_buffer_may_be_dropped_on_any_thread(handle: Handle) {
    let all = take_all(&handle, 256 << 10);
    let thread = std::thread::spawn(move || drop(all));
    for _ in 0..100 {
        let buffer = handle.pool().take_or_wait(256 << 10).await;
        let buffer = handle
            .blocking(move || {
                let mut buffer = buffer;
                buffer[0] = 42;
                buffer
            })
            .await;
        assert_eq!(buffer[0], 42);
    }
    thread.join().expect("the thread ends well");
}

/// A greedy holder has all that it may have and waits for more. A holder without a buffer gets one
/// first, and then the greedy one.
pub(crate) async fn waiting_holders_get_buffers_in_turn(handle: Handle) {
    let pool = handle.pool();
    let (greedy, other) = (Rc::new(pool.holder()), Rc::new(pool.holder()));
    let held: Vec<Buffer> = std::iter::from_fn(|| greedy.take(1 << 20)).collect();
    assert!(!held.is_empty() && greedy.bytes() >= held.len() << 20);
    let rest = take_all(&handle, 1 << 20);
    let order = Rc::new(std::cell::RefCell::new(Vec::new()));
    let [of_greedy, of_other] = [("greedy", &greedy), ("other", &other)].map(|(name, holder)| {
        let (holder, order) = (Rc::clone(holder), Rc::clone(&order));
        handle.spawn(async move {
            let buffer = holder.take_or_wait(1 << 20).await;
            order.borrow_mut().push(name);
            drop(buffer);
        })
    });
    handle.yield_now().await;
    let starved = pool.starved().expect("the other holder has no buffer");
    assert_eq!((starved.group, order.borrow().len()), (0, 0));
    drop(rest);
    of_other.await.expect("no panic");
    assert_eq!(*order.borrow(), ["other"]);
    drop(held);
    of_greedy.await.expect("no panic");
    assert_eq!(*order.borrow(), ["other", "greedy"]);
    assert_eq!((pool.starved(), greedy.bytes()), (None, 0));
}

pub(crate) async fn unused_memory_returns_to_the_system(handle: Handle) {
    let pool = handle.pool();
    drop(take_all(&handle, 1 << 20));
    let kept = pool.take(1 << 20).expect("all buffers are free");
    pool.trim();
    assert!(
        pool.used_bytes() > 8 << 20,
        "it was used since the last call"
    );
    pool.trim();
    assert!(pool.used_bytes() < 4 << 20, "one slab is in use");
    drop(kept);
    assert!(pool.take(8 << 20).is_some());
}
