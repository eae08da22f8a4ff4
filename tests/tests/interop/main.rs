//! The interop tests: smbeam against peers that other projects wrote, one module per promise.
//!
//! `cargo xtask test interop` runs them in parallel, one process per case. By hand:
//! `cargo test -p smbeam-tests --test interop -- FILTER...`; see `smbeam_tests::harness`.

mod access_checks_agree_with_samba;
mod accounts_have_names;
mod acknowledged_writes_survive_a_kill;
mod administrators_control_servers;
mod app_passwords_have_fewer_rights;
mod attacks_fail;
mod bad_descriptors_disturb_no_other_client;
mod bad_input_disturbs_no_other_client;
mod bad_input_over_smbdirect_disturbs_no_other_client;
mod bench_measures_servers;
mod bench_speaks_mlperf;
mod certificates_decide_over_quic;
mod cli_changes_permissions;
mod cli_chooses_files;
mod cli_keeps_metadata;
mod cli_loses_no_files;
mod cli_moves_files;
mod cli_reports_errors;
mod cli_round_trips_unix_trees;
mod cli_streams;
mod cli_syncs_trees;
mod client_copies_on_the_server;
mod client_examples_work;
mod client_fits_its_requests;
mod client_keeps_metadata;
mod client_keeps_names;
mod client_keeps_opens;
mod client_lists_large_directories;
mod client_logs_off_everywhere;
mod client_moves_whole_trees;
mod client_negotiates;
mod client_opens_large_files_twice;
mod client_outlives_servers;
mod client_reads_small_files_by_two_sessions;
mod client_reads_small_files_together;
mod client_reports_errors;
mod client_sees_changes;
mod client_uses_many_channels;
mod client_works_with_other_servers;
mod configuration_reloads_under_load;
mod data_reach_the_disk_as_configured;
mod descriptors_decide_alone;
mod direct_shares_keep_every_byte;
mod directories_move_between_servers;
mod disk_quotas_are_shown;
mod files_change_while_they_are_read;
mod files_move_over_rdma;
mod fuse_mounts_pass_suites;
mod fuse_mounts_survive_hostile_servers;
mod fuse_mounts_work;
mod greedy_clients_leave_capacity_for_others;
mod half_open_connections_are_bounded;
mod large_directory_is_listed_whole;
mod libsmb2_works;
mod linux_kernel_keeps_metadata;
mod linux_kernel_keeps_permissions;
mod linux_kernel_lists_from_its_cache;
mod linux_kernel_locks_files;
mod linux_kernel_mounts;
mod linux_kernel_mounts_pass_suites;
mod linux_kernel_mounts_posix;
mod linux_kernel_mounts_stay_coherent;
mod linux_kernel_mounts_with_options;
mod linux_kernel_outlives_network_cuts;
mod linux_kernel_runs_databases;
mod linux_kernel_sees_nested_mounts;
mod lists_decide_about_shares;
mod local_changes_reach_watchers;
mod local_names_survive_servers;
mod locks_and_share_modes_exclude_clients;
mod metrics_agree_with_clients;
mod metrics_clients_disturb_no_other_client;
mod names_in_unicode_survive;
mod other_quic_libraries_work;
mod packages_work_on_fresh_machines;
mod posix_extensions_agree_with_samba;
mod python_clients_work;
mod python_package_works;
mod quic_peers_that_misbehave;
mod rdma_peers;
mod reported_faults_stay_fixed;
mod rig;
mod service_managers_are_informed;
mod shares_are_listed;
mod smbclient_negotiates;
mod smbclient_restores_its_backup;
mod smbclient_round_trips;
mod smbclient_speaks_quic;
mod smbdirect_servers_may_be_hostile;
mod smbprotocols_own_tests_pass;
mod status_reports_server_state;
mod streams_have_limits;
mod the_audit_log_records_operations;
mod the_doctor_finds_faults;
mod the_log_has_reasons_of_refusals;
mod the_web_page_shows_the_activity;
mod torture_passes_where_samba_does;
mod transports_are_tried_in_order;
mod tune_names_the_limit;
mod unauthenticated_quic_clients_are_bounded;
mod users_are_kept_apart;

use std::process::ExitCode;

use smbeam_tests::harness::{self, Module};

/// Lists modules, each with the methods of [`Module`] that schedule its cases.
macro_rules! modules {
    ($($name:ident $(: $($schedule:ident),+)?;)+) => {
        &[$(Module::new(stringify!($name), $name::tests)$($(.$schedule())+)?),+]
    };
}

const MODULES: &[Module] = modules! {
    access_checks_agree_with_samba;
    accounts_have_names;
    acknowledged_writes_survive_a_kill;
    administrators_control_servers;
    app_passwords_have_fewer_rights;
    attacks_fail: alone;
    bad_descriptors_disturb_no_other_client;
    bad_input_disturbs_no_other_client;
    bad_input_over_smbdirect_disturbs_no_other_client;
    bench_measures_servers: alone;
    bench_speaks_mlperf;
    certificates_decide_over_quic;
    cli_changes_permissions;
    cli_chooses_files;
    cli_keeps_metadata;
    cli_loses_no_files;
    cli_moves_files;
    cli_reports_errors;
    cli_round_trips_unix_trees;
    cli_streams;
    cli_syncs_trees;
    client_copies_on_the_server;
    client_examples_work;
    client_fits_its_requests: every_transport;
    client_keeps_metadata;
    client_keeps_names;
    client_keeps_opens;
    client_lists_large_directories;
    client_logs_off_everywhere;
    client_moves_whole_trees;
    client_negotiates: every_transport;
    client_opens_large_files_twice;
    client_outlives_servers: every_transport;
    client_reads_small_files_by_two_sessions;
    client_reads_small_files_together;
    client_reports_errors;
    client_sees_changes;
    client_uses_many_channels: every_transport;
    client_works_with_other_servers;
    configuration_reloads_under_load;
    data_reach_the_disk_as_configured;
    disk_quotas_are_shown;
    directories_move_between_servers;
    descriptors_decide_alone;
    direct_shares_keep_every_byte;
    files_change_while_they_are_read;
    files_move_over_rdma;
    fuse_mounts_pass_suites;
    fuse_mounts_survive_hostile_servers;
    fuse_mounts_work;
    greedy_clients_leave_capacity_for_others: alone;
    half_open_connections_are_bounded: alone;
    large_directory_is_listed_whole;
    libsmb2_works;
    linux_kernel_keeps_metadata;
    linux_kernel_keeps_permissions;
    linux_kernel_lists_from_its_cache;
    linux_kernel_locks_files;
    linux_kernel_mounts;
    linux_kernel_mounts_pass_suites;
    linux_kernel_mounts_posix;
    linux_kernel_mounts_stay_coherent;
    linux_kernel_mounts_with_options;
    linux_kernel_outlives_network_cuts;
    linux_kernel_runs_databases;
    linux_kernel_sees_nested_mounts;
    lists_decide_about_shares;
    local_changes_reach_watchers;
    local_names_survive_servers;
    locks_and_share_modes_exclude_clients;
    metrics_agree_with_clients;
    metrics_clients_disturb_no_other_client;
    names_in_unicode_survive;
    other_quic_libraries_work;
    packages_work_on_fresh_machines;
    posix_extensions_agree_with_samba;
    python_clients_work;
    python_package_works;
    quic_peers_that_misbehave;
    rdma_peers;
    reported_faults_stay_fixed;
    service_managers_are_informed;
    shares_are_listed;
    smbclient_negotiates;
    smbclient_restores_its_backup;
    smbclient_round_trips;
    smbclient_speaks_quic;
    smbdirect_servers_may_be_hostile;
    smbprotocols_own_tests_pass;
    status_reports_server_state;
    streams_have_limits;
    the_audit_log_records_operations;
    the_doctor_finds_faults;
    the_log_has_reasons_of_refusals;
    the_web_page_shows_the_activity;
    torture_passes_where_samba_does: batched;
    transports_are_tried_in_order: every_transport;
    tune_names_the_limit: alone;
    unauthenticated_quic_clients_are_bounded: alone;
    users_are_kept_apart;
};

fn main() -> ExitCode {
    match rdma_peers::guest_command() {
        Some(code) => code,
        None => harness::run(MODULES),
    }
}
