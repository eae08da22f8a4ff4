//! The known name that is most like a wrong one.

/// Least likeness of a name, from 0 to 1, so that it is worth a mention.
const LIKENESS_MIN: f64 = 0.85;

/// Returns the name that is most like `wrong`, without regard to case; `None` if none is like it.
pub(super) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let with_likeness =
        names.map(|name| (strsim::jaro_winkler(&wrong, &name.to_lowercase()), name));
    let likest = with_likeness.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (likest.0 >= LIKENESS_MIN).then_some(likest.1)
}
