"""Files of every kind: which are read, and how they become texts with a way back to their places.

`files` knows which files of a path are read and as what; `source` is what every format gives: a text, and the place in
the file of each part of it. A format is one module with `read`, from bytes (text files: from characters) to a
`Source`: `pdf`, `html`, `docx`, `pptx`, `xlsx`, `odt`, `odp`, `ods`, `epub`, `eml`, `markdown`, `rst`, `man`. What
`libreoffice` writes anew is read as such a file. The places are kept as `quoth_sources.source_map` writes them. Others'
files are read in `worker`, a process of its own, which has `limits`. Nothing here knows documents or a corpus.

    >>> from quoth_sources import html
    >>> html.read(b"<h1>Fares</h1><p>A day ticket costs 4 francs.").text
    'Fares\\n\\nA day ticket costs 4 francs.'
"""
