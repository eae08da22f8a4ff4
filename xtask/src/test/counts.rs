//! Counting tests by the closing lines of their programs.

use std::fmt;

/// How many tests passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
}

impl Counts {
    /// The counts of a step that is one check.
    pub(crate) fn of_check(passed: bool) -> Counts {
        Counts {
            passed: u32::from(passed),
            failed: u32::from(!passed),
            skipped: 0,
        }
    }

    /// Adds the tests of another step.
    pub(crate) fn add(&mut self, other: Counts) {
        let Counts {
            passed,
            failed,
            skipped,
        } = other;
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
    }

    /// Adds what a line "test result: ok. 3 passed; 0 failed; 1 ignored; ..." says; other lines say
    /// nothing.
    pub(crate) fn add_line(&mut self, line: &str) {
        let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|l| l.split_once(". "))
        else {
            return;
        };
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u32>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn closing_lines_are_summed() {
        let mut counts = Counts::default();
        counts
            .add_line("test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 5 filtered out");
        counts.add_line("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured");
        counts.add_line("test lab::tests::x ... ok");
        assert_eq!(
            counts,
            Counts {
                passed: 5,
                failed: 1,
                skipped: 1
            }
        );
        assert_eq!(counts.to_string(), "5 passed, 1 failed, 1 skipped");
    }
}
