//! What a run is like.

use std::time::Duration;

use proto::smbd::{Config, Role};

use crate::choices::Choices;

/// What a run is like.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Messages of each side.
    pub messages: usize,
    /// Bytes of the longest of them.
    pub length_max: usize,
    /// Credits that a side asks for and allows, at most; at least 1.
    pub credits_max: u16,
    /// Whether each side chooses sizes and credits below what it may, for each connection.
    pub is_varied: bool,
    /// A SEND takes up to so long.
    pub network_delay: Duration,
    /// A receive is posted up to so late.
    pub post_delay: Duration,
    /// How long the upper layer pauses between messages, about.
    pub pause: Duration,
    /// Connections until nothing goes wrong any more.
    pub connections_max: u64,
    /// What goes wrong until then.
    pub faults: Faults,
}

/// What goes wrong. Chances are so many in a thousand.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A connection is lost.
    pub lose: u16,
    /// Nothing arrives on a connection any more.
    pub stall: u16,
    /// When, at the latest.
    pub lose_within: Duration,
    /// A SEND arrives other than it was sent.
    pub spoil: u16,
}

impl Scenario {
    /// Nothing goes wrong.
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

    /// Both sides have few credits and small receives, and are slow.
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

    /// Connections are lost, and some fall silent.
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

    /// What arrives is not always what was sent.
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

    /// What both sides want of the next connection.
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
