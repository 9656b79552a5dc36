"""What is on disk if a process dies, or the power fails, before any of its calls that change a folder.

`recorded` runs a call and notes the folder before every fsync, rename, removal and new folder, and every file that was
written since. A kill leaves what was done until then, the last file perhaps in part. Of what a power failure finds,
only that is sure which was flushed: the bytes of a file by its own fsync, a name by that of its folder. The rest may
be there or not, a file in part, each rename as a whole: what POSIX leaves open, and more than any file system does.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CALLS = ("fsync", "replace", "rename", "unlink", "remove", "rmdir", "mkdir")


@dataclass(eq=False)
class Node:
    """A file or a folder: what it has now, and what of it is on disk for sure."""

    is_folder: bool
    content: bytes = b""
    flushed: bytes = b""
    names: dict[str, Node] = field(default_factory=dict)
    flushed_names: dict[str, Node] = field(default_factory=dict)


Step = list[tuple[Node, str, Node | None]]
"""Changes of folders' names that reach the disk together: a folder, a name, what it leads to afterwards."""
Tree = dict[str, bytes | None]
"""Files by path, with their contents; None for a folder."""


class Disk:
    """A folder on a disk, followed through the calls that change it."""

    def __init__(self, root: Path) -> None:
        self.root, self.top = root, Node(True)
        self.pending: list[Step] = []
        self.recent: list[str] = []
        self.look()
        self._flush_all(self.top)

    def look(self) -> None:
        """Take in the files that were written since the last call."""
        self.recent = []
        for at, folders, files in os.walk(self.root):
            folder = self._node(Path(at))
            for name in folders:
                if name not in folder.names:
                    self._change([(folder, name, Node(True))])
            for name in files:
                content = Path(at, name).read_bytes()
                if name not in folder.names:
                    self._change([(folder, name, Node(False))])
                if folder.names[name].content != content:
                    folder.names[name].content = content
                    self.recent.append(Path(at, name).relative_to(self.root).as_posix())

    def tree(self) -> Tree:
        """What is there now."""
        return dict(_walk(self.top, "", lambda node: node.names, lambda node: node.content))

    def flush(self, path: Path) -> None:
        node = self._node(path)
        if not node.is_folder:
            node.flushed = node.content
            return
        for step in [step for step in self.pending if any(folder is node for folder, _, _ in step)]:
            _apply(step, lambda folder: folder.flushed_names)
            self.pending.remove(step)

    def move(self, source: Path, target: Path) -> None:
        node = self._node(source)
        self._change([(self._node(source.parent), source.name, None), (self._node(target.parent), target.name, node)])

    def remove(self, path: Path) -> None:
        self._change([(self._node(path.parent), path.name, None)])

    def make(self, path: Path) -> None:
        self._change([(self._node(path.parent), path.name, Node(True))])

    def after_power_loss(self, chance: random.Random, in_order: bool) -> Tree:
        """What may be found: with `in_order`, of the names that were not flushed the first so many; else any."""
        names: dict[int, dict[str, Node]] = {}

        def of(folder: Node) -> dict[str, Node]:
            return names.setdefault(id(folder), dict(folder.flushed_names))

        last = chance.randint(0, len(self.pending))
        kept = self.pending[:last] if in_order else [step for step in self.pending if chance.random() < 0.5]
        for step in kept:
            _apply(step, of)

        def content(file: Node) -> bytes:
            if file.content == file.flushed or in_order:
                return file.flushed
            return chance.choice([file.flushed, file.content, file.content[: len(file.content) // 2], b""])

        return dict(_walk(self.top, "", of, content))

    def _node(self, path: Path) -> Node:
        node = self.top
        for part in path.relative_to(self.root).parts:
            node = node.names[part]
        return node

    def _change(self, step: Step) -> None:
        _apply(step, lambda folder: folder.names)
        self.pending.append(step)

    def _flush_all(self, folder: Node) -> None:
        self.pending = []
        folder.flushed_names = dict(folder.names)
        for node in folder.names.values():
            node.flushed = node.content
            self._flush_all(node)


def _apply(step: Step, names: Callable[[Node], dict[str, Node]]) -> None:
    for folder, name, node in step:
        if node is None:
            names(folder).pop(name, None)
        else:
            names(folder)[name] = node


def _walk(
    folder: Node, at: str, names: Callable[[Node], dict[str, Node]], content: Callable[[Node], bytes]
) -> Iterator[tuple[str, bytes | None]]:
    for name, node in names(folder).items():
        yield f"{at}{name}", None if node.is_folder else content(node)
        if node.is_folder:
            yield from _walk(node, f"{at}{name}/", names, content)


@contextmanager
def recorded(root: Path, before: Callable[[Disk, str], None]) -> Iterator[Disk]:
    """Calls `before`, with the disk as it is then and the call's name, before every call that changes the folder."""
    root = root.resolve()
    originals = {name: getattr(os, name) for name in CALLS}

    def place(path: Any, at: int | None) -> Path:
        folder = os.readlink(f"/dev/fd/{at}") if at is not None else ""
        return Path(os.path.abspath(os.path.join(folder, os.fspath(path))))

    def note(name: str, *arguments: Any, **options: Any) -> Any:
        at = options.get("dir_fd")
        first = Path(os.readlink(f"/dev/fd/{arguments[0]}")) if name == "fsync" else place(arguments[0], at)
        if not first.is_relative_to(root) or first.exists() == (name == "mkdir"):
            return originals[name](*arguments, **options)
        disk.look()
        before(disk, name)
        done = None if name == "fsync" else originals[name](*arguments, **options)
        if name == "fsync":
            disk.flush(first)
        elif name in ("replace", "rename"):
            disk.move(first, place(arguments[1], None))
        else:
            (disk.remove if name != "mkdir" else disk.make)(first)
        return done

    def bound(name: str) -> Callable[..., Any]:
        return lambda *arguments, **options: note(name, *arguments, **options)

    disk = Disk(root)
    for name in CALLS:
        setattr(os, name, bound(name))
    try:
        yield disk
    finally:
        for name, original in originals.items():
            setattr(os, name, original)
    disk.look()
    before(disk, "end")


def kills(disk: Disk) -> Iterator[Tree]:
    """What a kill leaves: everything, or with the files that were written last in part."""
    tree = disk.tree()
    yield tree
    for share in (0.0, 0.5):
        if disk.recent:
            cut = {name: content[: int(len(content) * share)] for name in disk.recent if (content := tree[name])}
            yield {**tree, **cut}


def write_tree(tree: Tree, folder: Path) -> Path:
    """A tree as a folder."""
    folder.mkdir(parents=True)
    for name, content in tree.items():
        if content is None:
            (folder / name).mkdir(parents=True, exist_ok=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    return folder
