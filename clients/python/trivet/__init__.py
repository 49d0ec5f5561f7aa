"""Chooses an LLM server for each request by predicted latency, and reports the observed times. Needs only the standard library."""

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
