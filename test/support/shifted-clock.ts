// Loaded before a program (`--import`): its clock is ahead of the machine's by `TEST_CLOCK_AHEAD_MS`, or behind.
const aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS ?? 0);
const nowMs = Date.now;
Date.now = () => nowMs() + aheadMs;
