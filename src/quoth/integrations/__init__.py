"""Quoth inside other programs: MCP, LangChain, LlamaIndex, Haystack, pipelines."""
