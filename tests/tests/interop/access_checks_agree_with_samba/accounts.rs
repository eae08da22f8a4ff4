//! The users and groups of the test.

use anyhow::{Context as _, Result};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, BOB, User};

/// The group of all files: that of alice.
pub(super) const GROUP_OF_FILES: u32 = ALICE.id;
/// Groups of more users: name, number and members.
const GROUPS: [(&str, u32, &str); 3] = [
    ("crew", 3001, "carol,dave,heidi"),
    ("band", 3002, "dave,erin"),
    // Another name of the group of the files: it has members.
    ("alices", GROUP_OF_FILES, "grace,heidi"),
];

/// An account of the test.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) user: User,
    /// The primary group; none: the lab has the account.
    group: Option<u32>,
}

/// The accounts: the usual owner, users of no group, of one and of several, and of the group of the
/// files as the primary one and as another one; root, and a guest.
pub(super) const ACCOUNTS: [Account; 12] = [
    known(ALICE),
    known(BOB),
    account("carol", 2003, 100),
    account("dave", 2004, 100),
    account("erin", 2005, 100),
    account("frank", 2006, 3001),
    account("grace", 2007, 100),
    account("heidi", 2008, 100),
    account("ivan", 2009, GROUP_OF_FILES),
    account("judy", 2010, 100),
    known(User {
        name: "root",
        password: PASSWORD,
        id: 0,
    }),
    known(User {
        name: GUEST,
        password: PASSWORD,
        id: 65_534,
    }),
];
const PASSWORD: &str = "Access-11";
/// The name of guests, which has no account.
const GUEST: &str = "guest";

const fn known(user: User) -> Account {
    Account { user, group: None }
}

const fn account(name: &'static str, id: u32, group: u32) -> Account {
    Account {
        user: User {
            name,
            password: PASSWORD,
            id,
        },
        group: Some(group),
    }
}

/// The lab with the accounts.
pub(super) fn lab(scratch: &Scratch) -> Result<Lab> {
    let mut users = String::new();
    for Account { user, group } in &ACCOUNTS {
        if let Some(group) = group {
            users += &format!("{}:x:{}:{group}::/tmp:/bin/sh\n", user.name, user.id);
        }
    }
    let groups = GROUPS.map(|(name, id, members)| format!("{name}:x:{id}:{members}\n"));
    Ok(Lab::find()?.with_accounts(scratch.path(), &users, &groups.concat())?)
}

/// The users that the servers do not know anyway.
pub(super) fn users() -> Vec<User> {
    let users = ACCOUNTS.iter().map(|account| account.user);
    users
        .filter(|user| ![ALICE.name, BOB.name, GUEST].contains(&user.name))
        .collect()
}

/// The user with a name.
pub(super) fn user(name: &str) -> Result<User> {
    let mut users = ACCOUNTS.iter().map(|account| account.user);
    users
        .find(|user| user.name == name)
        .context("an account of that name")
}

/// The uid of a user.
pub(super) fn id_of(name: &str) -> u32 {
    user(name).expect("cases name accounts").id
}

/// SDDL with SIDs instead of `@user` and `%group`.
pub(super) fn with_sids(sddl: &str) -> String {
    let mut text = sddl.to_owned();
    for Account { user, .. } in &ACCOUNTS {
        text = text.replace(&format!("@{}", user.name), &format!("S-1-22-1-{}", user.id));
    }
    for (name, id, _) in GROUPS {
        text = text.replace(&format!("%{name}"), &format!("S-1-22-2-{id}"));
    }
    text
}
