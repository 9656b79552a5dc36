"""Slides as few programs write them."""

import re
from collections.abc import Callable

import pytest
from written import pptx, repacked

from quoth_sources import pptx as slides

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


def test_what_is_raised_on_a_slide() -> None:
    run = '<a:r><a:rPr baseline="{}"/><a:t>{}</a:t></a:r>'.format
    runs = f"{run('0', 'H')}{run('-25000', 2)}{run('', 'O, 10')}{run('30000', '-')}{run('30%', 6)}<a:br/>{run(0, 'g')}"

    def change(_: str, part: bytes) -> bytes:
        return re.sub(rb"<a:r>(<a:rPr/>)?<a:t>here</a:t></a:r>", runs.encode(), part)

    content = repacked(pptx(("Oak", "here", "here"), table=[("What", "Mass"), ("Oak", "here")]), change)
    said = "H₂O, 10⁻⁶ g"
    assert slides.read(content).text == f"Oak\n\n{said}\n\nWhat: Oak | Mass: {said}\n\n{said}"


def test_a_slide_that_is_damaged_is_left_out_with_a_note() -> None:
    content = pptx(("One", "a", ""), ("Two", "b", ""), ("Three", "c", ""))
    assert slides.read(content).metadata == {}
    lost = repacked(
        content, lambda name, part: part.replace(b"spTree", b"tree") if name.endswith("slide2.xml") else part
    )
    source = slides.read(lost)
    assert source.text == "One\n\na\n\nThree\n\nc"
    assert source.notes == ["slide 2 in it is damaged, so text may be missing"]
    open_tag = repacked(
        content, lambda name, part: part.replace(b"</p:sld>", b"") if name.endswith("slide2.xml") else part
    )
    source = slides.read(open_tag)
    assert source.text == "One\n\na\n\nTwo\n\nb\n\nThree\n\nc"
    assert source.notes == ["ppt/slides/slide2.xml in it is damaged, so text or its form may be missing"]
    for lost in ("[Content_Types].xml", "ppt/slideLayouts/slideLayout1.xml", "ppt/slideMasters/slideMaster1.xml"):
        bare = repacked(content, lambda name, part, lost=lost: b"" if name == lost else part)
        assert slides.read(bare).text == "One\n\na\n\nTwo\n\nb\n\nThree\n\nc"
    with pytest.raises(ValueError, match="it has no slides that can be read"):
        slides.read(repacked(content, lambda name, part: b"" if name == "ppt/presentation.xml" else part))
