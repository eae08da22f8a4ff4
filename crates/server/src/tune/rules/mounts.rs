//! Options of mounts of cifs.ko by profile.
//!
//! `proto=tcp` and `clientaddr=`, which some guides list, are options of NFS: cifs.ko rejects them.
//! It has `srcaddr=` and `rdma`.

use super::sources::window_bytes;
use crate::tune::{Facts, Finding, Profile};

/// Documentation of the options.
const SOURCE: &str = "mount.cifs(8)";
/// Most channels of cifs.ko.
const CHANNELS_MAX: usize = 16;
/// Most credits that the options of a profile request.
const CREDITS_MAX: u64 = 8192;

/// Returns the mount options for a profile, on a client with `cpus` processors and a link of `bits`
/// bits per second; `None` if the speed is unknown.
pub fn mount_options(
    profile: Profile,
    cpus: usize,
    bits: Option<u64>,
) -> Vec<(&'static str, String)> {
    let channels = match profile {
        Profile::Training | Profile::Checkpoint => cpus.clamp(2, CHANNELS_MAX),
        Profile::SmallFiles | Profile::Mixed => (cpus / 2).clamp(2, 4),
    };
    let of_link = bits.map_or(0, |bits| window_bytes(bits) / (64 << 10));
    let credits = match profile.is_streaming() {
        true => of_link.next_power_of_two().clamp(4096, CREDITS_MAX),
        false => 1024,
    };
    let mut options = vec![
        ("vers", "3.1.1".to_owned()),
        ("multichannel", String::new()),
        ("max_channels", channels.to_string()),
        ("max_credits", credits.to_string()),
        ("serverino", String::new()),
    ];
    let large = || (4_usize << 20).to_string();
    match profile {
        // Data are read once in an epoch, or written once: a cache only costs copies.
        Profile::Training => options.extend([
            ("rsize", large()),
            ("cache", "none".to_owned()),
            ("actimeo", "120".to_owned()),
        ]),
        Profile::Checkpoint => options.extend([
            ("rsize", large()),
            ("wsize", large()),
            ("cache", "none".to_owned()),
            ("actimeo", "0".to_owned()),
        ]),
        Profile::SmallFiles => options.extend([
            ("cache", "strict".to_owned()),
            ("actimeo", "30".to_owned()),
            ("closetimeo", "5".to_owned()),
        ]),
        Profile::Mixed => options.extend([("cache", "strict".to_owned()), ("rasize", large())]),
    }
    options
}

pub(super) fn advise(facts: &Facts, profile: Profile, findings: &mut Vec<Finding>) {
    let wanted = mount_options(profile, facts.kernel.cpus, facts.fastest_bits());
    for mount in &facts.mounts {
        let is_given = |name: &str, value: &str| match value {
            "" => mount.has(name),
            // The module shows attribute times under their own names.
            _ if name == "actimeo" => [name, "acregmax"]
                .iter()
                .any(|name| mount.value(name) == Some(value)),
            _ => mount
                .value(name)
                .is_some_and(|present| is_enough(name, present, value)),
        };
        let missing: Vec<String> = (wanted.iter())
            .filter(|(name, value)| !is_given(name, value))
            .map(|(name, value)| option(name, value))
            .collect();
        if missing.is_empty() {
            continue;
        }
        let target = mount.target.display();
        let message = format!("the mount lacks options of the profile {}", profile.name());
        let finding = Finding::new("tune-cifs-mount", format_args!("mount {target}"), message)
            .seen(mount.options.join(","), "/proc/self/mountinfo");
        let all: Vec<String> = wanted
            .iter()
            .map(|(name, value)| option(name, value))
            .collect();
        let line = format!(
            "umount {target} && mount -t cifs {} {target} -o {} (missing: {})",
            mount.source,
            all.join(","),
            missing.join(",")
        );
        findings.push(finding.advise(line, SOURCE));
    }
}

fn option(name: &str, value: &str) -> String {
    match value {
        "" => name.to_owned(),
        _ => format!("{name}={value}"),
    }
}

/// Whether the value of a mount is as good as the wanted one: numbers may be larger.
fn is_enough(name: &str, present: &str, wanted: &str) -> bool {
    let numbers = (present.parse::<u64>(), wanted.parse::<u64>());
    match numbers {
        (Ok(present), Ok(wanted)) if !name.starts_with("ac") => present >= wanted,
        _ => present == wanted,
    }
}
