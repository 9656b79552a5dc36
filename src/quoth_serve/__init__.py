"""Quoth inside other programs: the HTTP service and its page, MCP, LangChain, LlamaIndex, Haystack, pipelines."""
