//! The description of a share: the data with which a process connects to it. The connection itself
//! belongs to the process (`sessions.rs`).

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smbeam_client::{Credentials, Options, Url};
use smbeam_profile::{ConnectOptions, Location, Login, PASSWORD_VARIABLE, Resolved, SessionKey};
use zeroize::Zeroizing;

use crate::error::make;

/// A share and the login for it.
pub(crate) struct Target {
    /// The share; the path is not used.
    pub(crate) url: Url,
    pub(crate) options: Options,
    pub(crate) credentials: Credentials,
    /// The key of the session.
    pub(crate) key: TargetKey,
    /// Whether this process, or the one that it is a child of, has connected.
    pub(crate) was_connected: AtomicBool,
}

/// Two targets with equal keys use one session.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TargetKey {
    server: SessionKey,
    user: Option<String>,
    domain: Option<String>,
    password: Option<Zeroizing<String>>,
    /// The options of the remote and of the caller: equal ones share a client.
    pub(crate) options: OptionTexts,
}

/// Options as texts.
pub(crate) type OptionTexts = (Vec<String>, Vec<(String, String)>);

impl Hash for TargetKey {
    /// The password is compared only.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.server, &self.user, &self.domain, &self.options).hash(state);
    }
}

impl Target {
    /// Time for which connecting is tried again: that of a lost connection, if there was one.
    pub(crate) fn connect_limit(&self) -> Duration {
        match self.was_connected.load(Ordering::Relaxed) {
            true => self.options.reconnect_timeout,
            false => Duration::ZERO,
        }
    }

    pub(crate) fn share_name(&self) -> &str {
        self.url.share.as_deref().unwrap_or_default()
    }
}

/// Makes the description of a server, or of a share of it. Arguments that are missing come from the
/// files and variables of the user, as for the command `smbeam`.
pub(crate) fn describe(
    text: &str,
    login: Login,
    options: Vec<(String, String)>,
) -> PyResult<Target> {
    let invalid = |error: String| PyValueError::new_err(error);
    let location = Location::parse(text).map_err(|error| invalid(error.to_string()))?;
    let mut wanted = ConnectOptions::default();
    wanted
        .set_arguments(&location.options)
        .map_err(|error| invalid(error.to_string()))?;
    for (name, value) in &options {
        let set = wanted.set(name, value);
        set.map_err(|error| invalid(error.to_string()))?;
    }
    let key = TargetKey {
        server: SessionKey::of(&location.url),
        user: login.user.clone(),
        domain: login.domain.clone(),
        password: login.password.clone().map(Zeroizing::new),
        options: (location.options.clone(), options),
    };
    wanted.login.user = login.user.or(wanted.login.user);
    wanted.login.domain = login.domain.or(wanted.login.domain);
    wanted.login.password = login.password;
    let resolved = wanted.login.resolve(&location);
    let credentials = match resolved.map_err(|error| no_login(&error.to_string()))? {
        Resolved::Credentials(credentials) => credentials,
        Resolved::NeedsPassword(wanted) => {
            return Err(no_login(&format!(
                "no password for {} at {}: pass password=, or use {PASSWORD_VARIABLE} or a \
                 credentials file",
                wanted.user, wanted.host
            )));
        }
    };
    Ok(Target {
        url: location.url,
        options: wanted.build().map_err(|error| invalid(error.to_string()))?,
        credentials,
        key,
        was_connected: AtomicBool::new(false),
    })
}

/// The exception for a login that no source describes.
fn no_login(message: &str) -> PyErr {
    Python::attach(|py| {
        make(
            py,
            ("login_failed", libc::EACCES, message, None, None, None),
        )
        .map_or_else(|error| error, PyErr::from_value)
    })
}
