//! Metrics and health of a running server, over HTTP.

#[cfg(test)]
mod contrib_tests;
mod endpoint;
mod exporter;
mod families;
mod health;
mod http;
mod page;
mod process;
mod routes;
mod share_state;
mod token;

pub use endpoint::Endpoint;
pub(crate) use token::load as load_token;
