//! Icons of a server, its tools, resources and prompts.

use serde::{Deserialize, Serialize};

use crate::lenient;
use crate::open_enum::open_enum;

/// An icon (2025-11-25 and later).
///
/// Untrusted: [`Icon::has_allowed_scheme`] says whether its URI may be used at all. Fetch it without credentials, follow no
/// redirect to another scheme or origin, limit its size, and check its type by its content.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The URI of the image: `https:` or `data:`.
    pub src: String,
    /// The MIME type of the image, if that of the source is missing or too general.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it is suitable for, such as `48x48` or `any`; absent means every size.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The theme it is designed for; absent means every theme.
    #[serde(default, deserialize_with = "lenient::hint", skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// An icon with this URI.
    #[must_use]
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: None, theme: None }
    }

    /// Whether the URI has one of the two schemes that the specification allows: `https` and `data`.
    #[must_use]
    pub fn has_allowed_scheme(&self) -> bool {
        self.src.split_once(':').is_some_and(|(scheme, _)| {
            scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("data")
        })
    }
}

open_enum! {
    /// The theme that an icon is designed for.
    IconTheme {
        /// A dark background.
        Dark = "dark",
        /// A light background.
        Light = "light",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// protocol:RS-04: only `https` and `data`; everything else is to be rejected.
    #[test]
    fn only_https_and_data_addresses_are_allowed() {
        let check =
            |src: &str, allowed: bool| assert_eq!(Icon::new(src).has_allowed_scheme(), allowed, "{src}");
        check("https://example.com/i.png", true);
        check("HTTPS://example.com/i.png", true);
        check("data:image/png;base64,AA==", true);
        check("http://example.com/i.png", false);
        check("javascript:alert(1)", false);
        check("file:///etc/passwd", false);
        check("ftp://example.com/i.png", false);
        check("ws://example.com/", false);
        check("i.png", false);
        check("", false);
        check(" https://example.com/", false);
    }

    /// protocol:10.27
    #[test]
    fn an_unknown_theme_is_kept_and_a_malformed_one_is_dropped() {
        let icon: Icon = serde_json::from_str(r#"{"src":"data:,","theme":"sepia"}"#).unwrap();
        assert_eq!(icon.theme, Some(IconTheme::Other("sepia".into())));
        let icon: Icon = serde_json::from_str(r#"{"src":"data:,","theme":7,"sizes":"48x48"}"#).unwrap();
        assert!(icon.theme.is_none() && icon.sizes.is_none());
    }
}
