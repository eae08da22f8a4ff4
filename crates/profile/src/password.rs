//! Passwords from files, and from commands of the user such as those of password managers.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use crate::error::Error;
use crate::input;
use crate::location::PasswordSource;

/// Maximum length of a password in a file or in the output of a command, in bytes.
const MAX_PASSWORD_BYTES: usize = 4096;

/// Maximum length of the further output of a command in bytes.
const MAX_REST_BYTES: u64 = 1 << 20;

pub(crate) fn password_of(source: &PasswordSource) -> Result<String, Error> {
    match source {
        PasswordSource::File(path) => password_of_file(path),
        PasswordSource::Command(command) => password_of_command(command),
    }
}

/// Reads the first line of a file. `-` is standard input.
pub(crate) fn password_of_file(path: &Path) -> Result<String, Error> {
    let file = match path.as_os_str() == "-" {
        // The rest of standard input can be the data of an upload, so it must not be buffered.
        true => input::open(),
        false => File::open(path),
    };
    let line = file.and_then(|file| input::line(file, MAX_PASSWORD_BYTES));
    line.map_err(|error| Error::PasswordFile {
        path: path.to_owned(),
        error,
    })
}

/// Runs a command by the shell and returns the first line that it prints. Its standard error, and
/// its terminal for a question, are those of this process.
fn password_of_command(command: &str) -> Result<String, Error> {
    let failed = |error: io::Error| Error::Command {
        command: command.to_owned(),
        error,
    };
    let mut shell = Command::new("/bin/sh")
        .args(["-c", command])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let output = shell.stdout.take();
    let line = output.map_or_else(|| Ok(String::new()), first_line);
    let status = shell.wait().map_err(failed)?;
    if !status.success() {
        return Err(Error::CommandFailed {
            command: command.to_owned(),
            status,
        });
    }
    line.map_err(failed)
}

/// The first line of the output. The rest is read as well, up to a limit: a command that writes to
/// a closed pipe would be ended by a signal.
fn first_line(mut output: ChildStdout) -> io::Result<String> {
    let line = input::line(&mut output, MAX_PASSWORD_BYTES)?;
    io::copy(&mut output.take(MAX_REST_BYTES), &mut io::sink())?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line_of_its_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("p");
        std::fs::write(&path, "se cret \nmore\n").expect("a file");
        assert_eq!(password_of_file(&path).expect("a password"), "se cret ");
        let missing = password_of_file(&directory.path().join("q")).expect_err("no file");
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        assert!(
            matches!(&missing, Error::PasswordFile { error, .. } if is_missing(error)),
            "{missing}"
        );
    }

    #[test]
    fn a_command_prints_the_password() {
        let password = password_of_command("printf 'se cret\\nmore\\n'").expect("a password");
        assert_eq!(password, "se cret");
        let later = "echo first; sleep 0.1; echo second";
        assert_eq!(password_of_command(later).expect("a password"), "first");
        let error = password_of_command("echo x; exit 3").expect_err("it fails");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
