//! Both peers of TLS in memory: accepted and refused certificates, and the errors of each side.

mod clients_show_certificates;
mod files_are_read_again;
mod pki;
mod self_signed_is_kept;
mod servers_are_verified;
mod the_log_says_why;
mod wire;
