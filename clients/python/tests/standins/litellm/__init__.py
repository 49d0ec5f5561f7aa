import logging

callbacks = []
verbose_logger = logging.getLogger("LiteLLM")
