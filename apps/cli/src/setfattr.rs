//! `smbeam setfattr`: sets and removes extended attributes.

use clap::Args;
use smbeam_client::{ExtendedAttribute, Wait as _};

use crate::connect::{ConnectArguments, Connector};
use crate::failure::Outcome;
use crate::file_path::RemotePath;
use crate::location::Url;
use crate::report::Report;

/// Arguments of `smbeam setfattr`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Set the attribute with this name. `user.` at its start is ignored: servers have one class.
    #[arg(short, long, value_name = "NAME", requires = "value")]
    name: Option<String>,
    /// The value: text, or `0x` and hexadecimal digits. A server cannot store an empty one.
    #[arg(short = 'V', long, value_name = "VALUE", value_parser = parse_value)]
    value: Option<Value>,
    /// Remove the attribute with this name.
    #[arg(
        short = 'x',
        long,
        value_name = "NAME",
        conflicts_with = "name",
        required_unless_present = "name"
    )]
    remove: Option<String>,
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// The bytes of a value, which are not several values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value(Vec<u8>);

/// Runs `smbeam setfattr`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let attribute = arguments.attribute();
    for url in &arguments.urls {
        let path = connector.remote_path(url);
        report.take(path.and_then(|path| set(&path, &attribute)));
        if report.is_over() {
            break;
        }
    }
}

impl Arguments {
    /// The attribute to set; an empty value removes it.
    fn attribute(&self) -> ExtendedAttribute {
        let name = self.name.as_ref().or(self.remove.as_ref());
        let name = name.map_or("", |name| without_class(name));
        let value = self.value.as_ref().filter(|_| self.name.is_some());
        ExtendedAttribute::new(name, value.map_or(Vec::new(), |value| value.0.clone()))
    }
}

fn set(path: &RemotePath, attribute: &ExtendedAttribute) -> Outcome {
    let attributes = std::slice::from_ref(attribute);
    let set = path.share.set_extended_attributes(&path.path, attributes);
    set.wait().map_err(path.failed())
}

/// The name without the class "user" of Linux.
pub(crate) fn without_class(name: &str) -> &str {
    name.strip_prefix("user.").unwrap_or(name)
}

fn parse_value(text: &str) -> Result<Value, String> {
    let Some(digits) = text.strip_prefix("0x") else {
        return match text {
            "" => Err("the value is empty: give --remove to remove the attribute".into()),
            text => Ok(Value(text.as_bytes().to_vec())),
        };
    };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    match bytes {
        Some(bytes) if rest.is_empty() && !bytes.is_empty() => Ok(Value(bytes)),
        _ => Err("expected pairs of hexadecimal digits behind 0x".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_text_or_digits() {
        assert_eq!(parse_value("a b"), Ok(Value(b"a b".to_vec())));
        assert_eq!(parse_value("0x00fF"), Ok(Value(vec![0, 0xff])));
        for text in ["", "0x", "0x1", "0xgg"] {
            assert!(parse_value(text).is_err(), "{text}");
        }
        assert_eq!(without_class("user.comment"), "comment");
    }
}
