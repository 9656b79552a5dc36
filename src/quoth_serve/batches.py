"""The queue: requests wait here in a bounded queue, and those waiting together with the same options are one batch.

Knows: threads, a queue, batches, deadlines. Does not know: HTTP, models, what a call does.

No request waits for others to come: those that arrive while a batch is at work are the next one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil
from time import perf_counter
from typing import Any, TypeVar

from quoth.timing import timed
from quoth_serve.limits import Limits
from quoth_serve.problems import BusyError

_T = TypeVar("_T")
Call = Callable[[list[Any]], Sequence[Any]]
"""Answers several inputs, in their order."""


@dataclass(frozen=True, slots=True)
class Done:
    """The answers to a job's inputs, the seconds it waited and worked and those of each step, which it shares with the
    other inputs of its batch."""

    answers: list[Any]
    waited: float
    worked: float
    steps: dict[str, float]
    batch: int


@dataclass(slots=True, eq=False)
class _Job:
    key: Hashable
    inputs: Sequence[Any]
    call: Call
    future: Future[Done] = field(default_factory=Future)
    since: float = field(default_factory=perf_counter)


async def aside(call: Callable[..., _T], *given: Any) -> _T:
    """What a call returns that must not hold up the event loop. Unlike those of `asyncio.to_thread`, its thread does
    not keep the process if the call never ends. Raises what it raises."""
    future: Future[_T] = Future()

    def work() -> None:
        try:
            found = call(*given)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(found)

    future.set_running_or_notify_cancel()
    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(future)


class BatchQueue:
    """Worker threads that serve a queue. `watch` is called with every batch.

    Example:
        >>> queue = BatchQueue(Limits())
        >>> asyncio.run(queue.ask("double", [1, 2], lambda inputs: [2 * each for each in inputs])).answers
        [2, 4]
        >>> queue.close()
    """

    def __init__(self, limits: Limits, watch: Callable[[Done], None] = lambda done: None) -> None:
        self._limits, self._watch = limits, watch
        self._line: deque[_Job] = deque()
        self._ready = threading.Condition()
        self._closed = False
        self._pace = 0.1
        self._at_work = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"quoth-{number}", daemon=True)
            for number in range(limits.concurrency)
        ]
        for each in self._threads:
            each.start()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._line)

    @property
    def at_work(self) -> int:
        """How many batches are being worked on."""
        return self._at_work

    async def ask(self, key: Hashable, inputs: Sequence[Any], call: Call) -> Done:
        """What `call` returns for these inputs, perhaps together with those of other jobs of the same `key` (None:
        alone).

        Raises BusyError at once if the queue is full, TimeoutError if there is no answer in time, and what `call`
        raises.
        """
        job = _Job(key, inputs, call)
        with self._ready:
            if self._closed or len(self._line) >= self._limits.queue:
                seconds = ceil(self._pace * (len(self._line) + 1) / self._limits.concurrency)
                raise BusyError(max(min(seconds, 60), 1), *(["the service stops"] if self._closed else []))
            self._line.append(job)
            self._ready.notify()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.future), self._limits.timeout)
        except TimeoutError:
            raise TimeoutError(f"no answer in {self._limits.timeout:g} seconds; ask again later") from None
        finally:
            if job.future.cancel():  # nobody waits for it any longer: it must not keep others out
                with self._ready:
                    self._line = deque(each for each in self._line if each is not job)

    async def alone(self, call: Callable[[], Any]) -> Done:
        """The one answer that this call returns, in no batch. Raises as `ask`."""
        return await self.ask(None, [None], lambda _: [call()])

    async def reply(self, call: Callable[[], _T]) -> _T:
        """What this call returns, in no batch. Raises as `ask`."""
        answer: _T = (await self.alone(call)).answers[0]
        return answer

    def close(self) -> None:
        """Takes no more jobs, and returns when those at work and those that wait are done, or after the time that an
        answer may take: a job that never ends must not keep the process."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        until = perf_counter() + self._limits.timeout
        for each in self._threads:
            each.join(max(until - perf_counter(), 0))

    def _work(self) -> None:
        while batch := self._take():
            live = [job for job in batch if job.future.set_running_or_notify_cancel()]
            try:
                if live:
                    self._answer(live)
            finally:
                with self._ready:
                    self._at_work -= 1

    def _take(self) -> list[_Job]:
        """The job that has waited longest, and those that can be answered with it; none when the queue is closed."""
        with self._ready:
            while not self._line:
                if self._closed:
                    return []
                self._ready.wait()
            batch = [self._line.popleft()]
            size, others = len(batch[0].inputs), deque[_Job]()
            while self._line:
                job = self._line.popleft()
                if job.key is not None and job.key == batch[0].key and size + len(job.inputs) <= self._limits.batch:
                    batch.append(job)
                    size += len(job.inputs)
                else:
                    others.append(job)
            self._line = others
            self._at_work += 1
            return batch

    def _answer(self, batch: list[_Job]) -> None:
        inputs = [each for job in batch for each in job.inputs]
        begin = perf_counter()
        try:
            with timed() as steps:
                answers = list(batch[0].call(inputs))
        except BaseException as error:
            if len(batch) == 1:
                batch[0].future.set_exception(error)
            else:  # whoever's fault it was, the others are answered
                for job in batch:
                    self._answer([job])
            return
        worked = perf_counter() - begin
        self._pace = 0.8 * self._pace + 0.2 * worked
        self._watch(Done(answers, begin - batch[0].since, worked, dict(steps), len(inputs)))
        at = 0
        for job in batch:
            mine = answers[at : at + len(job.inputs)]
            at += len(job.inputs)
            job.future.set_result(Done(mine, begin - job.since, worked, dict(steps), len(inputs)))
