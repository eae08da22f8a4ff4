//! Checks of shares: existence, rules for users, directory.

use std::path::Path;
use std::sync::Arc;

use proto::report::ShareRefusal;
use wire::security::Sid;
use wire::upcase::is_same_name;

use super::account::User;
use super::check::Check;
use super::diagnosis::Diagnosis;
use super::examined::Entered;
use super::path::Place;
use super::question::Question;
use super::{path, permissions};
use crate::Accounts;
use crate::codes::{Reason as _, RefusedConfig};
use crate::config::{Config, ShareSection, share_users};
use crate::counters::RefusedShare;
use crate::share::Shares;

pub(super) fn examine(
    config: &Config,
    question: &Question,
    user: Option<&User>,
    checks: &mut Vec<Check>,
) {
    let chosen = match choose(config, question) {
        Ok(chosen) => chosen,
        Err(check) => return checks.push(check),
    };
    for (section, place) in chosen {
        let is_entered = user.is_none_or(|user| check_rule(section, user, checks));
        let has_directory = check_directory(section, checks);
        check_overlap(config, section, checks);
        let Some(user) = user.filter(|_| is_entered && has_directory) else {
            continue;
        };
        match enter(config, section, user) {
            Ok(entered) => {
                if let Some(found) = path::examine(&entered, &place, question, checks) {
                    permissions::examine(&entered, &found, question, checks);
                }
            }
            Err(check) => checks.push(check),
        }
    }
}

fn subject(section: &ShareSection) -> String {
    format!("share {}", section.name.get_ref())
}

/// The shares of the question, each with the place in it.
fn choose<'a>(
    config: &'a Config,
    question: &Question,
) -> Result<Vec<(&'a ShareSection, Place)>, Check> {
    let shares = config.shares.iter();
    if let Some(name) = &question.share {
        let mut shares = shares;
        let found = shares.find(|share| is_same_name(share.name.get_ref(), name));
        let section = found.ok_or_else(|| unknown(config, name))?;
        let place = match &question.path {
            Some(path) => Place::in_share(section, path).ok_or_else(|| outside(path))?,
            None => Place::root(),
        };
        return Ok(vec![(section, place)]);
    }
    let Some(path) = &question.path else {
        return Ok(shares.map(|section| (section, Place::root())).collect());
    };
    if path.is_relative() && config.shares.len() != 1 {
        let message = "several shares exist, and the path begins at the root of one of them";
        let check = Check::refused(path.display(), Diagnosis::ShareUnknown.code(), message);
        return Err(check.mended_by("name the share: --share NAME"));
    }
    let within = shares.filter_map(|section| Some((section, Place::in_share(section, path)?)));
    // The innermost share.
    let innermost = within.max_by_key(|(section, _)| section.path.get_ref().as_os_str().len());
    innermost
        .map(|found| vec![found])
        .ok_or_else(|| outside(path))
}

fn unknown(config: &Config, name: &str) -> Check {
    let names = config
        .shares
        .iter()
        .map(|share| share.name.get_ref().as_str());
    let message = format!(
        "no share has this name; the shares are: {}",
        names.collect::<Vec<_>>().join(", ")
    );
    let check = Check::refused(
        format!("share {name}"),
        Diagnosis::ShareUnknown.code(),
        message,
    );
    check.mended_by("correct the name, or add a section [[share]]")
}

fn outside(path: &Path) -> Check {
    let message = "the path is not below the directory of the share";
    let code = Diagnosis::PathOutside.code();
    let check = Check::refused(path.display(), code, message);
    check.mended_by("give a path from the root of the share, with --share NAME")
}

/// The rule of a share for users: the reason why it does not admit a user that has logged in.
/// Addresses of clients and app passwords have rules of their own.
fn rule(section: &ShareSection, user: &User) -> Option<ShareRefusal> {
    match user.is_guest {
        true if !section.guest => Some(ShareRefusal::NoGuests),
        true if section.encryption_required => Some(ShareRefusal::CannotEncrypt),
        true => None,
        false => share_users(section).admit(&user.account()).err(),
    }
}

/// Returns whether the share admits the user.
fn check_rule(section: &ShareSection, user: &User, checks: &mut Vec<Check>) -> bool {
    let name = &user.name;
    let Some(refusal) = rule(section, user) else {
        let encryption = match section.encryption_required {
            true => ", with encryption only (dialect 3.0 or later)",
            false => "",
        };
        let message = format!("admits {name}{encryption}");
        checks.push(Check::ok(subject(section), message));
        return true;
    };
    let remedy = match refusal {
        ShareRefusal::NotListed => {
            format!("add \"{name}\" to valid_users of the share; smbeam reload")
        }
        ShareRefusal::InvalidUser => {
            format!("remove \"{name}\" or its group from invalid_users of the share; smbeam reload")
        }
        ShareRefusal::NoGuests => "log in with a password, or set guest = true".to_owned(),
        ShareRefusal::CannotEncrypt | ShareRefusal::AppPassword => {
            "log in with a password".to_owned()
        }
        ShareRefusal::Host => "add the address to hosts_allow of the share".to_owned(),
    };
    let code = RefusedShare::from(refusal).code();
    checks.push(Check::refused(subject(section), code, refusal).mended_by(remedy));
    false
}

/// Returns whether the share has its directory.
fn check_directory(section: &ShareSection, checks: &mut Vec<Check>) -> bool {
    let path = section.path.get_ref();
    let shown = path.display();
    let found = std::fs::metadata(path);
    let (message, remedy) = match &found {
        Ok(metadata) if metadata.is_dir() => {
            let is_read_only = if section.read_only { ", read-only" } else { "" };
            let message = format!("directory {shown}{is_read_only}");
            checks.push(Check::ok(subject(section), message));
            return true;
        }
        Ok(_) => (
            format!("{shown} is not a directory"),
            "correct path of the share".to_owned(),
        ),
        Err(error) => (
            format!("{shown}: {error}"),
            format!("mkdir {shown}, or mount its file system, or correct path of the share"),
        ),
    };
    let code = RefusedConfig::ShareDirectory.code();
    checks.push(Check::refused(subject(section), code, message).mended_by(remedy));
    false
}

/// Other shares with the same files have other rules for them.
fn check_overlap(config: &Config, section: &ShareSection, checks: &mut Vec<Check>) {
    let real = |section: &ShareSection| section.path.get_ref().canonicalize().ok();
    let Some(own) = real(section) else { return };
    let others = config
        .shares
        .iter()
        .filter(|other| other.name != section.name);
    for other in others {
        let Some(path) = real(other) else { continue };
        if path.starts_with(&own) || own.starts_with(&path) {
            let message = format!(
                "share {} has the same files under its own rules, and clients get no leases on \
                 directories",
                other.name.get_ref()
            );
            let code = Diagnosis::ShareOverlap.code();
            checks.push(Check::warning(subject(section), code, message));
        }
    }
}

/// Opens the file system of a share as the server does.
fn enter<'a>(
    config: &Config,
    section: &'a ShareSection,
    user: &'a User,
) -> Result<Entered<'a>, Check> {
    let refused =
        |code, error: &dyn std::fmt::Display| Check::refused(subject(section), code, error);
    let accounts = Accounts::from_config(config)
        .map_err(|error| refused(RefusedConfig::Users.code(), &error))?;
    // The doctor makes no file: any SID of the server will do.
    let sids = accounts
        .sids_with(config, Sid::NULL)
        .map_err(|error| refused(RefusedConfig::SidMap.code(), &error))?;
    let known: Arc<dyn vfs::accounts::Accounts> = Arc::new(sids);
    let opened = Shares::open(std::slice::from_ref(section), &known)
        .map_err(|error| refused(error.code(), &error))?;
    let file_system = opened
        .shares
        .current()
        .next()
        .map(|(_, found)| Arc::clone(found));
    let forced = opened
        .known
        .last()
        .and_then(|share| share.force_token.clone());
    Ok(Entered {
        section,
        file_system: file_system.expect("the share was opened"),
        token: forced.unwrap_or_else(|| Arc::clone(&user.token)),
        user,
    })
}
