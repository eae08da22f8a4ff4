//! Relative paths of a configuration file start at the directory of the file.

use std::path::{Path, PathBuf};

use super::{AuditTarget, Config, ShareSection};

/// The directory of a configuration file, as an absolute path. Links in the path stay.
pub(super) fn directory_of(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().unwrap_or(Path::new("/")).to_owned()
}

impl Config {
    /// Makes all paths absolute. They are relative to the directory of `file`.
    pub(super) fn resolve(&mut self, file: &Path) {
        let directory = directory_of(file);
        let resolve = |path: &mut PathBuf| *path = directory.join(&*path);
        let Self {
            server,
            quic,
            rdma,
            audit,
            metrics,
            shares,
            ..
        } = self;
        server.users.as_mut().map(resolve);
        server.sid_map.as_mut().map(resolve);
        server.state_directory.as_mut().map(resolve);
        // An empty path disables the socket.
        let socket = server.control_socket.as_mut();
        socket
            .filter(|path| !path.as_os_str().is_empty())
            .map(resolve);
        for path in [&mut quic.certificate, &mut quic.key, &mut quic.client_ca] {
            path.as_mut().map(toml::Spanned::get_mut).map(resolve);
        }
        quic.state_directory.as_mut().map(resolve);
        rdma.directory.as_mut().map(resolve);
        if let Some(AuditTarget::File(path)) = audit.target.as_mut().map(toml::Spanned::get_mut) {
            resolve(path);
        }
        let token = metrics.token_file.as_mut();
        token.map(toml::Spanned::get_mut).map(resolve);
        for ShareSection { path, .. } in shares {
            resolve(path.get_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_directory_of_the_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("data")).expect("a directory");
        std::fs::write(path("cert.pem"), "").expect("a file");
        let text = "[server]\nusers = \"users.toml\"\ncontrol_socket = \"run/sock\"\n\
            sid_map = \"sids\"\nstate_directory = \"kept\"\n\
            [quic]\ncertificate = \"cert.pem\"\nkey = \"./cert.pem\"\nclient_ca = \"cert.pem\"\n\
            state_directory = \"state\"\n\
            [metrics]\ntoken_file = \"token\"\n\
            [rdma]\nprovider = \"emulated\"\ndirectory = \"rdma\"\n\
            [[share]]\nname = \"data\"\npath = \"data\"\n\
            [[share]]\nname = \"root\"\npath = \"/\"\n";
        std::fs::write(path("smbeam.toml"), text).expect("a file");
        let config = Config::load(&path("smbeam.toml")).expect("a good file");
        let Config {
            server,
            quic,
            rdma,
            metrics,
            shares,
            ..
        } = config;
        assert_eq!(server.users, Some(path("users.toml")));
        assert_eq!(server.control_socket, Some(path("run/sock")));
        assert_eq!(server.sid_map, Some(path("sids")));
        assert_eq!(server.state_directory, Some(path("kept")));
        assert_eq!(quic.certificate.expect("set").get_ref(), &path("cert.pem"));
        assert_eq!(quic.key.expect("set").get_ref(), &path("./cert.pem"));
        assert_eq!(quic.client_ca.expect("set").get_ref(), &path("cert.pem"));
        assert_eq!(quic.state_directory, Some(path("state")));
        assert_eq!(rdma.directory, Some(path("rdma")));
        let token = metrics.token_file.expect("set");
        assert_eq!(token.get_ref(), &path("token"));
        assert_eq!(shares[0].path.get_ref(), &path("data"));
        assert_eq!(shares[1].path.get_ref(), Path::new("/"));
    }

    #[test]
    fn the_directory_of_a_file_is_absolute() {
        let current = std::env::current_dir().expect("a directory");
        assert_eq!(directory_of(Path::new("smbeam.toml")), current);
        assert_eq!(directory_of(Path::new("a/b.toml")), current.join("a"));
        assert_eq!(
            directory_of(Path::new("/etc/smbeam.toml")),
            Path::new("/etc")
        );
    }
}
