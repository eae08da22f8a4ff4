//! Handling of Ctrl-C and SIGTERM during a transfer. The first signal ends the transfer in an
//! orderly way, so that it can be resumed. The second signal ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// A flag that the first signal sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the signal handlers.
    pub(crate) fn catch() -> io::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal must not find the flag set by itself.
            let exit = i32::from(Exit::Interrupted as u8);
            flag::register_conditional_shutdown(signal, exit, Arc::clone(&raised))?;
            flag::register(signal, Arc::clone(&raised))?;
        }
        Ok(Self(raised))
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
