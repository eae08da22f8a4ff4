//! Tests of the server's connections. The harness drives a connection as a worker does: it passes
//! frames in and performs the effects. Each file is named after a promise.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps nothing fails, as it should"
)]

// The name by which the other crates import this crate.
extern crate smbeam_proto as proto;

mod harness;

mod administrators_end_sessions_and_opens;
mod answers_describe_their_requests;
mod application_instances_move;
mod audited_shares_describe_operations;
mod binding_needs_key_and_user;
mod change_notify_misses_no_change;
mod change_notify_reports_changes;
mod changed_accounts_lose_their_sessions;
mod channel_loss_undoes_no_write;
mod compound_members_resolve_ids_when_they_run;
mod copies_end_with_their_request;
mod credits_are_a_window;
mod disconnected_opens_lose_broken_leases;
mod durable_opens_outlive_a_lost_session;
mod encrypted_requests_get_encrypted_responses;
mod garbage_ends_the_connection;
mod gmac_never_repeats_a_nonce;
mod leases_break_before_other_opens;
mod lists_of_shares_decide;
mod locks_are_granted_in_order;
mod locks_exclude_other_opens;
mod login_comes_before_other_requests;
mod lost_operations_hold_no_opens;
mod negotiation_selects_the_best_common_options;
mod network_interfaces_are_listed;
mod oplock_waits_end_with_their_clients;
mod oplocks_break_before_other_opens;
mod oplocks_leave_no_request_waiting;
mod pipes_carry_messages;
mod pipes_list_shares;
mod pipes_translate_accounts;
mod rdma_keys_are_used_and_invalidated;
mod reconnects_wait_for_lost_connections;
mod refusals_are_reported;
mod removed_shares_end_their_trees_only;
mod replays_take_effect_once;
mod secure_transport_replaces_encryption;
mod session_ends_with_its_last_channel;
mod sessions_share_limits_of_their_connection;
mod snapshots_list_open_objects;
mod tree_connect_checks_access;
mod unsigned_request_is_refused_when_signing_is_required;
mod unsupported_requests_are_refused;
mod users_have_limits_over_all_connections;
mod waiting_requests_end_with_their_owner;
