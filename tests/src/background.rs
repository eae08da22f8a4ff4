//! Background processes that end with the value that owns them.

use std::io;
use std::process::{Child, Command};

/// A process that is killed when this value is dropped, also after a failure of the test.
#[derive(Debug)]
pub struct Background(pub Child);

impl Background {
    /// Starts it.
    pub fn start(command: &mut Command) -> io::Result<Background> {
        command.spawn().map(Background)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
