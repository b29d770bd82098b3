//! Limits for schemas and validation.

/// Limits on the schemas of a server and on the work of validation. The server chooses both the schema and the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaLimits {
    /// Bytes of one schema. Default 256 KiB, far above what people write. A larger one is not used.
    pub max_schema_bytes: usize,
    /// Values within each other in one schema. Default 64. One that nests deeper is not used.
    pub max_schema_depth: usize,
    /// Objects in one schema, which every subschema is. Default 4,096. One with more is not used.
    pub max_subschemas: usize,
    /// Regular expressions in one schema. Default 128. One with more is not used.
    pub max_patterns: usize,
    /// Bytes that one compiled regular expression may take. Default 256 KiB. A schema with a larger one is not used. The engine
    /// takes linear time for any text; it has no look-around and no back references, and a schema with these is not used.
    pub max_pattern_bytes: usize,
    /// Bytes of the value that is checked, as JSON. Default 4 MiB. A larger one is not checked, and the call fails.
    pub max_value_bytes: usize,
    /// How often a subschema meets a part of the value, counted before anything is checked, since references can multiply that
    /// without bound. Default 500,000: a list of 10,000 objects with ten members each, and well below a second. Sixteen
    /// members that are looked up in a value count as one more. Beyond it the value is not checked, and the call fails.
    pub max_evaluations: u64,
    /// Subschemas within each other, through references and parts of the value, in the middle of a check. Default 512. Beyond
    /// it as above.
    pub max_evaluation_depth: usize,
    /// Violations that an error lists. Default 32. It says whether there are more.
    pub max_violations: usize,
    /// Tools whose schemas a client remembers. Default 1,024, more than any model is shown. A call of a tool that was listed beyond
    /// it fails, since it cannot be checked. As many names of tools without a schema are remembered, and as many of tools that
    /// were called before they were listed; beyond that calls are not reported as unchecked.
    pub max_tools: usize,
    /// Bytes of these schemas, with the names of their tools. Default 8 MiB. As many bytes of either kind of names are
    /// remembered. At the limit as above.
    pub max_tools_bytes: usize,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            max_schema_bytes: 256 * 1024,
            max_schema_depth: 64,
            max_subschemas: 4096,
            max_patterns: 128,
            max_pattern_bytes: 256 * 1024,
            max_value_bytes: 4 * 1024 * 1024,
            max_evaluations: 500_000,
            max_evaluation_depth: 512,
            max_violations: 32,
            max_tools: 1024,
            max_tools_bytes: 8 * 1024 * 1024,
        }
    }
}
