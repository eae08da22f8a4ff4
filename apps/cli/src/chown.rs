//! `smbeam chown`: changes the owner and the group of files.

use std::str::FromStr;

use clap::Args;

use crate::acl::walk;
use crate::connect::ConnectArguments;
use crate::location::Url;
use crate::report::Report;
use crate::unix::{Ways, change_owner};

/// Arguments of `smbeam chown`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The owner, the group or both: USER, USER:GROUP or :GROUP. Each is a number, or a name of
    /// this machine.
    #[arg(value_name = "USER[:GROUP]")]
    owner: Owner,
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Change everything in directories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// An owner and a group, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    uid: Option<u32>,
    gid: Option<u32>,
}

/// Runs `smbeam chown`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let ways = Ways::default();
    let Owner { uid, gid } = arguments.owner;
    let Arguments { urls, connect, .. } = arguments;
    walk::trees(urls, connect, arguments.recursive, report, &|path, _| {
        ways.add(change_owner(path, uid, gid)?);
        Ok(())
    });
    ways.report(report, "owner");
}

impl FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (user, group) = text.split_once(':').unwrap_or((text, ""));
        let (uid, gid) = (number(user, user_id)?, number(group, group_id)?);
        match uid.is_some() || gid.is_some() {
            true => Ok(Self { uid, gid }),
            false => Err("expected USER, USER:GROUP or :GROUP".into()),
        }
    }
}

/// The number of an account; `None` for the empty text.
fn number(text: &str, of_name: fn(&str) -> Option<u32>) -> Result<Option<u32>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().or_else(|| of_name(text));
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(format!(
            "this machine has no account `{text}`: give its number"
        )),
    }
}

fn user_id(name: &str) -> Option<u32> {
    Some(uzers::get_user_by_name(name)?.uid())
}

fn group_id(name: &str) -> Option<u32> {
    Some(uzers::get_group_by_name(name)?.gid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_numbers_or_names() {
        let owner = |text: &str| text.parse::<Owner>().map(|owner| (owner.uid, owner.gid));
        assert_eq!(owner("1000"), Ok((Some(1000), None)));
        assert_eq!(owner("1000:100"), Ok((Some(1000), Some(100))));
        assert_eq!(owner(":100"), Ok((None, Some(100))));
        assert_eq!(owner("root:root"), Ok((Some(0), Some(0))));
        assert!(owner("").is_err() && owner(":").is_err());
        assert!(owner("no such account").is_err());
    }
}
