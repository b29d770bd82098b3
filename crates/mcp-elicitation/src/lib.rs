//! Model Context Protocol elicitation: request and answer validation, defaults, URL safety, state machine.

#![forbid(unsafe_code)]
