//! A test program whose tests can be skipped with a reason.
//!
//! It understands `--list`, `--exact`, `--nocapture` (there is nothing to capture) and name
//! filters, and prints the closing line of libtest, in which skipped tests are counted as ignored.

use std::any::Any;
use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Error, Result};

use crate::lab::Missing;
use crate::subject::Subject;

/// A named test.
pub struct Test<'a> {
    name: String,
    run: Box<dyn Fn() -> Result<()> + 'a>,
}

/// Names the functions of a test program and makes its `main`.
#[macro_export]
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::harness::run(&[$($crate::harness::Test::new(stringify!($name), $name)),+])
        }
    };
}

/// Names the functions of a test program and makes its `main`: those behind `each` are run over
/// every transport of the server under test, whose name they are told, those behind `once` are not.
#[macro_export]
macro_rules! tests_over_transports {
    (each: [$($each:ident),+ $(,)?], once: [$($once:ident),* $(,)?] $(,)?) => {
        fn main() -> std::process::ExitCode {
            let each: &[(&str, $crate::harness::Case)] = &[$((stringify!($each), $each)),+];
            let once = vec![$($crate::harness::Test::new(stringify!($once), $once)),*];
            $crate::harness::run_over_transports(each, once)
        }
    };
}

/// A test that is told a transport.
pub type Case = fn(&'static str) -> Result<()>;

/// Runs each of the cases over all transports of the server under test, and the others once.
pub fn run_over_transports(each: &[(&str, Case)], once: Vec<Test<'_>>) -> ExitCode {
    let mut tests = Vec::new();
    for (name, case) in each {
        for transport in Subject::chosen().transports() {
            let title = format!("{name}_over_{transport}");
            tests.push(Test::new(&title, move || case(transport)));
        }
    }
    tests.extend(once);
    run(&tests)
}

enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

impl<'a> Test<'a> {
    /// The test that `run` is.
    pub fn new(name: &str, run: impl Fn() -> Result<()> + 'a) -> Test<'a> {
        Test {
            name: name.into(),
            run: Box::new(run),
        }
    }
}

/// Runs the tests that the command line asks for, one after the other.
pub fn run(tests: &[Test<'_>]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (flags, filters): (Vec<_>, Vec<_>) = arguments.iter().partition(|a| a.starts_with("--"));
    let is_exact = flags.iter().any(|flag| *flag == "--exact");
    let wanted = |test: &&Test<'_>| {
        filters.is_empty()
            || filters.iter().any(|filter| match is_exact {
                true => test.name == filter.as_str(),
                false => test.name.contains(filter.as_str()),
            })
    };
    let chosen: Vec<&Test<'_>> = tests.iter().filter(wanted).collect();
    if flags.iter().any(|flag| *flag == "--list") {
        chosen
            .iter()
            .for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    run_all(&chosen, tests.len() - chosen.len())
}

fn run_all(tests: &[&Test<'_>], filtered: usize) -> ExitCode {
    println!("\nrunning {} tests", tests.len());
    let start = Instant::now();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for test in tests {
        let begin = Instant::now();
        let outcome = run_one(test);
        let time = begin.elapsed().as_secs_f64();
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("test {} ... ok ({time:.1} s)", test.name);
            }
            Outcome::Skipped(reason) => {
                skipped += 1;
                println!("test {} ... skipped: {reason}", test.name);
            }
            Outcome::Failed(reason) => {
                failed += 1;
                println!("test {} ... FAILED ({time:.1} s)\n    {reason}", test.name);
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

fn run_one(test: &Test<'_>) -> Outcome {
    match panic::catch_unwind(AssertUnwindSafe(&test.run)) {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(error)) => outcome_of(&error),
        Err(payload) => Outcome::Failed(message(payload.as_ref())),
    }
}

/// A test that finds no lab is skipped; every other error is a failure.
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
