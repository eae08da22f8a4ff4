//! The harness of the interop tests: cases that can be skipped with a reason.
//!
//! All cases live in one program, in one module per promise. The program understands `--list`,
//! `--plan` (the same for `cargo xtask test`, with how each case is scheduled), `--exact` and name
//! filters. It prints the closing line of libtest, in which skipped cases count as ignored.
//!
//! Without a filter the program chooses from the transports: a case runs over TCP and over one
//! other transport, which depends on the name of the case alone. All transports are used for the
//! modules marked `every_transport`, for all modules in a full run ([`scale`]), and for every case
//! that a filter names. Cases marked [`long`](Test::long) belong to full runs and to such filters.

use std::any::Any;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Error, Result};

use crate::lab::Missing;
use crate::scale;
use crate::subject::Subject;

/// The transport over which every case runs.
const FIRST_TRANSPORT: &str = "tcp";

/// A named case.
pub struct Test {
    name: String,
    route: Option<Route>,
    is_alone: bool,
    is_long: bool,
    run: Box<dyn Fn() -> Result<()>>,
}

/// How a case that exists once per transport reaches the server.
struct Route {
    /// The name of the case without the transport.
    case: String,
    transport: &'static str,
}

/// The cases of one module, and how they are scheduled.
pub struct Module {
    name: &'static str,
    tests: fn() -> Vec<Test>,
    is_alone: bool,
    batch: usize,
    every_transport: bool,
}

/// A case of a module.
struct Entry<'a> {
    title: String,
    module: &'a Module,
    test: Test,
}

/// Names the cases of a module: functions of type `fn() -> Result<()>`.
#[macro_export]
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(crate) fn tests() -> Vec<$crate::harness::Test> {
            vec![$($crate::harness::Test::new(stringify!($name), $name)),+]
        }
    };
}

/// Names the cases of a module: those behind `each` run over the transports of the server under
/// test and receive the name of the transport, those behind `once` run once.
#[macro_export]
macro_rules! tests_over_transports {
    (each: [$($each:ident),+ $(,)?], once: [$($once:ident),* $(,)?] $(,)?) => {
        pub(crate) fn tests() -> Vec<$crate::harness::Test> {
            let each: &[(&str, $crate::harness::Case)] = &[$((stringify!($each), $each)),+];
            let once = vec![$($crate::harness::Test::new(stringify!($once), $once)),*];
            $crate::harness::over_transports(each, once)
        }
    };
}

/// A case that receives the name of a transport.
pub type Case = fn(&'static str) -> Result<()>;

/// Each of the cases over each transport of the server under test, and the others once.
pub fn over_transports(each: &[(&str, Case)], once: Vec<Test>) -> Vec<Test> {
    let mut tests = Vec::new();
    for &(name, case) in each {
        for transport in Subject::chosen().transports() {
            tests.push(Test::over(name, transport, move || case(transport)));
        }
    }
    tests.extend(once);
    tests
}

impl Test {
    /// A case that exists once.
    pub fn new(name: &str, run: impl Fn() -> Result<()> + 'static) -> Test {
        Test {
            name: name.into(),
            route: None,
            is_alone: false,
            is_long: false,
            run: Box::new(run),
        }
    }

    /// A case that exists once per transport. Its name is `case` with the transport behind it.
    pub fn over(
        case: &str,
        transport: &'static str,
        run: impl Fn() -> Result<()> + 'static,
    ) -> Test {
        Test {
            name: format!("{case}_over_{transport}"),
            route: Some(Route {
                case: case.into(),
                transport,
            }),
            is_alone: false,
            is_long: false,
            run: Box::new(run),
        }
    }

    /// The case depends on the order in which a server without load handles two connections: it
    /// runs last, as the cases of a module that is [alone](Module::alone).
    #[must_use]
    pub fn alone(mut self) -> Test {
        self.is_alone = true;
        self
    }

    /// The case takes minutes: only a full run has it, and a filter that names it.
    #[must_use]
    pub fn long(mut self) -> Test {
        self.is_long = true;
        self
    }
}

impl Module {
    /// The module `name`. `tests` lists its cases. Each case is a separate process, beside
    /// others.
    pub const fn new(name: &'static str, tests: fn() -> Vec<Test>) -> Module {
        Module {
            name,
            tests,
            is_alone: false,
            batch: 1,
            every_transport: false,
        }
    }

    /// Its cases measure time or memory: they run last, one at a time.
    pub const fn alone(mut self) -> Module {
        self.is_alone = true;
        self
    }

    /// Its cases share a server: ten of them are one process.
    pub const fn batched(mut self) -> Module {
        self.batch = 10;
        self
    }

    /// Its cases depend on the transport: they run over each of them in every run.
    pub const fn every_transport(mut self) -> Module {
        self.every_transport = true;
        self
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        (self.tests)().into_iter().map(|test| Entry {
            title: format!("{}::{}", self.name, test.name),
            module: self,
            test,
        })
    }
}

impl Entry<'_> {
    /// Whether the case belongs to a default run without filters.
    fn is_default(&self, transports: &[&str]) -> bool {
        if self.test.is_long {
            return false;
        }
        let Some(Route { case, transport }) = &self.test.route else {
            return true;
        };
        let is_chosen = *transport == FIRST_TRANSPORT || *transport == second_transport(case);
        // smbd is reached by two transports only: there is nothing to leave out.
        let is_short = transports.len() <= 2;
        is_chosen || is_short || self.module.every_transport
    }

    fn plan_line(&self) -> String {
        let schedule = if self.module.is_alone || self.test.is_alone {
            "alone"
        } else {
            "beside"
        };
        format!("{}\t{schedule}\t{}", self.title, self.module.batch)
    }
}

/// The transport beside TCP over which a case runs: its name decides.
fn second_transport(case: &str) -> &'static str {
    let others = &Subject::Smbeam.transports()[1..];
    others[fnv1a(case) as usize % others.len()]
}

/// The FNV-1a hash: the same on every machine and in every version of Rust.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

/// Runs the cases that the command line names, one after the other.
pub fn run(modules: &[Module]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (flags, filters): (Vec<_>, Vec<_>) = arguments.iter().partition(|a| a.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|given| *given == flag);
    let transports = Subject::chosen().transports();
    let is_wanted = |entry: &Entry<'_>| match filters.as_slice() {
        [] => scale::is_full() || entry.is_default(transports),
        filters => filters.iter().any(|filter| match has("--exact") {
            true => entry.title == filter.as_str(),
            false => entry.title.contains(filter.as_str()),
        }),
    };
    let entries = modules.iter().flat_map(Module::entries);
    let (chosen, rest): (Vec<_>, Vec<_>) = entries.partition(is_wanted);
    if has("--list") || has("--plan") {
        for entry in &chosen {
            match has("--plan") {
                true => println!("{}", entry.plan_line()),
                false => println!("{}: test", entry.title),
            }
        }
        return ExitCode::SUCCESS;
    }
    run_all(&chosen, rest.len())
}

fn run_all(entries: &[Entry<'_>], filtered: usize) -> ExitCode {
    println!("\nrunning {} tests", entries.len());
    let start = Instant::now();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for Entry { title, test, .. } in entries {
        let begin = Instant::now();
        let outcome = run_one(test);
        let time = begin.elapsed().as_secs_f64();
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("test {title} ... ok ({time:.1} s)");
            }
            Outcome::Skipped(reason) => {
                skipped += 1;
                println!("test {title} ... skipped: {reason}");
            }
            Outcome::Failed(reason) => {
                failed += 1;
                println!("test {title} ... FAILED ({time:.1} s)\n    {reason}");
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; \
         0 measured; {filtered} filtered out; finished in {:.2}s\n",
        start.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(failed > 0))
}

fn run_one(test: &Test) -> Outcome {
    match panic::catch_unwind(AssertUnwindSafe(&test.run)) {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(error)) => outcome_of(&error),
        Err(payload) => Outcome::Failed(message(payload.as_ref())),
    }
}

/// A case that finds no lab is skipped; every other error is a failure.
fn outcome_of(error: &Error) -> Outcome {
    match error.downcast_ref::<Missing>() {
        Some(Missing(reason)) => Outcome::Skipped(reason.clone()),
        None => Outcome::Failed(format!("{error:#}").replace('\n', "\n    ")),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use super::{Entry, Module, Test, fnv1a, second_transport};
    use crate::subject::Subject;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(""), 0x811c_9dc5);
        assert_eq!(fnv1a("foobar"), 0xbf9c_f968);
    }

    #[test]
    fn a_default_run_has_tcp_and_one_other_transport() {
        let all = Subject::Smbeam.transports();
        let module = Module::new("module", Vec::new);
        let chosen = all.iter().filter(|transport| {
            let test = Test::over("case", transport, || Ok(()));
            entry(&module, test).is_default(all)
        });
        let chosen: Vec<_> = chosen.copied().collect();
        assert_eq!(chosen, ["tcp", second_transport("case")]);
    }

    #[test]
    fn a_default_run_has_no_long_cases() {
        let module = Module::new("module", Vec::new);
        let case = || Test::new("case", || Ok(()));
        assert!(entry(&module, case()).is_default(&["tcp"]));
        assert!(!entry(&module, case().long()).is_default(&["tcp"]));
    }

    fn entry(module: &Module, test: Test) -> Entry<'_> {
        Entry {
            title: String::new(),
            module,
            test,
        }
    }
}
