//! Logs the reports of the core: logins, and refusals with their reasons.

use std::rc::Rc;

use proto::audit::Event;
use proto::login::{Account, AccountKind};
use proto::report::{AccessDenied, LoginRefusal, NeededAccess, Report, ShareRefusal};
use tracing::{Level, enabled, info, warn};
use vfs::{Denial, DescriptorDenial, FileSystem};

use super::{Connection, State};
use crate::audit::{Client, Record};
use crate::codes::{Reason as _, RefusedAccess};
use crate::counters::{RefusedLogin, RefusedShare};
use crate::log::UNLIMITED;
use crate::rights::right_names;
use crate::{status, unix_account};

impl Connection {
    /// Logs a report.
    pub(super) fn report(self: &Rc<Self>, state: &mut State, report: Report) {
        let (peer, transport) = (self.peer(), self.context.transport);
        let counters = &self.context.worker.counters;
        match report {
            Report::LoggedIn(account) => self.note_login(state, &account),
            Report::LoginRefused(Account { name, kind, .. }, reason) => {
                let refused = RefusedLogin::from(reason);
                counters.count_refused_login(refused);
                let (code, key) = (refused.code(), key_of_login(reason));
                warn!(%peer, %transport, user = name, ?kind, %reason, code, key, "login refused");
            }
            Report::ShareRefused(Account { name, kind, .. }, share, reason) => {
                let refused = RefusedShare::from(reason);
                counters.count_refused_share(refused);
                let (code, key) = (refused.code(), key_of_share(reason));
                let user = name;
                info!(
                    %peer, %transport, user, ?kind, share, %reason, code, key, "share refused"
                );
            }
            Report::AccessDenied(denied) => {
                counters.access_denied.add(1);
                self.explain(denied);
            }
        }
    }

    /// Writes an event to the audit log.
    pub(super) fn audit(&self, event: &Event) {
        let client = Client {
            peer: self.peer(),
            transport: self.context.transport,
        };
        let audit = &self.context.worker.shared.audit;
        audit.write(|| Record::of_event(event, Some(client)));
    }

    /// Lifts the limits for connections without a login, and logs the login.
    fn note_login(&self, state: &mut State, account: &Account) {
        state.permit.log_in(account.kind == AccountKind::Named);
        self.context.stream.trust();
        self.context.worker.counters.logins.add(1);
        self.context.charge(account);
        let (peer, transport) = (self.peer(), self.context.transport);
        let (user, kind) = (&account.name, account.kind);
        let app_password = account
            .app_password
            .as_ref()
            .map(|password| &*password.name);
        if kind == AccountKind::Named {
            info!(name: UNLIMITED, %peer, %transport, %user, ?kind, app_password, "logged in");
        } else {
            info!(%peer, %transport, %user, ?kind, "logged in");
        }
    }

    /// Logs a denied access with the permissions that refuse it. A thread looks for them, one at a
    /// time for each connection: further denials are not logged meanwhile.
    fn explain(self: &Rc<Self>, denied: AccessDenied) {
        if !enabled!(Level::INFO) || self.explains_denial.replace(true) {
            return;
        }
        let worker = &self.context.worker;
        let file_system = worker.file_system(denied.share);
        let share = worker.live().shares.name(denied.share).to_owned();
        let connection = Rc::clone(self);
        self.handle().spawn(async move {
            let explanation = move || Explanation::find(&*file_system, denied, share);
            let handle = connection.handle();
            let source = connection.context.source.get();
            let explanation = handle.blocking_for(source, explanation).await;
            connection.explains_denial.set(false);
            if let Some(explanation) = explanation {
                explanation.log(&connection);
            }
        });
    }
}

/// A denied access in words.
struct Explanation {
    user: String,
    /// Unix account of the operation, as `name(uid)`.
    unix: String,
    share: String,
    /// The path of the access.
    path: String,
    /// The needed access.
    access: String,
    /// The path with the permissions that refuse it.
    denied_by: String,
    /// The kind of the permission.
    refused: RefusedAccess,
    /// The missing permission.
    missing: String,
    /// The rights that the descriptor refuses, and the entry that denies them; empty if it refuses
    /// none.
    descriptor: String,
    /// Permissions in octal digits.
    mode: String,
    /// Owner and group, as `user:group`.
    owner: String,
}

impl Explanation {
    /// Looks for the permissions. Blocks.
    fn find(file_system: &dyn FileSystem, denied: AccessDenied, share: String) -> Option<Self> {
        let AccessDenied {
            account,
            token,
            share: _,
            needs,
        } = denied;
        let denial = file_system.find_denial(&token, &needs)?;
        let Denial {
            path,
            missing,
            by_descriptor,
            mode,
            uid,
            gid,
        } = denial;
        let accesses: Vec<String> = needs
            .iter()
            .map(|(_, access)| access_name(*access))
            .collect();
        let token = vfs::identity::effective(&token);
        Some(Self {
            user: account.name,
            unix: format!("{}({})", user_name(token.uid), token.uid),
            share,
            path: shown(needs.first()?.0.as_str()),
            access: accesses.join(","),
            denied_by: shown(path.as_str()),
            refused: match (missing, &by_descriptor) {
                (Some(_), _) => RefusedAccess::Unix,
                (None, Some(_)) => RefusedAccess::Descriptor,
                (None, None) => RefusedAccess::Other,
            },
            missing: match (missing, &by_descriptor) {
                (Some(missing), _) => missing.to_string(),
                (None, Some(_)) => "descriptor".to_owned(),
                (None, None) => "none".to_owned(),
            },
            descriptor: by_descriptor.map(refusal).unwrap_or_default(),
            mode: format!("{:04o}", mode & 0o7777),
            owner: format!("{}:{}", user_name(uid), group_name(gid)),
        })
    }

    fn log(&self, connection: &Connection) {
        let (peer, transport) = (connection.peer(), connection.context.transport);
        let Self {
            user,
            unix,
            share,
            path,
            access,
            denied_by,
            refused,
            missing,
            descriptor,
            mode,
            owner,
        } = self;
        let descriptor = (!descriptor.is_empty()).then_some(descriptor);
        let code = refused.code();
        info!(
            %peer, %transport, user, unix, share, path, access, denied_by, missing, descriptor,
            mode, owner, code, "access denied"
        );
    }
}

/// The refusal of a descriptor in words.
pub(crate) fn refusal(denial: DescriptorDenial) -> String {
    let DescriptorDenial { rights, entry } = denial;
    let named = right_names(rights);
    let named = match named.is_empty() {
        true => format!("{:#x}", rights.0),
        false => named.join(","),
    };
    match entry {
        Some((number, sid)) => format!("{named}: entry {number} denies {sid}"),
        None => format!("{named}: no entry allows it"),
    }
}

/// A path from the root of a share.
fn shown(path: &str) -> String {
    format!("/{path}")
}

fn access_name(access: NeededAccess) -> String {
    match access {
        NeededAccess::Open(access) => match status::access_names(access) {
            names if names.is_empty() => "attributes".to_owned(),
            names => names.join(","),
        },
        NeededAccess::Add => "add".to_owned(),
        NeededAccess::Remove => "remove".to_owned(),
    }
}

fn user_name(uid: u32) -> String {
    unix_account::account_name(uid).unwrap_or_else(|| uid.to_string())
}

fn group_name(gid: u32) -> String {
    unix_account::group_name(gid).unwrap_or_else(|| gid.to_string())
}

/// The key of the configuration that causes a refusal.
fn key_of_login(refusal: LoginRefusal) -> Option<&'static str> {
    match refusal {
        LoginRefusal::GuestCannotSign => Some("security.signing_required"),
        LoginRefusal::GuestCannotEncrypt | LoginRefusal::ClientCannotEncrypt => {
            Some("security.encryption_required")
        }
        LoginRefusal::AccountChanged | LoginRefusal::Unusable(_) => None,
    }
}

/// The same for a share.
fn key_of_share(refusal: ShareRefusal) -> Option<&'static str> {
    match refusal {
        ShareRefusal::NotListed => Some("share.valid_users"),
        ShareRefusal::InvalidUser => Some("share.invalid_users"),
        ShareRefusal::NoGuests => Some("share.guest"),
        ShareRefusal::Host => Some("share.hosts_deny"),
        // The file of users restricts the password.
        ShareRefusal::AppPassword => None,
        ShareRefusal::CannotEncrypt => Some("share.encryption_required"),
    }
}
