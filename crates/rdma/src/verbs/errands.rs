//! Threads that make calls for others, because their credentials never change.
//!
//! The kernel takes what is written to the descriptors of RDMA-CM and of a device only from the
//! credentials that have opened them: the very same, not their like (`ib_safe_file_access`). The
//! threads of a server take on those of a session's user and come back with others that look the
//! same. So all calls that write are made here, and so are those that open: RDMA-CM's, and of
//! the fast path the posts to devices that are software, siw and rxe. Devices of hardware are
//! posted to without the kernel.

use std::io;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;

/// One of those threads; it lives as long as the process.
pub(super) struct Errands {
    sender: Sender<Errand>,
}

struct Errand(Box<dyn FnOnce()>);

// SAFETY: who gives an errand away waits until it is over (`Errands::run`), so nothing in it is
// used by two threads at one time; it holds pointers and libraries, nothing of one thread's own.
unsafe impl Send for Errand {}

impl Errands {
    /// Starts a thread with the credentials of the caller.
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let (sender, errands) = mpsc::channel::<Errand>();
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || errands.into_iter().for_each(|errand| (errand.0)()))?;
        Ok(Self { sender })
    }

    /// Runs `errand` there and waits for its result. An errno is to be taken in the errand.
    pub(super) fn run<'a, R: 'a>(&self, errand: impl FnOnce() -> R + 'a) -> R {
        let (sender, result): (SyncSender<R>, _) = mpsc::sync_channel(1);
        let errand: Box<dyn FnOnce() + 'a> = Box::new(move || {
            // The one who waits has not gone away.
            let _ = sender.send(errand());
        });
        // SAFETY: only the lifetime changes. `recv` below returns when the sender in the errand is
        // used or dropped, and nothing of the errand is used after that: it has run, or unwound.
        let errand = unsafe {
            std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce() + 'static>>(errand)
        };
        let is_alive = self.sender.send(Errand(errand)).is_ok();
        assert!(is_alive, "the thread ends with the process");
        result.recv().expect("an errand does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errands_run_elsewhere_one_after_the_other() {
        let errands = Errands::start("errands").expect("a thread");
        let mut places = Vec::new();
        for _ in 0..3 {
            errands.run(|| places.push(thread::current().id()));
        }
        assert_eq!(places[1..], [places[0]; 2]);
        assert_ne!(places[0], thread::current().id());
    }
}
