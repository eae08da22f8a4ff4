//! `smbeam tune --watch`: names the limit of the load of a running server.

use std::time::{Duration, Instant};

use serde_json::json;
use smbeam_server::activity::Activity;
use smbeam_server::control::Request;
use smbeam_server::status::Status;
use smbeam_server::tune::{Interval, Sample, StoreFacts, gather};

use super::arguments::Arguments;
use super::configuration::load;
use super::print;
use crate::failure::Outcome;
use crate::format::utc_time;
use crate::local_server::LocalServer;
use crate::output;

/// Prints a line for each interval.
pub(super) fn watch(arguments: &Arguments) -> Outcome {
    let server = arguments.server.find()?;
    let stores = stores(&server)?;
    let start = Instant::now();
    let pause = Duration::from_secs_f64(arguments.interval);
    let mut before = sample(&server, &stores, start)?;
    let mut left = arguments.count;
    while left != Some(0) {
        std::thread::sleep(pause);
        let after = sample(&server, &stores, start)?;
        print_interval(&Interval::between(&before, &after), arguments.json);
        before = after;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// The directories of the shares. A server without a configuration file has none that are known.
fn stores(server: &LocalServer) -> Outcome<Vec<StoreFacts>> {
    let file = server.status.server.config.as_deref();
    let config = file.map(load).transpose()?;
    Ok(gather(config.as_ref(), None, false).stores)
}

fn sample(server: &LocalServer, stores: &[StoreFacts], start: Instant) -> Outcome<Sample> {
    let subject = server.socket.display();
    let activity: Activity = server.result(&subject, &Request::Activity {})?;
    let status: Status = server.result(&subject, &Request::Status {})?;
    Ok(Sample::take(start, &status, activity, stores))
}

fn print_interval(interval: &Interval, is_json: bool) {
    let limits = interval.limits();
    if is_json {
        let mut object = print::limits_json(&limits);
        object["interval"] = json!(interval);
        return output::line(&object);
    }
    let now = utc_time(std::time::SystemTime::now());
    output::line(&format_args!("{now} {}", print::limits_line(&limits)));
}
