//! The functions of the module that make shares.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smbeam_client::{ShareKind, Url};
use smbeam_profile::Login;

use crate::pending::Pending;
use crate::sessions;
use crate::share::RawShare;
use crate::target::describe;

/// The arguments of a login.
#[derive(FromPyObject)]
pub(crate) struct Arguments(Option<String>, Option<String>, Option<String>);

impl From<Arguments> for Login {
    fn from(Arguments(user, password, domain): Arguments) -> Self {
        Self {
            user,
            password,
            domain,
            ..Self::default()
        }
    }
}

/// Makes the description of a share. `login` has user, password and domain. Returns it with the
/// path of the URL.
#[pyfunction]
pub(crate) fn share(
    url: &str,
    login: Arguments,
    options: Vec<(String, String)>,
) -> PyResult<(RawShare, String)> {
    let target = describe(url, login.into(), options)?;
    if target.url.share.is_none() {
        let why = format!("{} has no share: write smb://host/share", target.url);
        return Err(PyValueError::new_err(why));
    }
    let base = target.url.path.clone();
    let target = Arc::new(target);
    Ok((RawShare { target }, base))
}

/// Lists the names of the shares with files of a server.
#[pyfunction]
pub(crate) fn list_shares(
    url: &str,
    login: Arguments,
    options: Vec<(String, String)>,
) -> PyResult<Pending> {
    let target = Arc::new(describe(url, login.into(), options)?);
    let shares = async move { sessions::session(&target).await?.shares().await };
    Ok(Pending::new(shares, |py, shares| {
        let disks = shares
            .into_iter()
            .filter(|share| share.kind == ShareKind::DISKTREE);
        let names: Vec<_> = disks.map(|share| share.name).collect();
        Ok(names.into_pyobject(py)?.into_any().unbind())
    }))
}

/// The text of a URL with `***` in place of a password.
#[pyfunction]
pub(crate) fn without_password(url: &str) -> String {
    Url::without_password(url).into_owned()
}
