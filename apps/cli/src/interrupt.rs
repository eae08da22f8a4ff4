//! Ctrl-C while files are on their way: the first ends the work in an orderly way, so that what was
//! transferred can be continued; the second ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// Whether somebody wants the work to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn catch() -> io::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the signal that raises the flag does not yet find it raised.
            let exit = i32::from(Exit::Interrupted as u8);
            flag::register_conditional_shutdown(signal, exit, Arc::clone(&raised))?;
            flag::register(signal, Arc::clone(&raised))?;
        }
        Ok(Self(raised))
    }

    /// Whether it was raised.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
