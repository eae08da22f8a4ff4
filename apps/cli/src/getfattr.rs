//! `smbeam getfattr`: shows extended attributes.

use clap::Args;
use serde::Serialize;
use smbeam_client::{ExtendedAttribute, Wait as _};

use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::RemotePath;
use crate::location::Url;
use crate::output;
use crate::report::Report;
use crate::setfattr::without_class;

/// Arguments of `smbeam getfattr`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Show only the attribute with this name. `user.` at its start is ignored.
    #[arg(short, long, value_name = "NAME")]
    name: Option<String>,
    /// Print one object of JSON per attribute.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// An attribute in JSON.
#[derive(Serialize)]
struct Line {
    path: String,
    name: String,
    /// The value as text, or `0x` and hexadecimal digits.
    value: String,
}

/// Runs `smbeam getfattr`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        let path = connector.remote_path(url);
        report.take(path.and_then(|path| arguments.show(&path)));
        if report.is_over() {
            break;
        }
    }
}

impl Arguments {
    fn show(&self, path: &RemotePath) -> Outcome {
        let attributes = path.share.extended_attributes(&path.path).wait();
        let mut attributes = attributes.map_err(path.failed())?;
        if let Some(name) = self.name.as_deref().map(without_class) {
            attributes.retain(|found| found.name.eq_ignore_ascii_case(name.as_bytes()));
            if attributes.is_empty() {
                let reason = format!("the file has no extended attribute {name}");
                return Err(Failure::new(Exit::NotFound, path, reason));
            }
        }
        if !self.json && !attributes.is_empty() {
            output::line(&format_args!("# file: {path}"));
        }
        for attribute in &attributes {
            self.print(path, attribute);
        }
        Ok(())
    }

    fn print(&self, path: &RemotePath, attribute: &ExtendedAttribute) {
        let name = attribute.name.escape_ascii().to_string();
        if self.json {
            let path = path.to_string();
            let value = shown(&attribute.value);
            return output::line(&json(&Line { path, name, value }));
        }
        match text_of(&attribute.value) {
            Some(text) => output::line(&format_args!("{name}={text:?}")),
            None => output::line(&format_args!("{name}={}", shown(&attribute.value))),
        }
    }
}

/// The value as text, if it is text that a terminal shows and that is not read as another form.
fn text_of(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let is_shown = !text.chars().any(char::is_control) && !text.starts_with("0x");
    is_shown.then_some(text)
}

/// The value as text, or in hexadecimal digits.
fn shown(value: &[u8]) -> String {
    match text_of(value) {
        Some(text) => text.to_owned(),
        None => {
            let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{digits}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_or_digits() {
        assert_eq!(shown(b"text"), "text");
        assert_eq!(shown(b"\0\xff"), "0x00ff");
        assert_eq!(shown(b"0x1"), "0x307831");
    }
}
