//! The configuration in the forms of the core, and of the limits of connections and logins.

use std::sync::Arc;
use std::time::Duration;

use proto::server::config as core;

use crate::config::{Config, TransportSecurity, dialect, host_rules};
use crate::gate::GateLimits;
use crate::half_open::HalfOpenLimits;
use crate::login_attempts::Lockout;

/// The configuration of the core. `fixed` has the values that stay the same while the server runs.
pub(crate) fn core_config(
    config: &Config,
    shares: Vec<Arc<core::Share>>,
    fixed: core::Config,
) -> core::Config {
    let dialect_of = |name: &str| dialect(name).expect("checked when the file was read");
    core::Config {
        min_dialect: dialect_of(config.security.min_dialect.get_ref()),
        max_dialect: dialect_of(config.security.max_dialect.get_ref()),
        comment: config.server.comment.clone(),
        audit: config.audit.target.is_some(),
        signing_required: config.security.signing_required,
        encryption_required: config.security.encryption_required,
        gmac_channels: config.security.gmac_channels.into(),
        transport_security: config.quic.transport_security == TransportSecurity::Accept,
        multichannel: config.server.multichannel,
        security_blob: auth::server_hint(),
        max_read: config.limits.max_read,
        max_write: config.limits.max_write,
        max_transact: config.limits.max_transact,
        limits: core::Limits {
            credits: config.limits.credits,
            sessions_per_connection: config.limits.sessions_per_connection,
            channels_per_session: config.limits.channels_per_session,
            opens_per_session: config.limits.opens_per_session,
            logins_per_connection: config.limits.logins_per_connection,
            connections_per_user: config.limits.connections_per_user,
            opens_per_user: config.limits.opens_per_user,
            pipes_per_user: config.limits.pipes_per_user,
            watches_per_user: config.limits.watches_per_user,
            locks_per_user: config.limits.locks_per_user,
            leases_per_client: config.limits.leases_per_client,
            leases: config.limits.leases,
            oplock_break_timeout: Duration::from_millis(config.limits.break_timeout_ms),
            disconnected_opens: config.limits.disconnected_opens,
            disconnected_opens_per_user: config.limits.disconnected_opens_per_user,
            durable_timeout_max: Duration::from_secs(config.limits.durable_timeout_max),
            response_bytes: config.limits.response_memory_mb << 20,
            frame_before_login: config.limits.frame_before_login,
            login_timeout: Duration::from_millis(config.limits.login_timeout_ms),
            ..core::Limits::default()
        },
        shares,
        ..fixed
    }
}

pub(crate) fn gate_limits(config: &Config) -> GateLimits {
    GateLimits {
        connections: config.limits.connections,
        connections_per_prefix: config.limits.connections_per_address,
        half_open: HalfOpenLimits {
            total: config.limits.half_open,
            per_prefix: config.limits.half_open_per_address,
            memory: config.limits.half_open_memory_mb << 20,
        },
        hosts: Arc::new(host_rules(
            &config.security.hosts_allow,
            &config.security.hosts_deny,
        )),
    }
}

pub(crate) fn lockout(config: &Config) -> Lockout {
    Lockout {
        threshold: config.security.lockout_threshold,
        duration: Duration::from_millis(config.security.lockout_duration_ms),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proto::server::config::SyncPolicy;

    use super::*;
    use crate::share::Shares;

    #[test]
    fn the_core_gets_the_sizes_and_the_sync_of_the_configuration() {
        let text = "[limits]\nmax_read = 65536\nmax_write = 131072\nmax_transact = 1048576\n\
            [[share]]\nname = \"data\"\npath = \"/\"\nsync = \"always\"\n";
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("a good file");
        let known: Arc<dyn vfs::accounts::Accounts> = Arc::new(vfs::accounts::UnixAccounts);
        let shares = Shares::open(&config.shares, &known).expect("the root directory");
        let core = core_config(&config, shares.known, core::Config::default());
        let sizes = [core.max_read, core.max_write, core.max_transact];
        assert_eq!(sizes, [65_536, 131_072, 1_048_576]);
        assert_eq!(core.shares[1].sync, SyncPolicy::Always);
    }
}
