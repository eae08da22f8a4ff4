//! Parsers for `--transports` and `--channels`.

use smbeam_client::{CHANNELS_MAX, Channels, Endpoint, Endpoints, Transports};

/// Parses `auto`, or a list of transports in the order of the attempts.
pub fn parse_transports(text: &str) -> Result<Transports, String> {
    if text == "auto" {
        return Ok(Transports::Auto);
    }
    let list: Endpoints = text.parse().map_err(|error| format!("{error}"))?;
    list.iter().try_for_each(has_port)?;
    Ok(list.into())
}

/// Parses `auto`, a number of channels, or a list with the transport of each channel.
pub fn parse_channels(text: &str) -> Result<Channels, String> {
    if text == "auto" {
        return Ok(Channels::Auto);
    }
    // A number alone is a number of channels, not a port.
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return parse_named(text);
    }
    match text.parse() {
        Ok(number @ 1..=CHANNELS_MAX) => Ok(Channels::Exactly(number)),
        _ => Err(format!(
            "expected auto, a number from 1 to {CHANNELS_MAX}, or a list of transports"
        )),
    }
}

fn parse_named(text: &str) -> Result<Channels, String> {
    let words = text.split(',').map(str::trim);
    let list: Result<Vec<Endpoint>, _> = words.map(str::parse).collect();
    let list = list.map_err(|error| format!("{error}"))?;
    if list.len() > CHANNELS_MAX {
        return Err(format!("too many channels: the maximum is {CHANNELS_MAX}"));
    }
    list.iter().try_for_each(has_port)?;
    let is_alike = |endpoint: &Endpoint| {
        endpoint.transport.has_large_frames() == list[0].transport.has_large_frames()
    };
    if !list.iter().all(is_alike) {
        return Err(
            "nbt cannot share a session with other transports: its frames are too small".into(),
        );
    }
    Ok(Channels::Over(list))
}

fn has_port(endpoint: &Endpoint) -> Result<(), String> {
    match endpoint.port {
        0 => Err(format!("`{endpoint}`: 0 is not a valid port")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use smbeam_client::Transport;

    use super::*;

    #[test]
    fn channels_are_auto_a_few_or_named() {
        assert_eq!(parse_channels("auto"), Ok(Channels::Auto));
        assert_eq!(parse_channels("4"), Ok(Channels::Exactly(4)));
        let named = vec![Transport::Tcp.into(), Transport::Quic.into()];
        assert_eq!(parse_channels("tcp,quic"), Ok(Channels::Over(named)));
        assert!(parse_channels("nbt,nbt:1139").is_ok());
        let many = vec!["tcp"; 33].join(",");
        for text in [
            "0", "33", "-1", "many", "445,tcp", "tcp,", "tcp:0", "tcp,nbt", "", &many,
        ] {
            assert!(parse_channels(text).is_err(), "{text}");
        }
    }

    #[test]
    fn transports_are_auto_or_in_order() {
        assert_eq!(parse_transports("auto"), Ok(Transports::Auto));
        let two: Endpoints = "quic,tcp".parse().expect("a list");
        assert_eq!(parse_transports("quic, tcp"), Ok(two.into()));
        for text in ["", "auto,tcp", "tcp,tcp", "udp", "tcp:0"] {
            assert!(parse_transports(text).is_err(), "{text}");
        }
    }
}
