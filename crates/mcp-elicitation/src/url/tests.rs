use super::{SafeUrl, UrlPolicy, UrlRefusal, UrlVerdict, UrlWarning};

fn policy() -> UrlPolicy {
    UrlPolicy::default().server("https://mcp.example.com/mcp")
}

fn refusal(url: &str) -> Option<String> {
    policy().examine(url).refusal().map(ToString::to_string)
}

// auth:SEC-06 seed:S-19 seed:B15 field:FR-141 protocol:E-15 protocol:H-58
#[test]
fn only_absolute_https_urls_without_credentials_are_acceptable() {
    let cases = [
        ("", "the URL is empty"),
        ("javascript:alert(1)", "the URL's scheme is not https"),
        ("JaVaScRiPt:alert(1)", "the URL's scheme is not https"),
        ("data:text/html,x", "the URL's scheme is not https"),
        ("file:///etc/passwd", "the URL's scheme is not https"),
        ("vscode://x", "the URL's scheme is not https"),
        ("ftp://example.com/", "the URL's scheme is not https"),
        ("ws://localhost/", "the URL's scheme is not https"),
        ("http://example.com/", "http is not acceptable for a host that is not loopback"),
        ("http://localhost.example.com/", "http is not acceptable for a host that is not loopback"),
        ("http://localhost./", "http is not acceptable for a host that is not loopback"),
        ("http://128.0.0.1/", "http is not acceptable for a host that is not loopback"),
        ("http://[::2]/", "http is not acceptable for a host that is not loopback"),
        ("http://[::ffff:127.0.0.1]/", "http is not acceptable for a host that is not loopback"),
        ("https://user:pw@host.example/", "the URL has user information before the host"),
        ("https://user@host.example/", "the URL has user information before the host"),
        ("https://:pw@host.example/", "the URL has user information before the host"),
        ("https://@host.example/", "the URL has user information before the host"),
        ("https://bank.com@evil.tld", "the URL has user information before the host"),
        ("https://bank.com%2F@evil.tld", "the URL has user information before the host"),
        ("https://", "the URL has no host"),
        ("https:///example.com/", "the URL has no host"),
        ("https://?q", "the URL has no host"),
        ("https:example.com", "not an absolute URL"),
        ("https:/example.com", "not an absolute URL"),
        ("//example.com/", "not an absolute URL"),
        ("/path", "not an absolute URL"),
        ("example.com", "not an absolute URL"),
        ("example.com/a:b", "not an absolute URL"),
        ("not a url", "the URL has white space"),
        (" https://example.com/", "the URL has white space"),
        ("https://example.com/ ", "the URL has white space"),
        ("https://example.com/a b", "the URL has white space"),
        ("https://example.com/\u{a0}", "the URL has white space"),
        ("https://example.com/\u{3000}", "the URL has white space"),
        ("https://exa\tmple.com/", "the URL has the control character U+0009"),
        ("java\nscript:alert(1)", "the URL has the control character U+000A"),
        ("https://example.com/\u{0}", "the URL has the control character U+0000"),
        ("https://example.com/\u{9b}", "the URL has the control character U+009B"),
        ("https:\\\\example.com\\", "the URL has a backslash"),
        ("https://example.com\\@evil.com/", "the URL has a backslash"),
        ("https://exam%70le.com/", "the URL's host is written in a disguised form"),
        ("https://\u{ff45}xample.com/", "the URL's host is written in a disguised form"),
        ("https://exam\u{ad}ple.com/", "the URL's host is written in a disguised form"),
        ("https://example\u{3002}com/", "the URL's host is written in a disguised form"),
        ("https://\u{ff50}aypal.b\u{fc}cher.example/", "the URL's host is written in a disguised form"),
        ("https://%70aypal.b\u{fc}cher.example/", "the URL's host is written in a disguised form"),
        ("https://pay\u{ad}pal.b\u{fc}cher.example/", "the URL's host is written in a disguised form"),
        ("https://pay\u{200b}pal.xn--bcher-kva.example/", "the URL's host is written in a disguised form"),
        (
            "https://login.example\u{3002}b\u{fc}cher.example/",
            "the URL's host is written in a disguised form",
        ),
        ("https://login.b\u{fc}\u{200b}cher.example/", "the URL's host is written in a disguised form"),
        ("https://login.\u{ff42}\u{fc}cher.example/", "the URL's host is written in a disguised form"),
        ("https://0x7f000001/", "the URL's host is written in a disguised form"),
        ("https://2130706433/", "the URL's host is written in a disguised form"),
        ("https://127.1/", "the URL's host is written in a disguised form"),
        ("https://0177.0.0.1/", "the URL's host is written in a disguised form"),
        ("https://[::zz]/", "not a valid URL"),
        ("https://example.com:99999/", "not a valid URL"),
        ("https://exa<mple.com/", "not a valid URL"),
        ("https://exa\u{202e}mple.com/", "not a valid URL"),
        ("https://256.256.256.256/", "not a valid URL"),
    ];
    for (url, reason) in cases {
        assert_eq!(refusal(url).as_deref(), Some(reason), "{url:?}");
        assert_eq!(policy().examine(url).verdict(), UrlVerdict::Refuse);
        assert!(SafeUrl::parse(url, &policy()).is_err());
    }
}

#[test]
fn what_is_acceptable_is_not_changed() {
    for (url, normalized, host, port) in [
        ("https://github.com/login", "https://github.com/login", "github.com", None),
        ("HTTPS://GitHub.COM", "https://github.com/", "github.com", None),
        ("https://github.com:443/", "https://github.com/", "github.com", None),
        ("https://github.com/a/../b?q=%20#f", "https://github.com/b?q=%20#f", "github.com", None),
        ("https://github.com/\u{e9}?q=@:", "https://github.com/%C3%A9?q=@:", "github.com", None),
        ("https://github.com.", "https://github.com./", "github.com.", None),
        ("http://localhost:3000/cb", "http://localhost:3000/cb", "localhost", Some(3000)),
    ] {
        let safe = SafeUrl::parse(url, &policy()).unwrap();
        assert_eq!(
            (safe.given(), safe.normalized(), safe.host(), safe.port()),
            (url, normalized, host, port)
        );
        assert_eq!(safe.warnings(), [], "{url}");
        assert_eq!(policy().examine(url).verdict(), UrlVerdict::Ok);
    }
}

#[test]
fn loopback_http_is_a_switch() {
    let strict = UrlPolicy::default().allow_loopback_http(false);
    for url in [
        "http://localhost/",
        "http://LOCALHOST:1/",
        "http://127.0.0.1:8080/",
        "http://127.9.9.9/",
        "http://[::1]:5/",
    ] {
        assert!(SafeUrl::parse(url, &policy()).unwrap().is_loopback(), "{url}");
        let refusal = SafeUrl::parse(url, &strict).unwrap_err();
        assert_eq!(refusal, UrlRefusal::PlainLoopbackHttp, "{url}");
        assert_eq!(refusal.to_string(), "http is not acceptable, not even for a loopback host");
    }
    assert!(!SafeUrl::parse("https://github.com/", &policy()).unwrap().is_loopback());
    assert!(SafeUrl::parse("https://localhost/", &strict).is_ok());
}

// protocol:E-13 auth:SEC-06
#[test]
fn suspicious_urls_carry_warnings() {
    use UrlWarning::{Bidi, IpHost, Long, Lookalike, MixedScript, Port, Punycode, Userinfo};
    let long = format!("https://github.com/{}", "a".repeat(2048 - 18));
    let fits = format!("https://github.com/{}", "a".repeat(2048 - 19));
    let cases: Vec<(&str, Vec<UrlWarning>)> = vec![
        ("https://xn--bcher-kva.example/", vec![Punycode]),
        ("https://b\u{fc}cher.example/", vec![Punycode]),
        ("https://xn--pple-43d.com/", vec![Punycode, MixedScript]),
        ("https://\u{430}pple.com/", vec![Punycode, MixedScript]),
        ("https://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com/", vec![Punycode]),
        ("https://1.2.3.4/", vec![IpHost]),
        ("https://[2001:db8::1]/", vec![IpHost]),
        ("http://127.0.0.1:8080/", vec![IpHost]),
        ("https://github.com:8443/", vec![Port]),
        ("https://localhost:8443/", vec![]),
        ("https://bank.com@evil.tld", vec![Userinfo]),
        ("https://github.com/a@b", vec![]),
        (&long, vec![Long]),
        (&fits, vec![]),
        ("https://github.com/\u{202e}cod.exe", vec![Bidi]),
        ("https://github.com/%E2%80%AEcod", vec![Bidi]),
        ("https://github.com/%e2%81%a6cod", vec![Bidi]),
        ("https://exa\u{202e}mple.com/", vec![Bidi]),
        ("https://examp1e.com/", vec![Lookalike]),
        ("https://mcp.example.com.evil.net/", vec![Lookalike]),
        ("https://\u{435}xample.com/", vec![Punycode, MixedScript, Lookalike]),
        ("https://login.example.com/", vec![]),
    ];
    for (url, expected) in cases {
        assert_eq!(policy().examine(url).warnings(), expected, "{url}");
        if let Ok(safe) = SafeUrl::parse(url, &policy()) {
            assert_eq!(safe.warnings(), expected, "{url}");
        }
    }
    assert_eq!(UrlPolicy::default().examine("https://examp1e.com/").warnings(), []);
    assert_eq!(policy().examine("https://github.com:8443/").verdict().as_str(), "warn");
}

// field:FR-141
#[test]
fn length_is_limited_below_at_and_above() {
    let url = |bytes: usize| format!("https://github.com/{}", "a".repeat(bytes - 19));
    for (bytes, is_refused) in [(10_240, false), (16_383, false), (16_384, false), (16_385, true)] {
        let report = policy().examine(&url(bytes));
        assert_eq!(report.refusal().is_some(), is_refused, "{bytes}");
        assert_eq!(report.warnings(), [UrlWarning::Long]);
        assert_eq!(report.normalized().is_some(), !is_refused);
    }
    let text = UrlRefusal::TooLong { bytes: 16_385, limit: 16_384 }.to_string();
    assert_eq!(text, "URL of 16385 bytes exceeds the limit of 16384");
}

#[cfg(feature = "public-suffix")]
#[test]
fn the_registrable_domain_is_what_somebody_registered() {
    for (url, expected) in [
        ("https://login.example.co.uk/", Some("example.co.uk")),
        ("https://a.b.github.io/", Some("b.github.io")),
        ("https://github.com/", Some("github.com")),
        ("https://com/", None),
        ("https://co.uk/", None),
        ("http://localhost/", None),
        ("https://1.2.3.4/", None),
        ("https://[::1]/", None),
        ("https://a.unheard-of-suffix/", Some("a.unheard-of-suffix")),
    ] {
        assert_eq!(SafeUrl::parse(url, &policy()).unwrap().registrable_domain(), expected, "{url}");
    }
}

#[test]
fn debug_shows_no_path_no_query_and_no_credentials() {
    let url = "https://user:s3cret@github.com:8443/s3cret?s3cret#s3cret";
    let report = policy().examine(url);
    let shown = "UrlReport { origin: \"https://github.com:8443\", refusal: Some(Credentials), warnings: [Port, Userinfo], .. }";
    assert_eq!(format!("{report:?}"), shown);
    let safe = SafeUrl::parse("https://github.com:8443/s3cret?s3cret", &policy()).unwrap();
    assert_eq!(format!("{safe:?}"), "SafeUrl(https://github.com:8443)");
    let unparsable = policy().examine("https://[s3cret");
    assert!(!format!("{unparsable:?}").contains("s3cret"));
}

#[test]
fn the_cause_of_an_unparsable_url_is_kept() {
    use std::error::Error as _;
    let refusal = SafeUrl::parse("https://[::zz]/", &policy()).unwrap_err();
    assert!(refusal.source().is_some());
    assert!(UrlRefusal::Scheme.source().is_none());
}

#[test]
fn a_server_without_host_name_gives_no_lookalikes() {
    assert_eq!(policy().server_host(), Some("mcp.example.com"));
    assert_eq!(UrlPolicy::default().server("https://127.0.0.1/").server_host(), None);
    assert_eq!(UrlPolicy::default().server("nonsense").server_host(), None);
}

#[test]
fn a_warning_is_a_name_for_programs_and_a_sentence_for_people() {
    let warnings = [
        (UrlWarning::Punycode, "punycode"),
        (UrlWarning::MixedScript, "mixed_script"),
        (UrlWarning::IpHost, "ip_host"),
        (UrlWarning::Port, "port"),
        (UrlWarning::Userinfo, "userinfo"),
        (UrlWarning::Long, "long"),
        (UrlWarning::Bidi, "bidi"),
        (UrlWarning::Lookalike, "lookalike"),
    ];
    let mut sentences = std::collections::BTreeSet::new();
    for (warning, name) in warnings {
        assert_eq!(warning.as_str(), name);
        assert!(warning.to_string().contains(' '), "{name}");
        sentences.insert(warning.to_string());
    }
    assert_eq!(sentences.len(), warnings.len());
}
