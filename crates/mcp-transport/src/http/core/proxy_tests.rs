use super::*;

#[test]
fn proxy_urls_give_place_and_credentials() {
    let check = |url: &str, place: &str, authorization: Option<&str>| {
        let proxy = ProxyServer::parse(url).unwrap();
        assert_eq!(proxy.to_string(), place, "{url}");
        assert_eq!(proxy.authorization().map(|value| value.to_str().unwrap()), authorization, "{url}");
    };
    check("http://proxy:3128", "proxy:3128", None);
    check("http://proxy/", "proxy:80", None);
    check(" proxy:3128 ", "proxy:3128", None);
    check("http://[::1]:3128", "[::1]:3128", None);
    // The example of RFC 7617 section 2.
    check("http://Aladdin:open%20sesame@proxy", "proxy:80", Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    check("user:p%40ss@proxy:1", "proxy:1", Some("Basic dXNlcjpwQHNz"));
    check("http://user@proxy", "proxy:80", Some("Basic dXNlcjo="));
    check("http://user:100%@proxy", "proxy:80", Some("Basic dXNlcjoxMDAl"));
}

#[test]
fn other_proxy_urls_are_refused_without_showing_them() {
    let check = |url: &str, expected| {
        let error = ProxyServer::parse(url).unwrap_err();
        assert_eq!(error, expected, "{url}");
        assert!(!error.to_string().contains("secret"));
    };
    check("https://secret@proxy", BadProxy::Scheme);
    check("socks5://secret@proxy", BadProxy::Scheme);
    check("", BadProxy::Invalid);
    check("http://", BadProxy::Invalid);
    check("http://proxy/secret", BadProxy::Invalid);
    check("http://proxy?secret", BadProxy::Invalid);
    check("http://a%3Ab:secret@proxy", BadProxy::Invalid);
}

/// auth:SEC-14
#[test]
fn credentials_of_a_proxy_are_never_shown() {
    let proxy = ProxyServer::parse("http://user:canary@proxy").unwrap();
    let rules = Rules { http: Some(proxy.clone()), ..Rules::default() };
    let shown = format!("{proxy} {proxy:?} {rules:?} {:?}", proxy.authorization());
    assert!(!shown.contains("canary") && !shown.contains("user") && !shown.contains("Basic"), "{shown}");
}

fn rules(variables: &[(&str, &str)]) -> Rules {
    Rules::from_variables(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
    .unwrap()
}

#[test]
fn variables_choose_by_scheme_and_name() {
    let check = |variables: &[(&str, &str)], http: Option<&str>, https: Option<&str>| {
        let rules = rules(variables);
        for (url, expected) in [("http://h.example/", http), ("https://h.example/", https)] {
            let chosen = rules.choose(&Target::parse(url).unwrap()).map(ToString::to_string);
            assert_eq!(chosen.as_deref(), expected, "{variables:?} {url}");
        }
    };
    check(&[], None, None);
    check(&[("HTTP_PROXY", "http://a:1")], Some("a:1"), None);
    check(&[("HTTPS_PROXY", "http://a:1")], None, Some("a:1"));
    check(&[("https_proxy", "a:1"), ("HTTPS_PROXY", "b:1")], None, Some("a:1"));
    check(&[("http_proxy", "a:1"), ("HTTP_PROXY", "b:1")], Some("a:1"), None);
    check(&[("ALL_PROXY", "a:1")], Some("a:1"), Some("a:1"));
    check(&[("all_proxy", "a:1"), ("HTTPS_PROXY", "b:1")], Some("a:1"), Some("b:1"));
    check(&[("HTTP_PROXY", " "), ("ALL_PROXY", "a:1")], Some("a:1"), Some("a:1"));
    check(&[("ALL_PROXY", "a:1"), ("NO_PROXY", "example")], None, None);
    check(&[("ALL_PROXY", "a:1"), ("NO_PROXY", "h.example:443")], Some("a:1"), None);
    check(&[("ALL_PROXY", "a:1"), ("no_proxy", "other"), ("NO_PROXY", "*")], Some("a:1"), Some("a:1"));
}

/// The variable of a CGI program may come from the request it serves.
#[test]
fn upper_case_http_proxy_is_ignored_in_a_cgi_program() {
    let cgi = ("REQUEST_METHOD", "POST");
    let target = Target::parse("http://h.example/").unwrap();
    assert!(rules(&[cgi, ("HTTP_PROXY", "a:1")]).choose(&target).is_none());
    let lower = rules(&[cgi, ("HTTP_PROXY", "a:1"), ("http_proxy", "b:1")]);
    let expected = if cfg!(windows) { None } else { Some("b:1".to_owned()) };
    assert_eq!(lower.choose(&target).map(ToString::to_string), expected);
    assert!(rules(&[cgi, ("HTTPS_PROXY", "a:1")]).choose(&Target::parse("https://h/").unwrap()).is_some());
}

#[test]
fn loopback_is_spared_by_the_variables_only() {
    let by_variables = rules(&[("ALL_PROXY", "a:1")]);
    let by_config = Rules { spares_loopback: false, ..by_variables.clone() };
    for url in ["http://localhost:1/", "https://a.localhost/", "http://127.0.0.2/", "http://[::1]/"] {
        let target = Target::parse(url).unwrap();
        assert!(by_variables.choose(&target).is_none(), "{url}");
        assert!(by_config.choose(&target).is_some(), "{url}");
    }
}

#[test]
fn a_variable_that_names_no_proxy_is_an_error() {
    let error = Rules::from_variables(|name| (name == "ALL_PROXY").then(|| "socks5://a".to_owned()));
    assert_eq!(error.unwrap_err(), BadProxy::Scheme);
}
