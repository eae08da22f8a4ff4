//! The process that has a port, from /proc. proc(5)

use std::fs;
use std::path::Path;

/// Most processes that are examined.
const PROCESSES_MAX: usize = 65_536;
/// Most descriptors of one process that are examined.
const DESCRIPTORS_MAX: usize = 65_536;
/// The state of a listening TCP socket in /proc/net/tcp.
const LISTEN: &str = "0A";

/// Returns the process that has a socket with the local port, as `name (pid 12)`. `None` if this
/// user may not see it.
pub(super) fn find(port: u16, is_stream: bool) -> Option<String> {
    let tables = match is_stream {
        true => ["/proc/net/tcp", "/proc/net/tcp6"],
        false => ["/proc/net/udp", "/proc/net/udp6"],
    };
    let mut sockets = Vec::new();
    for table in tables {
        let text = fs::read_to_string(table).unwrap_or_default();
        sockets.extend(
            text.lines()
                .filter_map(|line| socket(line, port, is_stream)),
        );
    }
    let processes = fs::read_dir("/proc").ok()?;
    let mut processes = processes.take(PROCESSES_MAX).flatten();
    processes.find_map(|process| owner(&process.path(), &sockets))
}

/// The name of a socket of a line in /proc/net/tcp, as links of descriptors have it.
fn socket(line: &str, port: u16, is_stream: bool) -> Option<String> {
    let mut fields = line.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?;
    let (_, local_port) = local.rsplit_once(':')?;
    let is_port = u16::from_str_radix(local_port, 16) == Ok(port);
    let is_open = !is_stream || state == LISTEN;
    (is_port && is_open).then(|| format!("socket:[{inode}]"))
}

fn owner(process: &Path, sockets: &[String]) -> Option<String> {
    let pid = process.file_name()?.to_str()?;
    if !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let descriptors = fs::read_dir(process.join("fd")).ok()?;
    let mut descriptors = descriptors.take(DESCRIPTORS_MAX).flatten();
    let has_socket = descriptors.any(|descriptor| {
        let target = fs::read_link(descriptor.path()).unwrap_or_default();
        sockets
            .iter()
            .any(|socket| target.as_os_str() == socket.as_str())
    });
    let name = || fs::read_to_string(process.join("comm")).unwrap_or_default();
    has_socket.then(|| format!("{} (pid {pid})", name().trim_end()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_line_of_the_table_names_its_socket() {
        let line = "  10: 0100007F:01BD 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    1000        0 45678 1 0000 100 0 0 10 0";
        assert_eq!(socket(line, 445, true).as_deref(), Some("socket:[45678]"));
        assert_eq!(socket(line, 446, true), None);
        let established = line.replace(" 0A ", " 01 ");
        assert_eq!(socket(&established, 445, true), None);
    }

    #[test]
    fn a_port_of_this_process_has_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let owner = find(port, true).expect("this process");
        assert!(
            owner.contains(&format!("(pid {})", std::process::id())),
            "{owner}"
        );
    }
}
