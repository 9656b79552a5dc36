"""A service under load while its corpus changes: `python -m benchmarks.soak wiki.quoth --minutes 30`.

Works on a copy. Clients fill blanks, ask, search, verify and read; one writer adds, replaces and deletes documents over
HTTP, another does so from this process and compacts the corpus. Every quotation is compared with the text that its
document had at the snapshot of the answer, which the writers have kept. The service's memory, open files and threads
are read from /proc (Linux). Exit code 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from benchmarks.service import blanks, load, quantiles, serving
from quoth import Corpus, Document
from quoth.errors import LockedError

TOKEN = "the token of a test"
WINDOWS = 6
MOST_ADDED = 12
ROUNDS = 2
"""Every client makes each kind of request at least this often, however slow the machine is."""
MOST_GROWTH = 1.1
"""Of the service's own memory, from the second window to the last."""
DELIBERATE = {503, 404, 423}
"""Overload; a document or snapshot that is gone; a corpus that the other writer is writing to."""


@dataclass
class Seen:
    """What the clients and writers saw. `quotations` are snapshot, document, start, end and the hash of the text."""

    statuses: Counter[str] = field(default_factory=Counter)
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    quotations: set[tuple[int, str, int, int, int]] = field(default_factory=set)
    texts: dict[str, list[tuple[int, str | None]]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)
    samples: list[dict[str, int]] = field(default_factory=list)

    def quoted(self, snapshot: int, document: str, start: int, end: int, text: str) -> None:
        self.quotations.add((snapshot, document, start, end, hash(text)))

    def compare(self) -> None:
        """Every quotation with its document at its snapshot."""
        for snapshot, document, start, end, quoted in self.quotations:
            text = next((text for since, text in reversed(self.texts[document]) if since <= snapshot), None)
            if text is None or hash(text[start:end]) != quoted:
                self.faults.append(f"{document!r}, {start}-{end} is not what snapshot {snapshot} has there")


class Requests:
    """A connection to the service, whose replies are counted."""

    def __init__(self, address: str, seen: Seen) -> None:
        self._connection, self._seen = HTTPConnection(urlsplit(address).netloc, timeout=120), seen

    def close(self) -> None:
        self._connection.close()

    def send(self, name: str, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        """The reply, or None for one of the DELIBERATE statuses; any other is a fault."""
        since = time.perf_counter()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = self._connection.getresponse()
        content = reply.read()
        self._seen.milliseconds[name].append(1000 * (time.perf_counter() - since))
        self._seen.statuses[f"{name} {reply.status}"] += 1
        if reply.status < 300:
            found: dict[str, Any] = json.loads(content)
            return found
        told = reply.status == 404 or reply.getheader("Retry-After")
        if reply.status not in DELIBERATE or not told:
            self._seen.faults.append(f"{name}: {reply.status} {content[:200]!r}")
        return None


class Client:
    """Makes one request of each kind in turn."""

    def __init__(
        self, number: int, requests: Requests, seen: Seen, documents: Sequence[Document], texts: Sequence[str]
    ) -> None:
        self._rng, self._seen, self._requests = random.Random(number), seen, requests
        self._documents, self._texts = documents, texts

    def round(self) -> None:
        document = self._rng.choice(self._documents)
        words = document.text.split()
        at = self._rng.randrange(max(len(words) - 6, 1))
        some = " ".join(words[at : at + 6])
        self._predicted("fill", {"text": self._rng.choice(self._texts)} | self._rng.choice(({}, {"read": 0})))
        self._found({"query": some, "k": 5})
        self._verified({"text": some})
        self._read(document.id)
        self._predicted("ask", {"question": f"What is {document.title or some}?", "passages": 5})
        about = self._requests.send("corpus", "GET", "/v1/corpus")
        if about:
            self._read(document.id, self._rng.choice(about["corpora"][0]["snapshots"]))

    def _predicted(self, name: str, body: dict[str, Any]) -> None:
        reply = self._requests.send(name, "POST", f"/v1/{name}", body)
        for answer in reply["predictions"] if reply else ():
            for place in answer["evidence"]:
                self._place(reply, place, answer["text"])

    def _verified(self, body: dict[str, Any]) -> None:
        reply = self._requests.send("verify", "POST", "/v1/verify", body)
        for place in reply["places"] if reply else ():
            self._place(reply, place, body["text"])

    def _found(self, body: dict[str, Any]) -> None:
        reply = self._requests.send("search", "POST", "/v1/search", body)
        for hit in reply["passages"] if reply else ():
            self._quoted(reply, hit, hit["start"], hit["end"], hit["text"])

    def _read(self, document: str, snapshot: int | None = None) -> None:
        where = {"id": document} | ({} if snapshot is None else {"snapshot": str(snapshot)})
        reply = self._requests.send("read", "GET", f"/v1/documents?{urlencode(where)}")
        if reply:
            self._seen.quoted(reply["snapshot"], document, reply["start"], reply["end"], reply["text"])

    def _place(self, reply: Any, place: Mapping[str, Any], text: str) -> None:
        """A place of evidence: its context is the document's, and the text is in it, white space and case aside."""
        begin = place["context_start"]
        context = place["context"]
        self._quoted(reply, place, begin, begin + len(context), context)
        inside = context[place["start"] - begin : place["end"] - begin]
        if inside.casefold().split() != text.casefold().split():
            self._seen.faults.append(f"{text!r} is shown at {inside!r} of {place['document_id']!r}")

    def _quoted(self, reply: Any, place: Mapping[str, Any], start: int, end: int, text: str) -> None:
        [snapshot] = reply["snapshots"].values()
        self._seen.quoted(snapshot, place["document_id"], start, end, text)


class Writer:
    """Adds, replaces and deletes documents of its own, of which it keeps every text."""

    def __init__(
        self, name: str, write: Callable[[str, Any], int | None], seen: Seen, mine: Sequence[Document]
    ) -> None:
        self._name, self._write, self._seen, self._mine = name, write, seen, mine
        self._rng, self._number, self._added = random.Random(name), 0, list[str]()

    def round(self) -> None:
        self._number += 1
        old = self._rng.choice(self._mine)
        match self._rng.choice(("add", "replace", "delete")):
            case "delete" if self._added:
                self._told("delete", self._added[0], None) and self._added.pop(0)
            case "add" if len(self._added) < MOST_ADDED:
                name = f"{self._name}/{self._number} 🗼"
                self._told("add", name, old) and self._added.append(name)
            case _:
                self._told("replace", old.id, old)

    def _told(self, verb: str, name: str, old: Document | None) -> bool:
        text = None if old is None else f"Edition {self._number} 🥐. {old.text}"
        given = [name] if old is None or text is None else [Document(name, old.title, text)]
        snapshot = self._write(verb, given)
        if snapshot is not None:
            self._seen.texts[name].append((snapshot, text))
        return snapshot is not None


def over_http(requests: Requests, seen: Seen) -> Callable[[str, Any], int | None]:
    """Writes by the service, which must serve what it has written from then on."""

    def write(verb: str, given: list[Any]) -> int | None:
        if verb == "delete":
            reply = requests.send(verb, "DELETE", f"/v1/documents?id={quote(given[0])}")
        else:
            body = {"documents": [{"id": each.id, "title": each.title, "text": each.text} for each in given]}
            reply = requests.send(verb, {"add": "POST", "replace": "PUT"}[verb], "/v1/documents", body)
        if reply is None:
            return None
        served = requests.send("search", "POST", "/v1/search", {"query": "edition", "k": 1})
        if served and next(iter(served["snapshots"].values())) < reply["snapshot"]:
            seen.faults.append(f"snapshot {reply['snapshot']} was written, but {served['snapshots']} answered after it")
        return int(reply["snapshot"])

    return write


def by_hand(corpus: Corpus, seen: Seen) -> Callable[[str, Any], int | None]:
    """Writes by this process, which compacts the corpus at the first and then at every tenth."""
    counted = count()

    def write(verb: str, given: list[Any]) -> int | None:
        try:
            if next(counted) >= 10 * seen.statuses["compact done"]:  # if another writes now, at the next one
                corpus.compact()
                seen.statuses["compact done"] += 1
            getattr(corpus, verb)(given)
        except LockedError:
            seen.statuses["by hand locked"] += 1
            return None
        seen.statuses[f"by hand {verb}"] += 1
        return corpus.snapshot

    return write


def measured(process: int) -> dict[str, int]:
    """The memory of its own and in all (MB), open files, threads, and mapped files that were deleted."""
    at = Path("/proc", str(process))
    kilobytes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", (at / "status").read_text(), re.MULTILINE))
    return {
        "own MB": int(kilobytes["RssAnon"]) >> 10,
        "MB": int(kilobytes["VmRSS"]) >> 10,
        "files": len(os.listdir(at / "fd")),
        "threads": len(os.listdir(at / "task")),
        "deleted maps": (at / "maps").read_text().count(" (deleted)"),
    }


@contextmanager
def repeated(seen: Seen, rounds: Sequence[tuple[Callable[[], Any], float, int]]) -> Iterator[None]:
    """Calls each function again and again with this pause, at least so often, in a thread of its own."""
    done = threading.Event()

    def repeat(call: Callable[[], Any], pause: float, least: int) -> None:
        count = 0
        while not done.wait(pause) or count < least:
            try:
                call()
            except Exception as error:
                seen.faults.append(f"{type(error).__name__}: {error}")
                return
            count += 1

    threads = [threading.Thread(target=repeat, args=each) for each in rounds]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        done.set()
        for each in threads:
            each.join()


def soak(source: Path, folder: Path, seconds: float, clients: int, *options: str) -> Seen:
    """Runs everything on a copy of a corpus in this folder, and returns what was seen."""
    path, log, seen = folder / source.name, folder / "log", Seen()
    shutil.copytree(source, path)
    with (
        log.open("w") as stream,
        serving(path, "--writable", *options, token=TOKEN, log=stream.fileno()) as (address, service),
    ):
        if not address:
            raise SystemExit(log.read_text())
        run(path, address, service.pid, seconds, clients, seen)
    if service.returncode:
        seen.faults.append(f"the service exited with {service.returncode}")
    seen.faults += [line for line in log.read_text().splitlines() if '"error"' in line][:10]
    finish(path, seen)
    return seen


def run(path: Path, address: str, process: int, seconds: float, clients: int, seen: Seen) -> None:
    """The clients, the writers and the sampling of the service's process, for this long."""
    corpus = Corpus.open(path)
    documents, texts = list(corpus.documents()), blanks(corpus, 200)
    for snapshot in corpus.snapshots():
        for each in Corpus.open(path, snapshot).documents():
            seen.texts[each.id].append((snapshot, each.text))
    connections = [Requests(address, seen) for _ in range(clients + 1)]
    asking = [Client(number, each, seen, documents, texts) for number, each in enumerate(connections[1:])]
    http = Writer("http", over_http(connections[0], seen), seen, documents[::2])
    hand = Writer("hand", by_hand(corpus, seen), seen, documents[1::2])
    rounds = [(each.round, 0.0, ROUNDS) for each in asking]
    writing = [(http.round, 1.0, 2), (hand.round, 1.0, 12)]
    with repeated(seen, [*rounds, *writing, (lambda: seen.samples.append(measured(process)), 1.0, 2)]):
        time.sleep(seconds)
    for each in connections:
        each.close()


def finish(path: Path, seen: Seen) -> None:
    """What must hold once the service has stopped: every quotation is right, nothing is lost or left over."""
    seen.compare()
    gc.collect()  # this process read snapshots, too
    corpus = Corpus.open(path)
    corpus.compact()
    corpus.verify()
    last = {name: texts[-1][1] for name, texts in seen.texts.items() if texts[-1][1] is not None}
    if last != {each.id: each.text for each in corpus.documents()}:
        seen.faults.append("the corpus does not have what was written last")
    left = [each.name for each in path.rglob("*.tmp")]
    if corpus.snapshots() != [corpus.snapshot] or left:
        seen.faults.append(f"left over: snapshots {corpus.snapshots()}, {left}")


def report(seen: Seen) -> None:
    """Prints tables of the latencies and of the windows of the run."""
    print("| request | count | p50 ms | p95 ms | p99 ms | longest ms |\n|---|---:|---:|---:|---:|---:|")
    for name, taken in sorted(seen.milliseconds.items()):
        shown = quantiles(taken, (0.5, 0.95, 0.99, 1.0))
        print(f"| {name} | {len(taken)} |", " | ".join(f"{each:.0f}" for each in shown), "|")
    print(", ".join(f"{name}: {count}" for name, count in sorted(seen.statuses.items())))
    print(f"{len(seen.quotations)} quotations compared")
    kept = windows(seen)
    print(f"| part of the run | {' | '.join(kept[0])} |\n|---|{'---:|' * len(kept[0])}")
    for number, each in enumerate(kept, 1):
        print(f"| {number} of {len(kept)} |", " | ".join(str(value) for value in each.values()), "|")


def windows(seen: Seen) -> list[dict[str, int]]:
    """Medians of the samples of each part of the run."""
    size = max(len(seen.samples) // WINDOWS, 1)
    parts = [seen.samples[at : at + size] for at in range(0, size * min(WINDOWS, len(seen.samples)), size)]
    return [{name: int(median(each[name] for each in part)) for name in part[0]} for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--minutes", type=float, default=30.0, help="(30)")
    parser.add_argument("--clients", type=int, default=4, help="(4)")
    given, options = parser.parse_known_args()
    print(f"load before: {load()}", flush=True)
    with tempfile.TemporaryDirectory(prefix="quoth-soak-") as folder:
        seen = soak(given.corpus, Path(folder), 60 * given.minutes, given.clients, *options)
    report(seen)
    parts = windows(seen)
    if len(parts) == WINDOWS and parts[-1]["own MB"] > MOST_GROWTH * parts[1]["own MB"]:
        seen.faults.append(f"memory grew from {parts[1]['own MB']} to {parts[-1]['own MB']} MB")
    print(f"load after: {load()}; {len(seen.faults)} faults", *seen.faults[:20], sep="\n")
    sys.exit(bool(seen.faults))


if __name__ == "__main__":
    main()
