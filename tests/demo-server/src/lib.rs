//! A small MCP server that speaks 2025-11-25.
