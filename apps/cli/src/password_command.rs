//! Passwords that a command of the user prints, as those of password managers.

use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};
use crate::input;

/// Maximum length of the password that a command prints, in bytes.
const MAX_PASSWORD_BYTES: usize = 4096;

/// Runs a command by the shell and returns the first line that it prints. Its standard error, and
/// its terminal for a question, are those of this process.
pub(crate) fn password_of_command(command: &str) -> Outcome<String> {
    let failed = |error| Failure::local("password_command", &error);
    let mut shell = Command::new("/bin/sh")
        .args(["-c", command])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let output = shell.stdout.take();
    let line = output.map_or_else(
        || Ok(String::new()),
        |output| input::line(output, MAX_PASSWORD_BYTES),
    );
    let status = shell.wait().map_err(failed)?;
    if !status.success() {
        let reason = format!("the command fails ({status}): {command}");
        return Err(Failure::usage("password_command", reason));
    }
    line.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_the_password() {
        let password = password_of_command("printf 'se cret\\nmore\\n'").expect("a password");
        assert_eq!(password, "se cret");
        let failure = password_of_command("echo x; exit 3").expect_err("it fails");
        assert!(failure.reason.contains("exit 3"), "{failure}");
    }
}
