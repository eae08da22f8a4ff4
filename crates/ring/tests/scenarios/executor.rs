//! Tasks are fair, timers are in order, and the end of a task affects no other task.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use smbeam_ring::{Elapsed, Handle, JoinError, Part};

use crate::pair;

pub(crate) async fn sleeps_end_in_order(handle: Handle) {
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut tasks = Vec::new();
    let start = Instant::now();
    for delay in [300, 100, 200, 0, 100] {
        let (order, sleeper) = (Rc::clone(&order), handle.clone());
        tasks.push(handle.spawn(async move {
            let end = start + Duration::from_millis(delay);
            sleeper.sleep_until(end).await;
            order.borrow_mut().push(delay);
        }));
    }
    for task in tasks {
        task.await.expect("a sleeper ends");
    }
    assert_eq!(*order.borrow(), [0, 100, 100, 200, 300]);
}

pub(crate) async fn timeout_drops_the_future(handle: Handle) {
    let token = Rc::new(());
    let held = Rc::clone(&token);
    let forever = async move {
        std::future::pending::<()>().await;
        drop(held);
    };
    assert_eq!(
        handle.timeout(Duration::from_millis(1), forever).await,
        Err(Elapsed)
    );
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(handle.timeout(Duration::ZERO, async { 5 }).await, Ok(5));
}

pub(crate) async fn a_busy_task_does_not_starve_io(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let busy = handle.clone();
    let task = handle.spawn(async move {
        loop {
            busy.yield_now().await;
        }
    });
    for _ in 0..20 {
        client
            .send(vec![Part::Bytes(vec![1])])
            .await
            .0
            .expect("send");
        assert_eq!(server.recv().await.expect("recv").len(), 1);
        handle.sleep(Duration::from_micros(100)).await;
    }
    task.abort();
}

pub(crate) async fn a_panic_ends_one_task(handle: Handle) {
    let bad = handle.spawn(async { panic!("on purpose") });
    let good = handle.spawn(async { 1 });
    assert_eq!(bad.await, Err::<(), _>(JoinError::Panicked));
    assert_eq!(good.await, Ok(1));
}

pub(crate) async fn abort_drops_the_future(handle: Handle) {
    let token = Rc::new(());
    let held = Rc::clone(&token);
    let task = handle.spawn(async move {
        std::future::pending::<()>().await;
        drop(held);
    });
    handle.yield_now().await;
    task.abort();
    assert_eq!(Rc::strong_count(&token), 1);
    assert_eq!(task.await, Err(JoinError::Aborted));
}

pub(crate) async fn blocking_runs_elsewhere(handle: Handle) {
    let here = std::thread::current().id();
    let jobs: Vec<_> = (0..2000_u64)
        .map(|number| {
            let caller = handle.clone();
            handle.spawn(async move {
                caller
                    .blocking(move || (number, std::thread::current().id()))
                    .await
            })
        })
        .collect();
    for (number, job) in jobs.into_iter().enumerate() {
        let (answer, thread) = job.await.expect("a job ends");
        assert_eq!(answer, number as u64);
        assert_ne!(thread, here);
    }
}

pub(crate) async fn blocking_panics_continue_here(handle: Handle) {
    let caller = handle.clone();
    let task = handle.spawn(async move { caller.blocking(|| panic!("on purpose")).await });
    assert_eq!(task.await, Err::<(), _>(JoinError::Panicked));
    assert_eq!(handle.blocking(|| 3).await, 3);
}
