//! The key of a session: URLs with the same key share a session.

use smbeam_client::Url;

/// Server and user of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    host: String,
    port: Option<u16>,
    domain: Option<String>,
    user: Option<String>,
}

impl SessionKey {
    /// The key for the server and the user of a URL.
    pub fn of(url: &Url) -> Self {
        Self {
            host: url.host.to_lowercase(),
            port: url.port,
            domain: url.domain.clone(),
            user: url.user.clone(),
        }
    }
}

/// Whether two URLs share a session.
pub fn is_one_session(one: &Url, other: &Url) -> bool {
    SessionKey::of(one) == SessionKey::of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_serves_one_user_of_one_server() {
        let url = |text: &str| text.parse::<Url>().expect("a URL");
        assert!(is_one_session(
            &url("smb://a@NAS/x"),
            &url("smb://a@nas/y/z")
        ));
        assert!(!is_one_session(
            &url("smb://a@nas/x"),
            &url("smb://b@nas/x")
        ));
        assert!(!is_one_session(
            &url("smb://nas:4455/x"),
            &url("smb://nas/x")
        ));
    }
}
