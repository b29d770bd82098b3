//! What one request may cost: counts and lengths, and the rules a request is read by.

use crate::{Revision, UrlPolicy};

/// Counts and lengths that a request may reach. A request above any of them is refused with wire code -32602
/// and a violation whose rule is [`Rule::Limit`](crate::Rule::Limit); nothing of it is shown.
///
/// "Characters" are Unicode code points. The defaults hold every form a person would fill in, and keep the
/// memory of one request within a few times [`max_params_bytes`](Self::max_params_bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// Bytes of the whole `params` text; default 262 144. Checked before anything is parsed.
    pub max_params_bytes: usize,
    /// Characters of `message`; default 4 096, more than fits on a screen.
    pub max_message_chars: usize,
    /// Fields of one form; default 128.
    pub max_properties: usize,
    /// Characters of a field's name; default 256.
    pub max_name_chars: usize,
    /// Options of one select field; default 1 024, enough for all countries, currencies or time zones.
    pub max_options: usize,
    /// Characters of one option's value and of its title; default 1 024.
    pub max_option_chars: usize,
    /// Characters of a `title`, `description` or string `default`; default 4 096.
    pub max_text_chars: usize,
    /// Characters of a `pattern`; default 1 024. A longer one refuses the request.
    pub max_pattern_chars: usize,
    /// Characters of all `pattern`s of one form that answers are checked against; default 4 096. Patterns beyond,
    /// in the order of the fields, are not checked, see
    /// [`StringField::pattern_is_checked`](crate::StringField::pattern_is_checked). Compiling patterns is the one
    /// costly thing that a form can ask for, and it is done no sooner than for an answer, or for a default of the same field that
    /// somebody asks for ([`FormRequest::defaults`](crate::FormRequest::defaults), [`Form::new`](crate::Form::new)).
    pub max_checked_pattern_chars: usize,
    /// Bytes of a compiled `pattern`; default 65 536. A pattern that needs more is not checked, see
    /// [`StringField::pattern_is_checked`](crate::StringField::pattern_is_checked).
    pub max_pattern_program_bytes: usize,
    /// Characters of an `elicitationId`; default 1 024.
    pub max_elicitation_id_chars: usize,
    /// Entries in the list of a -32042 error; default 16. A longer list is refused whole.
    pub max_batch: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            max_params_bytes: 262_144,
            max_message_chars: 4_096,
            max_properties: 128,
            max_name_chars: 256,
            max_options: 1_024,
            max_option_chars: 1_024,
            max_text_chars: 4_096,
            max_pattern_chars: 1_024,
            max_checked_pattern_chars: 4_096,
            max_pattern_program_bytes: 65_536,
            max_elicitation_id_chars: 1_024,
            max_batch: 16,
        }
    }
}

/// The modes that the client declared in its `elicitation` capability.
///
/// A request in a mode that was not declared is refused with wire code -32602, as 2025-11-25 demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Modes {
    /// Form mode; default true.
    pub form: bool,
    /// URL mode; default true. Revisions without URL mode refuse it whatever this says.
    pub url: bool,
}

impl Modes {
    /// Form and URL mode.
    pub const BOTH: Self = Self { form: true, url: true };
    /// Form mode alone.
    pub const FORM: Self = Self { form: true, url: false };
    /// URL mode alone.
    pub const URL: Self = Self { form: false, url: true };
}

impl Default for Modes {
    fn default() -> Self {
        Self::BOTH
    }
}

/// Everything that decides how a request is read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestRules {
    /// The negotiated revision (legacy era) or the one announced with the request (modern era).
    pub revision: Revision,
    /// The declared modes.
    pub modes: Modes,
    /// Counts and lengths.
    pub limits: RequestLimits,
    /// Which URLs are acceptable, and which warnings are raised.
    pub url: UrlPolicy,
    /// Whether "this or null" (`anyOf: [{"type": "string"}, {"type": "null"}]`, `type: ["string", "null"]`,
    /// `default: null`) is read as a field of the other type; default false. It bends the rule that forms are
    /// "restricted to flat objects with primitive properties": some schema generators write every optional field
    /// that way. Answers still never hold `null`; the field is left out.
    pub allow_nullable_fields: bool,
}

impl RequestRules {
    /// Default rules for a revision: both modes declared, default limits and URL policy.
    #[must_use]
    pub fn new(revision: Revision) -> Self {
        Self {
            revision,
            modes: Modes::BOTH,
            limits: RequestLimits::default(),
            url: UrlPolicy::default(),
            allow_nullable_fields: false,
        }
    }

    /// Replaces the declared modes.
    #[must_use]
    pub fn modes(mut self, modes: Modes) -> Self {
        self.modes = modes;
        self
    }

    /// Replaces the limits.
    #[must_use]
    pub fn limits(mut self, limits: RequestLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets [`allow_nullable_fields`](Self::allow_nullable_fields).
    #[must_use]
    pub fn allow_nullable_fields(mut self, allow: bool) -> Self {
        self.allow_nullable_fields = allow;
        self
    }

    /// Replaces the URL policy.
    #[must_use]
    pub fn url(mut self, url: UrlPolicy) -> Self {
        self.url = url;
        self
    }
}
