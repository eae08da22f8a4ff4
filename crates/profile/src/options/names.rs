//! The options by name.

use std::path::PathBuf;
use std::str::FromStr;

use super::{ConnectOptions, OptionError};
use crate::transports::{parse_channels, parse_transports};
use crate::values::{
    parse_busy_poll, parse_depth, parse_dialect, parse_io_size, parse_threshold, parse_timeout,
};

/// How an option changes.
enum Setter {
    /// By a value.
    Value(fn(&mut ConnectOptions, &str) -> Result<(), String>),
    /// On and off.
    Flag(fn(&mut ConnectOptions) -> &mut bool),
}

use Setter::{Flag, Value};

/// All options. The names are those of the command line, with `_` for `-`.
static OPTIONS: [(&str, Setter); 30] = [
    (
        "channels",
        Value(|o, text| put(&mut o.channels, parse_channels(text))),
    ),
    (
        "transports",
        Value(|o, text| put(&mut o.transports, parse_transports(text))),
    ),
    ("tcp", Value(|o, text| put(&mut o.tcp, parsed(text)))),
    ("quic", Value(|o, text| put(&mut o.quic, parsed(text)))),
    (
        "rdma",
        Value(|o, text| put(&mut o.rdma, parsed(text).map(Some))),
    ),
    ("sign", Flag(|o| &mut o.sign)),
    ("encrypt", Flag(|o| &mut o.encrypt)),
    ("transport_security", Flag(|o| &mut o.transport_security)),
    (
        "rdma_threshold",
        Value(|o, text| put(&mut o.rdma_threshold, parse_threshold(text))),
    ),
    (
        "rdma_busy_poll",
        Value(|o, text| put(&mut o.rdma_busy_poll, parse_busy_poll(text))),
    ),
    ("no_leases", Flag(|o| &mut o.no_leases)),
    ("no_durable", Flag(|o| &mut o.no_durable)),
    ("no_posix", Flag(|o| &mut o.no_posix)),
    (
        "dialect",
        Value(|o, text| put(&mut o.dialect, parse_dialect(text).map(Some))),
    ),
    (
        "max_protocol",
        Value(|o, text| put(&mut o.max_protocol, parse_dialect(text).map(Some))),
    ),
    (
        "io_size",
        Value(|o, text| put(&mut o.io_size, parse_io_size(text).map(Some))),
    ),
    (
        "depth",
        Value(|o, text| put(&mut o.depth, parse_depth(text).map(Some))),
    ),
    (
        "timeout",
        Value(|o, text| put(&mut o.timeout, parse_timeout(text))),
    ),
    (
        "ca_file",
        Value(|o, text| put(&mut o.certificates.ca_file, path(text))),
    ),
    (
        "pin_sha256",
        Value(|o, text| add(&mut o.certificates.pin_sha256, text)),
    ),
    ("insecure", Flag(|o| &mut o.certificates.insecure)),
    ("allow_address", Flag(|o| &mut o.certificates.allow_address)),
    (
        "client_cert",
        Value(|o, text| put(&mut o.certificates.client_cert, path(text))),
    ),
    (
        "client_key",
        Value(|o, text| put(&mut o.certificates.client_key, path(text))),
    ),
    (
        "user",
        Value(|o, text| put(&mut o.login.user, Ok(Some(text.to_owned())))),
    ),
    (
        "domain",
        Value(|o, text| put(&mut o.login.domain, Ok(Some(text.to_owned())))),
    ),
    (
        "password_file",
        Value(|o, text| put(&mut o.login.password_file, path(text))),
    ),
    (
        "credentials",
        Value(|o, text| put(&mut o.login.credentials_file, path(text))),
    ),
    ("anonymous", Flag(|o| &mut o.login.anonymous)),
    ("guest", Flag(|o| &mut o.login.guest)),
];

impl ConnectOptions {
    /// The names of all options, in the order of the help.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, _)| *name)
    }

    /// Sets an option by its name on the command line, with `_` or `-`. The value of a switch such
    /// as `encrypt` is `yes` or `no`; without a text it is on. `pin_sha256` adds a fingerprint, and
    /// all other options replace their value.
    ///
    /// # Errors
    /// No option has the name, or the value is not accepted.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let (name, setter) = find(name)?;
        let done = match setter {
            Value(set) => set(self, value),
            Flag(field) => put(field(self), parse_switch(value)),
        };
        done.map_err(|reason| OptionError::value(name, value, &reason))
    }
}

/// Whether the option is a switch, which needs no value.
pub(super) fn is_switch(name: &str) -> Result<bool, OptionError> {
    find(name).map(|(_, setter)| matches!(setter, Flag(_)))
}

fn find(name: &str) -> Result<&'static (&'static str, Setter), OptionError> {
    let own = match name.replace('-', "_") {
        older if older == "seal" => "encrypt".to_owned(),
        own => own,
    };
    let found = OPTIONS.iter().find(|(known, _)| *known == own);
    found.ok_or_else(|| OptionError::Unknown(name.to_owned()))
}

fn put<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

fn add<T: FromStr<Err: ToString>>(list: &mut Vec<T>, text: &str) -> Result<(), String> {
    list.push(parsed(text)?);
    Ok(())
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn path(text: &str) -> Result<Option<PathBuf>, String> {
    match text {
        "" => Err("expected the path of a file".to_owned()),
        _ => Ok(Some(text.into())),
    }
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "" | "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}
