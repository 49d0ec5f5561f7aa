"""Chooses an LLM server by predicted latency, and reports what then happened. Needs the standard library only."""

from .client import Client, TrivetError
from .load import Candidate
from .messages import Answer, Input, Prediction, Reported
from .reporter import Reporter, ReporterStats
from .router import Choice, Ranking, Router

__all__ = [
    "Answer",
    "Candidate",
    "Choice",
    "Client",
    "Input",
    "Prediction",
    "Ranking",
    "Reported",
    "Reporter",
    "ReporterStats",
    "Router",
    "TrivetError",
]
