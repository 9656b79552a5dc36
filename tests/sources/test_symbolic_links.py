"""Symbolic links in a folder: none leads out of it unless that is asked for; hidden files and locks stay unread."""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quoth.corpus.corpus import Corpus
from quoth.corpus.documents import read_documents
from quoth.corpus.sync import sync
from quoth.errors import FileWarning, InputError
from quoth_sources.files import files_below

if TYPE_CHECKING:
    from commands import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, links of every kind, and what these lead to."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    (outside / "deep").mkdir(parents=True)
    (inside / "sub").mkdir(parents=True)
    (inside / ".git").mkdir()
    (outside / "secret.txt").write_text("The password is Xylophone.")
    (outside / "deep" / "more.txt").write_text("More of it.")
    (inside / "own.txt").write_text("Words of its own.")
    (inside / ".git" / "config.txt").write_text("A token.")
    links = {
        "link.txt": "../outside/secret.txt",
        "sub/up.txt": "../../outside/secret.txt",
        "sub/via.txt": "../dir/secret.txt",
        "dir": "../outside",
        "again.txt": "own.txt",
        "same": "sub",
        "hidden.txt": ".git/config.txt",
        "gone.txt": "nothing.txt",
        "self.txt": "self.txt",
        "loop": ".",
        "null.txt": "/dev/null",
    }
    for name, target in links.items():
        (inside / name).symlink_to(target)
    return inside


OWN = ["again.txt", "own.txt"]
OUTSIDE = ["dir/deep/more.txt", "dir/secret.txt", "link.txt", "sub/up.txt", "sub/via.txt"]


def test_links_that_lead_out_are_left_out_and_named(folder: Path) -> None:
    with pytest.warns(FileWarning) as told:
        assert [name for _, name in files_below(folder)] == OWN
    assert [str(each.message) for each in told] == [
        f"left out links that lead out of {folder} (dir, link.txt, null.txt, …); --follow-links (follow_links= "
        "in Python) reads what is there"
    ]


def test_links_are_followed_if_asked_for_and_each_folder_is_read_once(folder: Path) -> None:
    with warnings.catch_warnings(action="error"):
        assert [name for _, name in files_below(folder, follow_links=True)] == sorted([*OWN, *OUTSIDE, "hidden.txt"])


def test_folders_that_lead_to_each_other_end(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(20)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    for name in names:
        for other in names:
            (tmp_path / name / f"to-{other}").symlink_to(f"../{other}")
    assert [name for _, name in files_below(tmp_path, follow_links=True)] == [f"{name}/a.txt" for name in sorted(names)]


def test_a_path_that_is_given_may_be_a_link(folder: Path) -> None:
    link = folder.parent / "named"
    link.symlink_to(folder)
    with pytest.warns(FileWarning, match="lead out of"):
        assert [each.id for each in read_documents(link)] == OWN
    assert [each.text for each in read_documents(folder / "link.txt")] == ["The password is Xylophone."]


@pytest.mark.filterwarnings("ignore::quoth.errors.FileWarning")
def test_every_command_that_reads_a_folder(folder: Path, tmp_path: Path, run: "Run") -> None:
    (tmp_path / "x.txt").write_text("Something.")

    followed = sorted([*OWN, *OUTSIDE, "hidden.txt"])
    for number, more in enumerate(([], ["--follow-links"])):
        expected = followed if more else OWN
        made = tmp_path / f"index{number}"
        assert run("index", folder, "-o", made, *more)[0] == 0
        assert sorted(each.id for each in Corpus.open(made).documents()) == expected
        for command in ("add", "replace"):
            made = tmp_path / f"{command}{number}"
            assert run("index", tmp_path / "x.txt", "-o", made)[0] == 0
            assert run(command, made, folder, *more)[0] == 0
            assert sorted(each.id for each in Corpus.open(made).documents()) == sorted([*expected, "x.txt"])
        made = tmp_path / f"sync{number}"
        assert run("sync", folder, made, *more)[0] == 0
        assert sorted(each.id for each in Corpus.open(made).documents()) == expected


def test_sync_deletes_what_is_no_longer_followed(folder: Path, tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path / "c.quoth")
    assert sync(corpus, folder, follow_links=True).new == sorted([*OWN, *OUTSIDE, "hidden.txt"])
    with pytest.warns(FileWarning, match="lead out of"):
        assert sorted(sync(corpus, folder).deleted) == sorted([*OUTSIDE, "hidden.txt"])


def test_a_folder_of_links_alone_says_so(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "a.txt").write_text("A.")
    os.symlink(tmp_path / "a.txt", tmp_path / "links" / "a.txt")
    with pytest.warns(FileWarning, match="lead out of"), pytest.raises(InputError, match="no file in it"):
        read_documents(tmp_path / "links")


def test_lock_files_of_office_are_no_documents(tmp_path: Path, run: "Run") -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "plan.txt").write_text("The plan.")
    for name in ("~$plan.docx", "~$book.xlsx", ".~lock.plan.odt#", "~$notes.txt"):
        (tmp_path / "f" / name).write_bytes(b"\x03Ann" + bytes(50))
    with warnings.catch_warnings(action="error"):
        assert [each.id for each in read_documents(tmp_path / "f")] == ["plan.txt"]
    code, _, err = run("sync", tmp_path / "f", tmp_path / "c.quoth")
    assert (code, "~$" in err) == (0, False)
