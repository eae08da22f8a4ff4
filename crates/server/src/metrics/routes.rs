//! The resources of the HTTP server.

use std::net::IpAddr;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tracing::info;

use super::exporter;
use super::health::{Health, Readiness, Running};
use super::page;
use crate::codes::{Reason as _, RefusedControl};
use crate::config::Token;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const PATHS: &str = "paths: /metrics /healthz /readyz /api/v1/status /api/v1/activity\n";

/// An answer.
pub(super) type Answer = Response<Full<Bytes>>;

/// The resources, and the clients that may read them.
#[derive(Debug)]
pub(super) struct Routes {
    pub(super) health: Arc<Health>,
    /// The token that clients must send; `None` if they need none.
    pub(super) token: Option<Token>,
    /// Whether a request must name this machine as its host. Only such a server is safe from web
    /// pages that resolve their name to the loopback address (DNS rebinding).
    pub(super) is_local: bool,
    /// Whether the web page is served.
    pub(super) has_page: bool,
}

impl Routes {
    /// Answers a request. Its body does not matter.
    pub(super) async fn answer<B>(&self, request: Request<B>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD\n");
            let allowed = HeaderValue::from_static("GET, HEAD");
            answer.headers_mut().insert(ALLOW, allowed);
            return answer;
        }
        if self.is_local && self.token.is_none() && !names_this_machine(&request) {
            note_refused(RefusedControl::MetricsHost, &request);
            let text = "the host is not this machine: use its address or localhost\n";
            return plain(StatusCode::MISDIRECTED_REQUEST, text);
        }
        let is_allowed = self.is_allowed(&request);
        match request.uri().path() {
            "/metrics" | "/api/v1/status" | "/api/v1/activity" if !is_allowed => {
                note_refused(RefusedControl::MetricsToken, &request);
                unauthorized()
            }
            "/healthz" => self.health().await,
            "/readyz" => self.readiness(is_allowed).await,
            "/metrics" => self.metrics().await,
            "/api/v1/status" => {
                self.described(|Running { observer, config }| observer.status(config))
                    .await
            }
            "/api/v1/activity" => self.described(|running| running.observer.activity()).await,
            // The page has no secrets: it asks the user for the token.
            path => match page::find(path).filter(|_| self.has_page) {
                Some(answer) => answer,
                None => plain(StatusCode::NOT_FOUND, PATHS),
            },
        }
    }

    fn is_allowed<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let header = request.headers().get(AUTHORIZATION);
        let sent = header.and_then(|header| header.as_bytes().split_first_chunk());
        // The scheme is case-insensitive. RFC 9110 11.1
        sent.is_some_and(|(scheme, sent): (&[u8; 7], _)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && token.is(sent)
        })
    }

    /// The process is alive while it starts and stops, and while a worker answers.
    async fn health(&self) -> Answer {
        let Some(Running { observer, .. }) = self.health.running() else {
            return plain(StatusCode::OK, "ok\n");
        };
        let workers = observer.shared().mailboxes().len();
        let load = blocking(move || observer.load()).await;
        match load {
            Some((_, silent)) if silent < workers => plain(StatusCode::OK, "ok\n"),
            _ => plain(StatusCode::SERVICE_UNAVAILABLE, "no worker answers\n"),
        }
    }

    /// Only clients with the token see the shares.
    async fn readiness(&self, is_allowed: bool) -> Answer {
        let readiness = self.health.readiness().await;
        let status = match readiness.ready {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let shares = readiness.shares.filter(|_| is_allowed);
        json(
            status,
            &Readiness {
                shares,
                ..readiness
            },
        )
    }

    async fn metrics(&self) -> Answer {
        let Some(Running { observer, .. }) = self.health.running() else {
            return not_running();
        };
        let shares = self.health.shares(&observer).await;
        match blocking(move || exporter::text(&observer, &shares)).await {
            Some(text) => with_body(StatusCode::OK, OPEN_METRICS, text.into()),
            None => plain(StatusCode::INTERNAL_SERVER_ERROR, "a bug in the server\n"),
        }
    }

    /// A description of the running server as JSON.
    async fn described<T: Serialize>(
        &self,
        describe: impl FnOnce(Running) -> T + Send + 'static,
    ) -> Answer {
        let Some(running) = self.health.running() else {
            return not_running();
        };
        let described = blocking(move || serde_json::to_vec(&describe(running))).await;
        match described {
            Some(Ok(text)) => with_body(StatusCode::OK, JSON, text.into()),
            _ => plain(StatusCode::INTERNAL_SERVER_ERROR, "a bug in the server\n"),
        }
    }
}

/// Logs a refused request. The limit of log lines with one message holds for it.
fn note_refused<B>(refusal: RefusedControl, request: &Request<B>) {
    let (path, code) = (request.uri().path(), refusal.code());
    info!(path, code, "request for metrics refused");
}

/// Runs a closure on a thread. `None` if it panics.
async fn blocking<T: Send + 'static>(closure: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(closure).await.ok()
}

/// Whether the host of a request is an IP address or localhost. A request without a host, as of
/// HTTP/1.0, comes from no browser.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let header = request.headers().get(HOST);
    let Some(host) = request
        .uri()
        .host()
        .map(str::as_bytes)
        .or(header.map(HeaderValue::as_bytes))
    else {
        return true;
    };
    let host = str::from_utf8(host).unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_address = address.unwrap_or(host).parse::<IpAddr>().is_ok();
    is_address || host.eq_ignore_ascii_case("localhost")
}

fn unauthorized() -> Answer {
    let text = "the header `Authorization: Bearer TOKEN` is missing or wrong\n";
    let mut answer = plain(StatusCode::UNAUTHORIZED, text);
    let scheme = HeaderValue::from_static("Bearer");
    answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    answer
}

fn not_running() -> Answer {
    plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "the server starts or stops\n",
    )
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    with_body(status, TEXT, text.into())
}

fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(value).expect("the value has strings as keys");
    with_body(status, JSON, text.into())
}

fn with_body(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_sniff = HeaderValue::from_static("nosniff");
    headers.insert(hyper::header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(token: Option<&str>) -> Routes {
        let token = token.map(|token| Token::try_from(token.to_owned()).expect("a token"));
        Routes {
            health: Health::new(),
            token,
            is_local: true,
            has_page: false,
        }
    }

    fn answer(routes: &Routes, method: Method, path: &str, header: (&str, &str)) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header.0, header.1).body(());
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let answer = routes.answer(request.expect("a request"));
        runtime.expect("a runtime").block_on(answer)
    }

    #[test]
    fn hosts_of_other_machines_are_refused() {
        let routes = routes(None);
        for (host, expected) in [
            ("127.0.0.1:9445", StatusCode::OK),
            ("[::1]:9445", StatusCode::OK),
            ("[::1]", StatusCode::OK),
            ("localhost", StatusCode::OK),
            ("LOCALHOST:9445", StatusCode::OK),
            ("example.org", StatusCode::MISDIRECTED_REQUEST),
            (
                "localhost.example.org:9445",
                StatusCode::MISDIRECTED_REQUEST,
            ),
            ("127.0.0.1.example.org", StatusCode::MISDIRECTED_REQUEST),
            ("", StatusCode::MISDIRECTED_REQUEST),
        ] {
            let answer = answer(&routes, Method::GET, "/healthz", ("host", host));
            assert_eq!(answer.status(), expected, "{host}");
        }
    }

    #[test]
    fn the_token_protects_all_but_health() {
        let routes = routes(Some("0123456789abcdef"));
        let status = |path: &str, authorization: &str| {
            let header = ("authorization", authorization);
            answer(&routes, Method::GET, path, header).status()
        };
        let (right, wrong) = ("bearer 0123456789abcdef", "Bearer 0123456789abcdeX");
        // The server is starting.
        assert_eq!(status("/metrics", right), StatusCode::SERVICE_UNAVAILABLE);
        for path in ["/metrics", "/api/v1/status", "/api/v1/activity"] {
            for sent in [
                wrong,
                "0123456789abcdef",
                "Bearer",
                "",
                "Basic 0123456789abcdef",
            ] {
                assert_eq!(status(path, sent), StatusCode::UNAUTHORIZED, "{sent}");
            }
        }
        assert_eq!(status("/healthz", wrong), StatusCode::OK);
        assert_eq!(status("/readyz", wrong), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn other_methods_and_paths_have_a_status() {
        let routes = routes(None);
        let status = |method, path: &str| {
            let header = ("host", "localhost");
            answer(&routes, method, path, header).status()
        };
        assert_eq!(status(Method::HEAD, "/healthz"), StatusCode::OK);
        assert_eq!(
            status(Method::POST, "/healthz"),
            StatusCode::METHOD_NOT_ALLOWED
        );
        assert_eq!(status(Method::GET, "/"), StatusCode::NOT_FOUND);
        assert_eq!(status(Method::GET, "/metrics/x"), StatusCode::NOT_FOUND);
    }

    #[test]
    fn the_page_is_there_if_it_is_configured_and_only_for_this_machine() {
        let routes = Routes {
            has_page: true,
            ..routes(None)
        };
        for path in ["/", "/page.js", "/page.css"] {
            let page = answer(&routes, Method::GET, path, ("host", "localhost"));
            assert_eq!(page.status(), StatusCode::OK);
            assert!(page.headers().contains_key("content-security-policy"));
            let other = answer(&routes, Method::GET, path, ("host", "example.org"));
            assert_eq!(other.status(), StatusCode::MISDIRECTED_REQUEST);
        }
    }
}
