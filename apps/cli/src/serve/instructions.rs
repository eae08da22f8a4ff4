//! The lines with which clients connect to a quick share. No line has the password as an argument,
//! because other users can read the arguments of a command.

use std::net::IpAddr;

use net::Transport;
use serde_json::json;
use smbeam_server::{Listening, Shown};

use super::quick::{QuickShare, USER};

/// Port of direct TCP, which clients use if no other is given.
const SMB_PORT: u16 = 445;
/// Port of QUIC, which clients use if no other is given.
const QUIC_PORT: u16 = 443;

/// The facts that clients need.
pub(super) struct Instructions<'a> {
    pub(super) share: &'a QuickShare,
    pub(super) listening: &'a [Listening],
    pub(super) certificate: Option<Shown>,
}

impl Instructions<'_> {
    /// The lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let QuickShare { name, password, .. } = self.share;
        let mut lines = vec![
            format!("Sharing {} as {name}", self.share.path().display()),
            format!("  user       {USER}"),
            format!("  password   {password}   (generated for this run; it is not shown again)"),
            format!("  URL        {}", self.url()),
        ];
        let of = |transport| (self.listening.iter()).find(move |on| on.transport == transport);
        let commands = [
            of(Transport::Tcp).map(|on| tcp(*on, name)),
            of(Transport::Nbt).map(|on| nbt(*on, name)),
            of(Transport::Quic).map(|on| quic(*on, name, self.certificate)),
            of(Transport::SmbDirect).map(|on| smb_direct(*on, name)),
        ];
        let commands = commands.into_iter().flatten().flatten();
        lines.extend(commands.map(|(client, command)| format!("  {client:<10} {command}")));
        lines.push("Each client asks for the password. Stop with Ctrl-C.".to_owned());
        lines
    }

    /// The facts as one JSON object.
    pub(super) fn json(&self) -> serde_json::Value {
        json!({
            "share": self.share.name,
            "path": self.share.path(),
            "user": USER,
            "password": self.share.password,
            "url": self.url(),
        })
    }

    /// The URL for smbeam. Most clients use TCP, so the URL has its port if it is available.
    fn url(&self) -> String {
        let is_tcp = |on: &&Listening| on.transport == Transport::Tcp;
        let first = self
            .listening
            .iter()
            .find(is_tcp)
            .or(self.listening.first());
        let name = &self.share.name;
        first.map_or_else(String::new, |on| match on.transport {
            Transport::Tcp => format!("smb://{USER}@{}:{}/{name}", on.host(), on.address.port()),
            _ => format!("smb://{USER}@{}/{name}", on.host()),
        })
    }
}

type Commands = Vec<(&'static str, String)>;

fn tcp(on: Listening, name: &str) -> Commands {
    let (host, port) = (on.host(), on.address.port());
    let is_standard = port == SMB_PORT;
    let smbclient_port = or_empty(!is_standard, || format!(" -p {port}"));
    let mount_port = or_empty(!is_standard, || format!("port={port},"));
    let windows_port = or_empty(!is_standard, || format!(" /tcpport:{port}"));
    let url_port = or_empty(!is_standard, || format!(":{port}"));
    // Neither smbclient nor mount.cifs takes an address of IPv6 as a host.
    let (unix_host, smbclient_ip, mount_ip) = match plain_ipv6(&host) {
        Some(ip) => (USER.to_owned(), format!(" -I {ip}"), format!("ip={ip},")),
        None => (host.clone(), String::new(), String::new()),
    };
    let note = or_empty(!is_standard, || {
        "   (Windows 11 24H2 or later; older ones need port 445)".to_owned()
    });
    vec![
        (
            "smbclient",
            format!("smbclient //{unix_host}/{name}{smbclient_port}{smbclient_ip} -U {USER}"),
        ),
        (
            "Linux",
            format!(
                "mount -t cifs //{unix_host}/{name} /mnt \
                 -o {mount_port}{mount_ip}username={USER},vers=3.1.1"
            ),
        ),
        (
            "Windows",
            format!(
                "net use Z: \\\\{}\\{name} /user:{USER}{windows_port}{note}",
                windows_host(&host)
            ),
        ),
        (
            "macOS",
            format!("open smb://{USER}@{host}{url_port}/{name}"),
        ),
    ]
}

fn nbt(on: Listening, name: &str) -> Commands {
    let (host, port) = (on.host(), on.address.port());
    vec![(
        "NetBIOS",
        format!("smbeam ls --transports nbt:{port} smb://{USER}@{host}/{name}"),
    )]
}

fn quic(on: Listening, name: &str, certificate: Option<Shown>) -> Commands {
    let (host, port) = (on.host(), on.address.port());
    let pin = certificate
        .filter(|shown| shown.is_self_signed)
        .map(|shown| format!(" --pin-sha256 {}", shown.fingerprint))
        .unwrap_or_default();
    let mut commands = vec![(
        "QUIC",
        format!("smbeam ls --transports quic:{port}{pin} smb://{USER}@{host}/{name}"),
    )];
    if pin.is_empty() && port == QUIC_PORT {
        let host = windows_host(&host);
        let windows = format!("net use Z: \\\\{host}\\{name} /user:{USER} /transport:quic");
        commands.push(("Windows", windows));
    }
    commands
}

fn smb_direct(on: Listening, name: &str) -> Commands {
    let (host, port) = (on.host(), on.address.port());
    let command = format!("smbeam ls --transports smbdirect:{port} smb://{USER}@{host}/{name}");
    vec![("RDMA", command)]
}

fn or_empty(condition: bool, text: impl FnOnce() -> String) -> String {
    if condition { text() } else { String::new() }
}

/// The address in the brackets of a host.
fn plain_ipv6(host: &str) -> Option<String> {
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.replacen("%25", "%", 1))
}

/// A host in a UNC name of Windows, which cannot have a colon: `2001-db8--7.ipv6-literal.net`.
fn windows_host(host: &str) -> String {
    let Some(address) = plain_ipv6(host) else {
        return host.to_owned();
    };
    let (ip, zone) = match address.split_once('%') {
        Some((ip, zone)) => (ip, format!("s{zone}")),
        None => (&*address, String::new()),
    };
    match ip.parse::<IpAddr>() {
        Ok(ip) => format!(
            "{}{zone}.ipv6-literal.net",
            ip.to_string().replace(':', "-")
        ),
        Err(_) => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(transport: Transport, address: &str) -> Vec<String> {
        let on = Listening {
            address: address.parse().expect("an address"),
            transport,
        };
        let commands = match transport {
            Transport::Quic => quic(on, "data", None),
            _ => tcp(on, "data"),
        };
        commands.into_iter().map(|(_, command)| command).collect()
    }

    #[test]
    fn every_system_has_its_line() {
        let expected = [
            "smbclient //192.0.2.7/data -p 4455 -U smbeam",
            "mount -t cifs //192.0.2.7/data /mnt -o port=4455,username=smbeam,vers=3.1.1",
            "net use Z: \\\\192.0.2.7\\data /user:smbeam /tcpport:4455   \
             (Windows 11 24H2 or later; older ones need port 445)",
            "open smb://smbeam@192.0.2.7:4455/data",
        ];
        assert_eq!(commands(Transport::Tcp, "192.0.2.7:4455"), expected);
        let quic = commands(Transport::Quic, "192.0.2.7:443");
        assert_eq!(
            quic[0],
            "smbeam ls --transports quic:443 smb://smbeam@192.0.2.7/data"
        );
        assert_eq!(
            quic[1],
            "net use Z: \\\\192.0.2.7\\data /user:smbeam /transport:quic"
        );
    }

    #[test]
    fn an_address_of_ipv6_fits_each_system() {
        let expected = [
            "smbclient //smbeam/data -I 2001:db8::7 -U smbeam",
            "mount -t cifs //smbeam/data /mnt -o ip=2001:db8::7,username=smbeam,vers=3.1.1",
            "net use Z: \\\\2001-db8--7.ipv6-literal.net\\data /user:smbeam",
            "open smb://smbeam@[2001:db8::7]/data",
        ];
        assert_eq!(commands(Transport::Tcp, "[2001:db8::7]:445"), expected);
        assert_eq!(
            windows_host("[fe80::7%25eth0]"),
            "fe80--7seth0.ipv6-literal.net"
        );
    }

    #[test]
    fn no_line_has_a_password() {
        for line in commands(Transport::Tcp, "192.0.2.7:4455") {
            assert!(!line.contains('%') && !line.contains("password"), "{line}");
        }
    }
}
