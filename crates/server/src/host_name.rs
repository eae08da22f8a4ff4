//! The name of this host.

/// The host's name from uname(2), for a configuration without `server.name`. `smbeam` if the host
/// has no name.
pub(crate) fn host_name() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    if name.is_empty() {
        "smbeam".to_owned()
    } else {
        name
    }
}
