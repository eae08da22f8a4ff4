//! Both ends of TLS in memory: who is believed, who is refused, and what each side is told.

mod clients_show_certificates;
mod files_are_read_again;
mod pki;
mod self_signed_is_kept;
mod servers_are_verified;
mod the_log_says_why;
mod wire;
