//! Extensions that a client declares.

use mcp_model::Settings;
use mcp_model::meta::check_extension_id;
use serde::Serialize;

use crate::builder::ClientBuilder;
use crate::error::Error;

impl ClientBuilder {
    /// Declares an extension that the application itself implements, with its settings: `{}` for none. The extensions of the
    /// server are in [`ServerFacts::capabilities`](crate::ServerFacts::capabilities); methods of an extension are called with
    /// [`Client::request_raw`](crate::Client::request_raw). Default: none is declared.
    ///
    /// It is declared in both eras: in `initialize`, or with each request. The tasks extension exists in the modern era alone.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::ErrorKind::Misuse) if `id` is not an extension identifier (its prefix and name follow the grammar of
    /// `_meta` keys; the message and [`Error::invalid_key`] say what is wrong), or if `settings` do not serialise to a JSON
    /// object.
    pub fn extension(self, id: impl Into<String>, settings: impl Serialize) -> Result<Self, Error> {
        let id = id.into();
        check_extension_id(&id).map_err(Error::bad_key)?;
        let settings = serde_json::value::to_raw_value(&settings)
            .ok()
            .and_then(Settings::from_raw)
            .ok_or_else(|| Error::misuse_because("the settings of an extension must be a JSON object"))?;
        Ok(self.extension_settings(&id, settings))
    }

    /// Declares an extension that this library implements.
    pub(crate) fn extension_settings(mut self, id: &str, settings: Settings) -> Self {
        settings.declare_in(&mut self.config.extensions, id);
        self
    }
}
