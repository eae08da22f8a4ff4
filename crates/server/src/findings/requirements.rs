//! Findings about requirements of the server that clients or the machine cannot meet.

use net::Transport;

use super::{Findings, Machine};
use crate::config::{Config, dialect};

/// Share of the memory of the machine that buffers can take before it is a finding.
const MEMORY_SHARE: usize = 2;

impl Findings {
    /// Requirements that no client can meet.
    pub(super) fn security(&mut self, config: &Config) {
        const KEY: &str = "security.encryption_required";
        let max_dialect = config.security.max_dialect.get_ref();
        let can_encrypt = dialect(max_dialect) >= dialect("3.0");
        let line = config.line(&config.security.max_dialect);
        if config.security.encryption_required && !can_encrypt {
            let what = format!("no client can connect: dialect {max_dialect} has no encryption");
            self.warn(KEY, line, what);
        }
        for share in config
            .shares
            .iter()
            .filter(|share| share.encryption_required)
        {
            if !can_encrypt {
                let name = share.name.get_ref();
                let what = format!(
                    "no client can use share \"{name}\": dialect {max_dialect} has no encryption"
                );
                self.warn("share.encryption_required", config.line(&share.name), what);
            }
        }
        let (delay, limit) = (
            config.security.failed_login_delay_ms,
            config.limits.login_timeout_ms,
        );
        if delay >= limit {
            let what = format!(
                "a client with a wrong password gets no answer: it waits {delay} ms, and \
                 limits.login_timeout_ms is {limit}"
            );
            self.warn("security.failed_login_delay_ms", None, what);
        }
    }

    /// Signed data cannot move by RDMA transfers.
    pub(super) fn smb_direct(&mut self, config: &Config) {
        if !config.listens_with(Transport::SmbDirect) {
            return;
        }
        let security = &config.security;
        for (key, is_set) in [
            ("security.signing_required", security.signing_required),
            ("security.encryption_required", security.encryption_required),
        ] {
            if is_set {
                let what = format!(
                    "clients of smbdirect move data in messages, not by RDMA transfers, because \
                     {key} is true: this is slower"
                );
                self.warn("server.transports", None, what);
                return;
            }
        }
    }

    pub(super) fn memory(&mut self, config: &Config, machine: &Machine<'_>) {
        let Machine {
            memory, workers, ..
        } = *machine;
        let each = config.server.buffer_memory_mb;
        let all = each.saturating_mul(workers);
        if all > (memory >> 20) / MEMORY_SHARE {
            let what = format!(
                "{workers} workers with {each} MiB each can take {all} MiB, and the machine has \
                 {} MiB",
                memory >> 20
            );
            self.warn("server.buffer_memory_mb", None, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::examples::{SHARE, found, only, users};

    #[test]
    fn requirements_that_no_client_meets_are_reported() {
        let alice = users(&[("alice", None, false)]);
        let text =
            format!("[security]\nencryption_required = true\nmax_dialect = \"2.1\"\n{SHARE}");
        let (_, key, line, message) = only(&text, &alice);
        assert_eq!((key, line), ("security.encryption_required", Some(3)));
        assert_eq!(
            message,
            "no client can connect: dialect 2.1 has no encryption"
        );
        let text = format!("[security]\nfailed_login_delay_ms = 30000\n{SHARE}");
        assert_eq!(only(&text, &alice).1, "security.failed_login_delay_ms");
        let text = format!("[server]\nbuffer_memory_mb = 4096\n{SHARE}");
        assert_eq!(only(&text, &alice).1, "server.buffer_memory_mb");
    }

    #[test]
    fn protection_that_prevents_rdma_transfers_is_reported() {
        let alice = users(&[("alice", None, false)]);
        let transports = "[server]\ntransports = [\"smbdirect\"]\n";
        for (security, key) in [
            ("", Some("security.signing_required")),
            (
                "signing_required = false\nencryption_required = true\n",
                Some("security.encryption_required"),
            ),
            ("signing_required = false\n", None),
        ] {
            let text = format!("{transports}[security]\n{security}{SHARE}");
            let messages = found(&text, &alice).into_iter().map(|finding| finding.3);
            let expected = key.map(|key| {
                format!(
                    "clients of smbdirect move data in messages, not by RDMA transfers, because \
                     {key} is true: this is slower"
                )
            });
            assert!(messages.eq(expected), "{text}");
        }
    }
}
