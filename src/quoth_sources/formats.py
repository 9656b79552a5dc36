"""The file formats: their names, their suffixes, what reads them.

Knows names only. Every other list of formats is made from these, or compared with them.
"""

WRITES = {"doc": "docx", "rtf": "docx", "ppt": "pptx", "xls": "xlsx"}
"""What LibreOffice reads, and the format that it writes each in."""
SUFFIXES = {
    "jsonl": (".jsonl", ".ndjson"),
    **{name: (f".{name}",) for name in ("csv", "tsv", "parquet", "json", "mbox")},
    "text": (".txt",),
    "markdown": (".md", ".markdown"),
    "rst": (".rst",),
    "html": (".html", ".htm", ".xhtml"),
    **{name: (f".{name}",) for name in ("pdf", "docx", "pptx", "xlsx", "odt", "odp", "ods", "epub", "eml", "msg")},
    "ipynb": (".ipynb",),
}
"""The suffixes that messages name, by format; manual pages end in .1 to .9."""
MORE_SUFFIXES = {"jsonl": (".jsonlines", ".jl", ".ldjson"), "docx": (".docm",), "pptx": (".pptm", ".ppsx")}
MORE_SUFFIXES |= {"xlsx": (".xlsm",), **{name: (f".{name}",) for name in WRITES}}
FORMATS = (*SUFFIXES, "man", *WRITES)
"""The names of all formats."""
BY_SUFFIX = {each: name for table in (SUFFIXES, MORE_SUFFIXES) for name, suffixes in table.items() for each in suffixes}
PARSERS = {"pdf": "pypdfium2", "html": "selectolax", "eml": "selectolax", "msg": "olefile", "ipynb": "json"}
PARSERS |= {"docx": "lxml", "pptx": "pptx", "xlsx": "openpyxl", "epub": "selectolax"}
PARSERS |= {"odt": "lxml", "odp": "lxml", "ods": "openpyxl"}
PARSERS |= {name: PARSERS[written] for name, written in WRITES.items()}
"""The formats that are read by parsers of other people, and the module that each needs."""
TEXTS = ("text", "markdown", "rst", "man")
"""The formats that are text, in any encoding."""
FILES = (*TEXTS, *PARSERS)
"""The formats of which a file is one document."""
