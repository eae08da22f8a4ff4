//! The parameters of a run.

use std::time::Duration;

use proto::smbd::{Config, Role};

use crate::choices::Choices;

/// The parameters of a simulation of two SMB Direct ends: messages, credits, delays and faults.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Number of messages that each end sends.
    pub messages: usize,
    /// Maximum length of a message in bytes.
    pub length_max: usize,
    /// Maximum number of credits that an end requests and grants; at least 1.
    pub credits_max: u16,
    /// Whether each end chooses smaller sizes and fewer credits for each connection.
    pub is_varied: bool,
    /// Maximum delay of a SEND in the simulated network.
    pub network_delay: Duration,
    /// Maximum delay until the driver of an end posts a requested receive.
    pub post_delay: Duration,
    /// Approximate pause of the upper layer between messages.
    pub pause: Duration,
    /// Number of connections on which faults occur. Later connections have none.
    pub connections_max: u64,
    /// The faults of the first [`connections_max`](Self::connections_max) connections.
    pub faults: Faults,
}

/// Faults of a simulation of SMB Direct. The numbers without another unit are probabilities per
/// mille.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Probability per mille that a connection is lost.
    pub lose: u16,
    /// Probability per mille that a connection falls silent: nothing arrives any more.
    pub stall: u16,
    /// Maximum time from the start of a connection until it is lost or falls silent.
    pub lose_within: Duration,
    /// Probability per mille that a SEND is corrupted.
    pub spoil: u16,
}

impl Scenario {
    /// Returns a scenario without faults.
    pub fn calm() -> Self {
        Self {
            messages: 30,
            length_max: 131_072,
            credits_max: 255,
            is_varied: false,
            network_delay: Duration::from_micros(50),
            post_delay: Duration::ZERO,
            pause: Duration::from_millis(1),
            connections_max: 1,
            faults: Faults::default(),
        }
    }

    /// Returns a scenario in which both ends have few credits and small receives, and are slow.
    pub fn tight() -> Self {
        Self {
            messages: 20,
            length_max: 4_000,
            credits_max: 4,
            is_varied: true,
            network_delay: Duration::from_millis(3),
            post_delay: Duration::from_millis(5),
            ..Self::calm()
        }
    }

    /// Returns a scenario in which connections are lost or fall silent.
    pub fn lossy() -> Self {
        Self {
            connections_max: 12,
            faults: Faults {
                lose: 700,
                stall: 300,
                lose_within: Duration::from_millis(300),
                spoil: 0,
            },
            ..Self::tight()
        }
    }

    /// Returns a scenario in which the network corrupts some SENDs.
    pub fn spoiled() -> Self {
        Self {
            connections_max: 20,
            faults: Faults {
                spoil: 30,
                ..Faults::default()
            },
            ..Self::tight()
        }
    }

    /// Returns the settings of both ends for the next connection.
    pub(super) fn configs(&self, choices: &mut Choices) -> (Config, Config) {
        (
            self.config(Role::Client, choices),
            self.config(Role::Server, choices),
        )
    }

    fn config(&self, role: Role, choices: &mut Choices) -> Config {
        let mut config = Config {
            send_credit_target: self.credits_max,
            receive_credit_max: self.credits_max,
            ..Config::new(role)
        };
        if self.is_varied {
            let mut credits = || 1 + choices.below(self.credits_max.into()) as u16;
            (config.send_credit_target, config.receive_credit_max) = (credits(), credits());
            config.max_send_size = choices.pick(&[128, 200, 1364, 8192]);
            config.max_receive_size = choices.pick(&[128, 200, 1364, 8192]);
            config.send_depth = choices.pick(&[1, 2, 7, 64]);
            config.queue_depth = choices.pick(&[1, 3, 64]);
        }
        config
    }
}
