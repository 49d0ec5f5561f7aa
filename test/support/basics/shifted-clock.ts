// Loaded before a program (`--import`): its clock is ahead of the machine's by `TEST_CLOCK_AHEAD_MS`, or behind. At the signal
// SIGUSR2 it jumps by `TEST_CLOCK_JUMP_MS`.
let aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS ?? 0);
const nowMs = Date.now;
Date.now = () => nowMs() + aheadMs;
process.on('SIGUSR2', () => {
  aheadMs += Number(process.env.TEST_CLOCK_JUMP_MS ?? 0);
});
