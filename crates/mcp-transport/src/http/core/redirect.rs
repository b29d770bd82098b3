//! Which redirects are followed: within the origin, a few times, and only where method and body stay as they are.

use http::{HeaderMap, Method, StatusCode, header::LOCATION};

use super::target::Target;

/// Why a redirect is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefusedRedirect {
    /// It leads to another origin, named here; following it would carry credentials there.
    CrossOrigin { origin: String },
    /// It would be repeated as a GET. It leads elsewhere at this origin.
    ChangesMethod { status: u16, origin: String },
    /// The `Location` is absent or no usable URL.
    NoLocation,
    /// More hops than allowed.
    TooMany { limit: u32 },
}

/// Whether a status asks for a redirect. 300, 304 and 305 do not name a place to repeat a request at.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where to repeat a request of this method, which was the `hops`-th one, counted from 0.
pub(crate) fn follow(
    from: &Target,
    method: &Method,
    status: StatusCode,
    headers: &HeaderMap,
    hops: u32,
    limit: u32,
) -> Result<Target, RefusedRedirect> {
    let target = within_origin(from, headers)?;
    if changes(method, status) {
        return Err(RefusedRedirect::ChangesMethod { status: status.as_u16(), origin: target.to_string() });
    }
    if hops >= limit { Err(RefusedRedirect::TooMany { limit }) } else { Ok(target) }
}

/// Whether a request of this method would be repeated as a GET (RFC 9110 section 15.4).
fn changes(method: &Method, status: StatusCode) -> bool {
    match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => *method != Method::GET,
        _ => false,
    }
}

fn within_origin(from: &Target, headers: &HeaderMap) -> Result<Target, RefusedRedirect> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let url = location.and_then(|location| from.join(location)).ok_or(RefusedRedirect::NoLocation)?;
    if !from.is_same_origin(&url) {
        return Err(RefusedRedirect::CrossOrigin { origin: url.origin().ascii_serialization() });
    }
    Target::from_url(url).map_err(|_| RefusedRedirect::NoLocation)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn run(status: u16, location: Option<&str>, hops: u32) -> Result<String, RefusedRedirect> {
        let from = Target::parse("http://h:8080/mcp").unwrap();
        let mut headers = HeaderMap::new();
        if let Some(location) = location {
            headers.insert(LOCATION, HeaderValue::from_str(location).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        follow(&from, &Method::POST, status, &headers, hops, 3).map(|target| target.full())
    }

    /// field:FR-058, auth:SEC-03, auth:LIM-03
    #[test]
    fn same_origin_307_and_308_are_followed() {
        for status in [307, 308] {
            assert_eq!(run(status, Some("/mcp/"), 0).as_deref(), Ok("http://h:8080/mcp/"));
            assert_eq!(run(status, Some("http://h:8080/x"), 2).as_deref(), Ok("http://h:8080/x"));
            assert_eq!(run(status, Some("//h:8080/x"), 0).as_deref(), Ok("http://h:8080/x"));
            assert_eq!(run(status, Some("/x"), 3), Err(RefusedRedirect::TooMany { limit: 3 }));
        }
    }

    /// seed:E14, auth:SEC-03
    #[test]
    fn other_redirects_are_refused_by_reason() {
        for (location, origin) in [
            ("http://evil.example/mcp", "http://evil.example"),
            ("http://h:8081/mcp", "http://h:8081"),
            ("https://h:8080/mcp", "https://h:8080"),
            ("//evil.example/mcp", "http://evil.example"),
            (r"\\evil.example\mcp", "http://evil.example"),
        ] {
            for status in [301, 302, 303, 307, 308] {
                assert_eq!(
                    run(status, Some(location), 0),
                    Err(RefusedRedirect::CrossOrigin { origin: origin.to_owned() }),
                    "{location}"
                );
            }
        }
        for status in [301, 302, 303] {
            let origin = "http://h:8080".to_owned();
            assert_eq!(run(status, Some("/mcp/"), 0), Err(RefusedRedirect::ChangesMethod { status, origin }));
        }
        assert_eq!(run(307, None, 0), Err(RefusedRedirect::NoLocation));
        assert_eq!(run(307, Some("http://"), 0), Err(RefusedRedirect::NoLocation));
        assert_eq!(run(307, Some("http://user:pw@h:8080/"), 0), Err(RefusedRedirect::NoLocation));
    }

    #[test]
    fn only_five_statuses_redirect() {
        let redirects: Vec<u16> =
            (300..400).filter(|&status| is_redirect(StatusCode::from_u16(status).unwrap())).collect();
        assert_eq!(redirects, [301, 302, 303, 307, 308]);
    }
}
