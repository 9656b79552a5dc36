"""The service under load: `python -m benchmarks.service wiki.quoth`.

Blanks of the corpus's own passages are filled in pairs, one call in this process and the same one over HTTP, so that
other work on the machine slows both; then over HTTP by 1, 8 and 64 clients, with and without batches. Prints tables;
the machine's load is said with them, since it decides every number.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from quoth import NPM, Corpus

TEXTS = 24
"""Few enough that all their passages are encoded before the clock starts: what is measured is a warm service."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--model", default="quoth-mini", help="what fills the blanks (quoth-mini)")
    parser.add_argument("--read", type=int, default=0, help="passages that the reader sees (0: NPM alone)")
    parser.add_argument("--seconds", type=float, default=20.0, help="per row (20)")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64], help="none: only pairs (1 8 64)")
    given = parser.parse_args()
    texts = blanks(Corpus.open(given.corpus), TEXTS)
    print(f"load before: {load()}; {given.seconds:g} s per row; fill, read={given.read}", flush=True)
    named = ("--model", given.model, "--reader", given.model)
    npm = NPM.from_pretrained(given.model, given.corpus)
    with serving(given.corpus, *named) as (address, service):
        pairs(npm, address, service.pid, texts, given)
    if given.clients:
        load_of(npm, texts, given, named)


def load_of(npm: NPM, texts: Sequence[str], given: argparse.Namespace, named: Sequence[str]) -> None:
    """Prints how many requests are answered per second, and how soon."""
    print("| calls | clients | per second | p50 ms | p95 ms | p99 ms |\n|---|---:|---:|---:|---:|---:|", flush=True)
    print(row("in one Python process", 1, *in_process(npm, texts, given.read, given.seconds)), flush=True)
    for batch in (16, 1):
        with serving(given.corpus, *named, "--limit", f"batch={batch}") as (address, _):
            warm = HTTPConnection(urlsplit(address).netloc)
            for text in texts:
                send(warm, text, given.read)
            warm.close()
            for clients in given.clients:
                name = f"over HTTP, batches of up to {batch}" if batch > 1 else "over HTTP, no batches"
                print(row(name, clients, *over_http(address, texts, given, clients)), flush=True)
    print(f"load after: {load()}")


def blanks(corpus: Corpus, count: int) -> list[str]:
    """Sentences of the corpus, a capitalised word of each blanked."""
    rng, found = random.Random(0), []
    passages = list(corpus.passages())
    rng.shuffle(passages)
    for passage in passages:
        for sentence in re.split(r"(?<=[.!?])\s+", passage.text):
            names = [each for each in re.finditer(r"\b[A-Z]\w{3,}", sentence) if each.start()]
            if names and len(sentence) < 300 and "[MASK]" not in sentence:
                name = rng.choice(names)
                found.append(sentence[: name.start()] + "[MASK]" + sentence[name.end() :])
                break
        if len(found) == count:
            break
    return found


def pairs(npm: NPM, address: str, process: int, texts: Sequence[str], given: argparse.Namespace) -> None:
    """Prints what HTTP adds to a warm call: milliseconds and CPU time of each, and the median of the differences."""
    connection = HTTPConnection(urlsplit(address).netloc)
    calls = (lambda text: npm.fill(text, read=given.read), lambda text: send(connection, text, given.read))
    for text in texts:
        for call in calls:
            call(text)
    taken: list[list[float]] = [[], []]
    cpu, count, begin = [0.0, -cpu_seconds(process)], 0, time.perf_counter()
    while time.perf_counter() - begin < given.seconds:
        for which in (0, 1) if count % 2 else (1, 0):
            since, used = time.perf_counter(), time.process_time()
            calls[which](texts[count // 2 % len(texts)])
            taken[which].append(1000 * (time.perf_counter() - since))
            cpu[which] += time.process_time() - used
        count += 1
    connection.close()
    cpu[1] += cpu_seconds(process)
    added = sorted(http - python for python, http in zip(*taken, strict=True))
    print(f"{count} pairs; load {load()}\n| | in Python | over HTTP | added |\n|---|---:|---:|---:|")
    print(f"| ms, median | {median(taken[0]):.1f} | {median(taken[1]):.1f} | {median(added):.1f} |")
    print(f"| CPU ms, mean | {1000 * cpu[0] / count:.1f} | {1000 * cpu[1] / count:.1f} | ", end="")
    print(f"{1000 * (cpu[1] - cpu[0]) / count:.1f} |\n\nquartiles of what is added: ", end="")
    print(", ".join(f"{added[int(share * len(added))]:.1f}" for share in (0.25, 0.5, 0.75)), "ms\n", flush=True)


def cpu_seconds(process: int) -> float:
    """The CPU time of another process so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def in_process(npm: NPM, texts: Sequence[str], read: int, seconds: float) -> tuple[list[float], float]:
    """Milliseconds of each call, and seconds in all."""
    for text in texts:
        npm.fill(text, read=read)
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        since = time.perf_counter()
        npm.fill(texts[len(times) % len(texts)], read=read)
        times.append(1000 * (time.perf_counter() - since))
    return times, time.perf_counter() - begin


@contextmanager
def serving(
    corpus: Path, *options: str, token: str = "", log: int = subprocess.DEVNULL
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A service in a process of its own, and its address, which is "" if it did not start."""
    command = [sys.executable, "-m", "quoth", "serve", str(corpus), "--port", "0", *options]
    environment = os.environ | {"QUOTH_TOKEN": token}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment) as service:
        assert service.stdout is not None
        try:
            yield service.stdout.readline().strip(), service
        finally:
            service.terminate()


def over_http(address: str, texts: Sequence[str], given: argparse.Namespace, clients: int) -> tuple[list[float], float]:
    """Milliseconds of each request of that many clients, each of which sends its next when it has its answer."""
    times: list[float] = []
    faults: list[Any] = []
    start = threading.Barrier(clients + 1)
    done = threading.Event()

    def client(number: int) -> None:
        try:
            ask(number)
        except OSError as error:
            faults.append(str(error))
            start.abort()
        except threading.BrokenBarrierError:  # another client could not connect
            pass

    def ask(number: int) -> None:
        connection = HTTPConnection(urlsplit(address).netloc)
        send(connection, texts[number % len(texts)], given.read)
        connection.close()  # a service closes connections that are idle, as this one is until all others are ready
        start.wait()
        at = number
        while not done.is_set():
            since = time.perf_counter()
            status = send(connection, texts[at % len(texts)], given.read)
            times.append(1000 * (time.perf_counter() - since))
            if status != 200:
                faults.append(status)
            at += clients

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    with suppress(threading.BrokenBarrierError):
        start.wait()
    begin = time.perf_counter()
    time.sleep(0 if faults else given.seconds)
    done.set()
    for each in threads:
        each.join()
    if faults:
        raise SystemExit(f"{len(faults)} requests were not answered: {sorted(map(str, set(faults)))}")
    return times, time.perf_counter() - begin


def send(connection: HTTPConnection, text: str, read: int) -> int:
    """The status of one request."""
    body = json.dumps({"text": text, "read": read})
    connection.request("POST", "/v1/fill", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    reply.read()
    return reply.status


def row(name: str, clients: int, times: list[float], seconds: float) -> str:
    """A line of the table."""
    p50, p95, p99 = quantiles(times, (0.5, 0.95, 0.99))
    return f"| {name} | {clients} | {len(times) / seconds:.1f} | {p50:.0f} | {p95:.0f} | {p99:.0f} |"


def quantiles(times: Sequence[float], shares: Sequence[float]) -> list[float]:
    """For each share, the time that about this share of the times are below; at 1 the longest."""
    ordered = sorted(times)
    return [ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in shares]


def load() -> str:
    """The machine's load of the last minute, and its cores."""
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
