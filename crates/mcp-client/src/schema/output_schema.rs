//! A schema ready to check values.

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::SchemaLimits;
use super::error::{SchemaError, Violation};
use super::{cost, guard};

/// Stack of the thread that compiles a schema, or checks a value that goes deep. What the limits allow fits many times over.
const LARGE_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Subschemas within each other that the caller's own stack is good for.
const SHALLOW: usize = 64;
/// Up to so much work every violation is looked for; beyond it the first must do, since a list of them could be very long.
const ALL_VIOLATIONS: u64 = 20_000;

/// A JSON Schema, read and compiled under limits. Nothing is ever fetched for it, formats are notes and not checked.
///
/// Dialects: 2020-12, which is also that of a schema that names none, 2019-09, draft 7, 6 and 4. A schema that refers to
/// something outside of itself, has an embedded schema with an `$id`, or a regular expression with look-around or back
/// references, is refused.
///
/// ```
/// use mcp_client::schema::{OutputSchema, SchemaError, SchemaLimits};
/// use serde_json::json;
///
/// let schema = r#"{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}"#;
/// let schema = OutputSchema::new(schema, &SchemaLimits::default())?;
/// assert!(schema.check(&json!({ "sum": 3 })).is_ok());
/// let Err(SchemaError::Violated { violations, .. }) = schema.check(&json!({ "sum": "3" })) else { panic!() };
/// assert_eq!((violations[0].pointer.as_str(), violations[0].schema_pointer.as_str()), ("/sum", "/properties/sum/type"));
/// # Ok::<(), SchemaError>(())
/// ```
pub struct OutputSchema {
    schema: Value,
    validator: Validator,
    limits: SchemaLimits,
}

impl OutputSchema {
    /// Reads and compiles a schema.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`](SchemaError::LimitExceeded), [`Unusable`](SchemaError::Unusable).
    pub fn new(text: &str, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let schema = guard::read(text, limits)?;
        let patterns = limits.max_pattern_bytes;
        let compiled = on_large_stack(|| {
            let options = jsonschema::options()
                .offline()
                .should_validate_formats(false)
                .with_pattern_options(PatternOptions::regex().size_limit(patterns).dfa_size_limit(patterns));
            // The error may quote the schema.
            options
                .build(&schema)
                .map_err(|error| Violation::new("", "", &error.masked().to_string()).message)
        })?;
        let validator = compiled.map_err(SchemaError::unusable)?;
        Ok(Self { schema, validator, limits: limits.clone() })
    }

    /// Checks a value. Takes as long as the limits allow at most, on the caller's thread.
    ///
    /// # Errors
    ///
    /// [`Violated`](SchemaError::Violated), [`LimitExceeded`](SchemaError::LimitExceeded), and
    /// [`Unusable`](SchemaError::Unusable) where the schema turns out to refer to itself in a circle.
    pub fn check(&self, value: &Value) -> Result<(), SchemaError> {
        let cost = cost::of(&self.schema, value, &self.limits)?;
        if cost.depth <= SHALLOW {
            return self.run(value, cost.evaluations);
        }
        on_large_stack(|| self.run(value, cost.evaluations))?
    }

    fn run(&self, value: &Value, evaluations: u64) -> Result<(), SchemaError> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let violation = |error: &jsonschema::ValidationError<'_>| {
            Violation::new(
                error.instance_path().as_str(),
                error.schema_path().as_str(),
                &error.masked().to_string(),
            )
        };
        if evaluations > ALL_VIOLATIONS {
            let first = self.validator.validate(value).err();
            return Err(SchemaError::Violated {
                violations: first.iter().map(violation).collect(),
                more: true,
            });
        }
        let mut errors = self.validator.iter_errors(value);
        let violations =
            errors.by_ref().take(self.limits.max_violations).map(|error| violation(&error)).collect();
        Err(SchemaError::Violated { violations, more: errors.next().is_some() })
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputSchema").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Runs something that may go deep, or fail in a way that nobody foresaw, where neither hurts the caller.
fn on_large_stack<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, SchemaError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE_STACK_BYTES).spawn_scoped(scope, work);
        let Ok(thread) = thread else {
            return Err(SchemaError::unusable("no thread could be started to validate it"));
        };
        thread.join().map_err(|_| SchemaError::unusable("the validator panicked on it"))
    })
}
