"""Slides as few programs write them."""

import re
from collections.abc import Callable

import pytest
from written import pptx, repacked

from quoth.sources import pptx as slides

_MC = b'<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice>'


def _twice(part: bytes) -> bytes:
    """A slide whose last shape is there for new and for old programs."""
    start, end = part.rindex(b"<p:sp>"), part.rindex(b"</p:sp>") + len(b"</p:sp>")
    old = b"</mc:Choice><mc:Fallback>" + part[start:end] + b"</mc:Fallback></mc:AlternateContent>"
    return part[:start] + _MC + part[start:end] + old + part[end:]


@pytest.mark.parametrize(
    "change",
    [
        lambda part: _twice(part) if b"Nairobi" in part else part,
        lambda part: re.sub(rb'(<p:cNvPr id=")\d+', rb"\g<1>2", part),
        lambda part: re.sub(
            rb"http://schemas.openxmlformats.org/(presentationml|drawingml|officeDocument)/2006/",
            rb"http://purl.oclc.org/ooxml/\1/",
            part,
        ),
        lambda part: part.replace(b"presentationml.presentation.main", b"presentationml.slideshow.main"),
    ],
)
def test_no_shape_is_lost(change: Callable[[bytes], bytes]) -> None:
    content = pptx(("Kenya", "Nairobi", ""))
    odd = repacked(content, lambda _, part: change(part))
    assert slides.read(odd).text == "Kenya\n\nNairobi"
