//! The token that clients of the metrics must send.

use std::fs;
use std::io;

use crate::config::{MetricsSection, Token};
use crate::error::StartError;

/// Returns the token of the configuration, from its file if one is set. `None` without a token.
///
/// # Errors
/// The file cannot be read, or its content is no token.
pub(crate) fn load(section: &MetricsSection) -> Result<Option<Token>, StartError> {
    let Some(path) = &section.token_file else {
        let token = section.token.as_ref();
        return Ok(token.map(|token| token.get_ref().clone()));
    };
    let path = path.get_ref();
    let token = fs::read_to_string(path).and_then(|text| {
        let token = Token::try_from(text.trim().to_owned());
        token.map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))
    });
    token.map(Some).map_err(|error| StartError::Metrics {
        setting: format!("metrics.token_file: {}", path.display()),
        error,
    })
}

#[cfg(test)]
mod tests {
    use crate::config::unplaced;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn a_token_comes_from_the_key_or_from_the_file() {
        assert!(load(&MetricsSection::default()).expect("good").is_none());
        let token = Token::try_from(TOKEN.to_owned()).expect("a token");
        let of_key = MetricsSection {
            token: Some(unplaced(token)),
            ..MetricsSection::default()
        };
        let token = load(&of_key).expect("good").expect("a token");
        assert!(token.is(TOKEN.as_bytes()));
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("token");
        let of_file = MetricsSection {
            token_file: Some(unplaced(path.clone())),
            ..MetricsSection::default()
        };
        let error = load(&of_file).expect_err("no file").to_string();
        assert!(error.contains("metrics.token_file: "), "{error}");
        fs::write(&path, "short\n").expect("a file");
        let error = load(&of_file).expect_err("no token").to_string();
        assert!(error.contains("16 to 1024"), "{error}");
        fs::write(&path, format!(" {TOKEN}\n")).expect("a file");
        let token = load(&of_file).expect("good").expect("a token");
        assert!(token.is(TOKEN.as_bytes()));
    }
}
