//! Whether a host poses as the host of the MCP server.

use super::domain;

/// Whether `host` resembles `server` without being part of the same registrable domain.
///
/// Three tricks are told: the server's domain as a prefix or middle of a foreign one (`example.com.evil.net`,
/// `example.com-login.net`), characters that look alike (`examp1e.com`, `ехample.com`), and one slip of the
/// keyboard (`exmaple.com`). `unicode` is the host with its `xn--` labels decoded.
pub(super) fn resembles(host: &str, unicode: &str, server: &str) -> bool {
    let host = host.trim_end_matches('.');
    let server = server.trim_end_matches('.');
    let own = registered(server);
    if host == server || registered(host) == own {
        return false;
    }
    if own.contains('.') && (host.contains(&format!("{own}.")) || host.contains(&format!("{own}-"))) {
        return true;
    }
    let unicode = unicode.trim_end_matches('.');
    let name = skeleton(name_of(registered(unicode)));
    let own_name = skeleton(name_of(own));
    if own_name.is_empty() {
        return false;
    }
    // Short names are one slip away from everything.
    name == own_name || (own_name.len() >= 5 && is_one_slip(&name, &own_name))
}

/// The registrable domain, or without the list (or for a suffix) the last two labels.
fn registered(host: &str) -> &str {
    domain::registrable(host).unwrap_or_else(|| {
        let mut dots = host.rmatch_indices('.').map(|(index, _)| index + 1);
        let start = dots.nth(1).unwrap_or(0);
        host.get(start..).unwrap_or(host)
    })
}

/// The first label: `example` of `example.co.uk`.
fn name_of(registered: &str) -> &str {
    registered.split('.').next().unwrap_or_default()
}

/// The name with look-alike characters replaced by the ones they look like, and hyphens gone.
fn skeleton(name: &str) -> Vec<char> {
    // Pairs first: they are told before their parts are.
    let name = name.to_lowercase().replace("rn", "m").replace("vv", "w").replace("cl", "d");
    name.chars().filter(|c| *c != '-').map(plain).collect()
}

fn plain(c: char) -> char {
    match c {
        '0' | 'о' | 'ο' | 'ö' | 'ó' | 'ò' | 'ô' | 'õ' | 'ø' | 'օ' => 'o',
        '1' | 'i' | 'l' | '|' | 'і' | 'ӏ' | 'ι' | 'ı' | 'í' | 'ì' | 'ï' | 'î' | 'ł' => 'l',
        '3' | 'е' | 'ё' | 'é' | 'è' | 'ê' | 'ë' | 'ε' | 'ҽ' => 'e',
        '5' | 'ѕ' | 'ś' | 'š' => 's',
        'а' | 'ä' | 'á' | 'à' | 'â' | 'ã' | 'å' | 'α' => 'a',
        'с' | 'ç' | 'ć' | 'č' | 'ϲ' => 'c',
        'р' | 'ρ' => 'p',
        'х' | 'χ' => 'x',
        'у' | 'ý' | 'ÿ' | 'γ' => 'y',
        'ԁ' => 'd',
        'һ' => 'h',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'м' => 'm',
        'п' | 'ñ' | 'ń' | 'η' => 'n',
        'ԛ' => 'q',
        'т' | 'τ' => 't',
        'ü' | 'ú' | 'ù' | 'û' | 'υ' => 'u',
        'ѵ' | 'ν' => 'v',
        'ԝ' | 'ω' | 'ш' => 'w',
        'ž' | 'ź' | 'ż' => 'z',
        other => other,
    }
}

/// Whether one insertion, deletion, substitution or swap of neighbours turns one name into the other.
fn is_one_slip(a: &[char], b: &[char]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let prefix = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    let suffix = short.iter().rev().zip(long.iter().rev()).take_while(|(a, b)| a == b).count();
    let suffix = suffix.min(short.len() - prefix);
    let middle =
        |name: &[char]| name.get(prefix..name.len() - suffix).map(<[char]>::to_vec).unwrap_or_default();
    match (middle(short).as_slice(), middle(long).as_slice()) {
        ([], []) | ([], [_]) | ([_], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_one_slip, registered, resembles};

    #[test]
    fn hosts_that_pose_as_the_server_are_told() {
        let server = "mcp.example.com";
        for host in [
            "example.com.evil.net",
            "login.example.com.evil.net",
            "example.com-login.net",
            "examp1e.com",
            "exarnple.com",
            "exmaple.com",
            "exampl.com",
            "examplee.com",
            "ex-ample.com",
            "example.net",
            "\u{435}xample.com",
            "ex\u{e4}mple.com",
        ] {
            assert!(resembles(host, host, server), "{host}");
        }
        for host in [
            "mcp.example.com",
            "example.com",
            "login.example.com",
            "example.com.",
            "other.org",
            "github.com",
            "sample.org",
        ] {
            assert!(!resembles(host, host, server), "{host}");
        }
    }

    /// Each character that looks like another makes a host that poses as the one with the other.
    #[test]
    fn every_look_alike_is_told() {
        for (plain, alike) in [
            ('o', "0оοöóòôõøօ"),
            ('l', "1i|іӏιıíìïîł"),
            ('e', "3еёéèêëεҽ"),
            ('s', "5ѕśš"),
            ('a', "аäáàâãåα"),
            ('c', "сçćčϲ"),
            ('p', "рρ"),
            ('x', "хχ"),
            ('y', "уýÿγ"),
            ('d', "ԁ"),
            ('h', "һ"),
            ('j', "ј"),
            ('k', "кκ"),
            ('m', "м"),
            ('n', "пñńη"),
            ('q', "ԛ"),
            ('t', "тτ"),
            ('u', "üúùûυ"),
            ('v', "ѵν"),
            ('w', "ԝωш"),
            ('z', "žźż"),
        ] {
            for other in alike.chars() {
                // Two of them: one alone would be a slip of the keyboard.
                let (server, host) = (format!("b{plain}g{plain}b.com"), format!("b{other}g{other}b.com"));
                assert!(resembles(&host, &host, &server), "{host} {server}");
            }
        }
        assert!(!resembles("bzgzb.com", "bzgzb.com", "bogob.com"));
    }

    #[test]
    fn what_nobody_can_register_counts_as_its_last_two_labels() {
        for (host, expected) in [
            ("mcp.example.com", "example.com"),
            ("localhost", "localhost"),
            ("com", "com"),
            ("pvt.k12.ma.us", "ma.us"),
        ] {
            assert_eq!(registered(host), expected);
        }
    }

    #[test]
    fn one_slip_is_one_character_or_two_neighbours() {
        for (a, b, expected) in [
            ("banana", "banana", true),
            ("banana", "bananas", true),
            ("banana", "banna", true),
            ("banana", "bandna", true),
            ("banana", "bnaana", true),
            ("banana", "bananana", false),
            ("xaby", "xcay", false),
            ("xaby", "xbcy", false),
            ("banana", "orange", false),
            ("", "ab", false),
        ] {
            let chars = |name: &str| name.chars().collect::<Vec<char>>();
            assert_eq!(is_one_slip(&chars(a), &chars(b)), expected, "{a} {b}");
            assert_eq!(is_one_slip(&chars(b), &chars(a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn short_names_need_to_be_equal_to_resemble() {
        assert!(!resembles("abd.com", "abd.com", "abc.com"));
        assert!(resembles("abc.net", "abc.net", "abc.com"));
        assert!(!resembles("localhost", "localhost", "example.com"));
    }
}
