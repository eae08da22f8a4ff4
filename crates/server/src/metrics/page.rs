//! The web page with the activity of the server. It needs nothing from other hosts.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};

/// The page loads its own files and asks its own server, and nothing else. No other page shows it
/// in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page: path, type and contents.
const FILES: [(&str, &str, &str); 3] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("page/index.html"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("page/page.css"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_str!("page/page.js"),
    ),
];

/// The file of the page with this path.
pub(super) fn find(path: &str) -> Option<Response<Full<Bytes>>> {
    let (_, kind, text) = FILES.iter().find(|(known, ..)| *known == path)?;
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    let headers = answer.headers_mut();
    let policy = HeaderValue::from_static(POLICY);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_sniff = HeaderValue::from_static("nosniff");
    headers.insert(hyper::header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    let referrer = HeaderValue::from_static("no-referrer");
    headers.insert(hyper::header::REFERRER_POLICY, referrer);
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_no_other_host_and_has_no_code_of_its_own() {
        for (path, _, text) in FILES {
            for forbidden in ["http:", "https:", "//cdn", "<style", "onclick", "eval("] {
                assert!(!text.contains(forbidden), "{forbidden} in {path}");
            }
        }
        let (_, _, page) = FILES[0];
        assert_eq!(page.matches("<script").count(), 1);
    }
}
