//! Runs other programs, with hidden output that errors show.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Number of lines of output in the error of a failed program.
const LINES_SHOWN: usize = 25;

/// Runs `command` with hidden output. The error shows the last lines of the output.
pub(crate) fn quiet(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{name}`"))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n    ");
    bail!("`{name}` ended with {}:\n    {shown}", output.status)
}

/// Runs the command that `command` builds until it succeeds, at most `attempts` times.
pub(crate) fn retried(
    attempts: u32,
    mut command: impl FnMut() -> Result<Command>,
) -> Result<String> {
    let mut attempt = 1;
    loop {
        match quiet(&mut command()?) {
            Ok(output) => return Ok(output),
            Err(error) if attempt == attempts => return Err(error),
            Err(error) => println!("lab: attempt {attempt} of {attempts} failed: {error:#}"),
        }
        attempt += 1;
    }
}

/// An error as one line.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `program` exists and succeeds with `argument`.
pub(crate) fn works(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
