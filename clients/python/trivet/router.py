"""Chooses a server for each request by predicted latency; without an answer in time, the server with the fewest requests (fallback)."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, List, Optional, Sequence, Tuple, Union

from . import messages
from .client import TrivetError
from .load import MAX_METRICS_AGE, Candidate, Load
from .messages import Answer, Asker, Input, Reported
from .reporter import Reporter

#: After this many failed predictions in a row, the router does not request predictions for _PAUSE seconds.
_FAILURES = 3
_PAUSE = 1.0


class Router:
    """Thread-safe. Without a prediction it chooses the server with the fewest requests. It raises an error only without candidates.

    choose_async() always keeps the deadline of the client. choose() keeps it only as far as the client does: see Client.
    """

    def __init__(
        self,
        client: Asker,
        model: str,
        *,
        reporter: Optional[Reporter] = None,
        max_metrics_age: float = MAX_METRICS_AGE,
    ) -> None:
        self.model = model
        self.client = client
        self.reporter = reporter if reporter is not None else Reporter(client)
        self._load = Load(max_metrics_age)
        self._lock = threading.Lock()
        self._failures = 0
        self._ask_again_at = 0.0
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="trivet-predict")

    def set_metrics(self, address: str, *, waiting: float = 0, kv_cache_usage: float = 0.0) -> None:
        """Takes the metrics just read from a server: the length of its queue, the share of its KV cache in use (0 to 1).

        Raises ValueError for impossible metrics. A server whose metrics are older than `max_metrics_age` seconds is chosen only after
        servers with newer metrics or without any.
        """
        messages.check_amount("waiting", waiting)
        messages.check_amount("kv_cache_usage", kv_cache_usage)
        with self._lock:
            self._load.set_metrics(address, int(round(waiting)), float(kv_cache_usage))

    def choose(self, prompt_tokens: int, candidates: Sequence[Union[str, Candidate]]) -> Choice:
        """Chooses a server and counts the request as sent to it. Raises ValueError when there are no candidates."""
        ranking = self.rank(prompt_tokens, candidates)
        return ranking.dispatch(ranking.candidates[0].address)

    async def choose_async(self, prompt_tokens: int, candidates: Sequence[Union[str, Candidate]]) -> Choice:
        """Does the same as choose() without blocking the event loop."""
        ranking = await self.rank_async(prompt_tokens, candidates)
        return ranking.dispatch(ranking.candidates[0].address)

    def rank(self, prompt_tokens: int, candidates: Sequence[Union[str, Candidate]]) -> Ranking:
        """Ranks the candidates, best first, without counting a request."""
        named, inputs = self._prepare(prompt_tokens, candidates)
        try:
            answer: Union[Answer, TrivetError] = self._predict(inputs, threading.Lock())
        except Exception as error:  # noqa: BLE001 (a request must not fail because of a prediction)
            answer = _as_trivet_error(error)
        return self._settle(named, inputs, answer)

    async def rank_async(self, prompt_tokens: int, candidates: Sequence[Union[str, Candidate]]) -> Ranking:
        """Does the same as rank() without blocking the event loop, and keeps the deadline over all steps together."""
        named, inputs = self._prepare(prompt_tokens, candidates)
        loop = asyncio.get_running_loop()
        settled = threading.Lock()
        answer: Union[Answer, TrivetError]
        try:
            asked = loop.run_in_executor(self._threads, self._predict, inputs, settled)
            answer = await asyncio.wait_for(asked, self.client.deadline)
        except asyncio.TimeoutError:
            self._count_failure(settled)
            answer = TrivetError("deadline_exceeded", f"no prediction within {self.client.deadline} s")
        except Exception as error:  # noqa: BLE001 (a request must not fail because of a prediction)
            answer = _as_trivet_error(error)
        return self._settle(named, inputs, answer)

    def close(self) -> Reported:
        """Sends waiting reports, and returns what became of all reports."""
        self._threads.shutdown(wait=False)
        return self.reporter.close()

    def _prepare(
        self, prompt_tokens: int, candidates: Sequence[Union[str, Candidate]]
    ) -> Tuple[List[Candidate], List[Input]]:
        if not candidates:
            raise ValueError("Cannot choose a server: there are no candidates")
        named = [Candidate(one) if isinstance(one, str) else one for one in candidates]
        with self._lock:
            return named, self._load.ask(messages.to_int32(prompt_tokens), named)

    def _predict(self, inputs: Sequence[Input], settled: threading.Lock) -> Answer:
        # The first to take the lock counts the request as a success or a failure: this call, or the deadline if it passed before.
        if time.monotonic() < self._ask_again_at:
            raise TrivetError("unavailable", "the last predictions failed")
        try:
            answer = self.client.predict(self.model, inputs)
        except Exception:
            self._count_failure(settled)
            raise
        if settled.acquire(blocking=False):
            self._failures = 0
        return answer

    def _count_failure(self, settled: threading.Lock) -> None:
        if not settled.acquire(blocking=False):
            return
        self._failures += 1
        if self._failures >= _FAILURES:
            self._ask_again_at = time.monotonic() + _PAUSE

    def _settle(
        self, candidates: List[Candidate], inputs: List[Input], answer: Union[Answer, TrivetError]
    ) -> Ranking:
        with self._lock:
            if isinstance(answer, TrivetError):
                order = self._load.rank_by_load(candidates)
                return Ranking(self, [candidates[i] for i in order], [inputs[i] for i in order], error=answer)
            predictions = {prediction.input_id: prediction for prediction in answer.predictions}
            order = self._load.rank(candidates, predictions)
            ranked = [candidates[i] for i in order]
            return Ranking(self, ranked, [inputs[i] for i in order], version=answer.model_version)

    def _count(self, address: str, prompt_tokens: int) -> Callable[[int], None]:
        with self._lock:
            return self._load.dispatched(address, prompt_tokens)


def _as_trivet_error(error: Exception) -> TrivetError:
    return error if isinstance(error, TrivetError) else TrivetError("unknown", repr(error))


class Ranking:
    """The candidates, best first. Without a prediction, `model_version` is empty and `error` is set."""

    def __init__(
        self,
        router: Router,
        candidates: List[Candidate],
        inputs: List[Input],
        *,
        version: str = "",
        error: Optional[TrivetError] = None,
    ) -> None:
        self.candidates = candidates
        self.model_version = version
        self.error = error
        self._router = router
        self._input_by_address = {one.server_ip: one for one in inputs}

    def dispatch(self, address: str, request_id: Optional[str] = None) -> Choice:
        """Counts the request as sent to the server of this address."""
        return Choice(self._router, self, self._input_by_address[address], request_id)


class Choice:
    """A request to the chosen server. Call first_token() and finished(), or failed()."""

    def __init__(self, router: Router, ranking: Ranking, chosen: Input, request_id: Optional[str]) -> None:
        self.address = chosen.server_ip
        self.model_version = ranking.model_version
        self.error = ranking.error
        self.request_id = request_id if request_id is not None else uuid.uuid4().hex
        self._router = router
        self._input = chosen
        self._ended = router._count(self.address, chosen.input_token_length)
        self._lock = threading.Lock()
        self._is_over = False
        self._is_reported = False
        #: When the request was sent, in seconds since the epoch.
        self.started_at = time.time()
        self._started_at = time.monotonic()
        self._first_token_at: Optional[float] = None

    def dispatched(self) -> None:
        """Reports the dispatch, once. Without this call, first_token() reports it, so that a request that fails before is not reported."""
        with self._lock:
            if self._is_reported:
                return
            self._is_reported = True
        self._router.reporter.send([messages.dispatched(self.request_id, self._router.model, self._input, messages.at(self.started_at))])

    def first_token(self, ttft: Optional[float] = None) -> None:
        """Reports the dispatch unless dispatched() did, and the time from it to the first token: `ttft` seconds, or the time until now."""
        now = time.monotonic()
        self._first_token_at = now
        seconds = now - self._started_at if ttft is None else ttft
        self.dispatched()
        self._router.reporter.send([messages.first_token(self.request_id, seconds)])

    def finished(self, output_tokens: int, elapsed: Optional[float] = None) -> None:
        """Reports the end of the answer, `elapsed` seconds after its first token, or now.

        Without `elapsed` and without first_token(), as for an answer that was not streamed, the request ends without a report, because
        the time of its tokens is not known.
        """
        first_token_at = self._first_token_at
        seconds = time.monotonic() - first_token_at if elapsed is None and first_token_at is not None else elapsed
        if self._end(output_tokens) and seconds is not None:
            self._router.reporter.send([messages.finished(self.request_id, seconds, output_tokens)])

    def failed(self) -> None:
        """Ends a request without reporting times."""
        self._end(0)

    def _end(self, output_tokens: int) -> bool:
        with self._lock:
            if self._is_over:
                return False
            self._is_over = True
        with self._router._lock:
            self._ended(output_tokens)
        return True
