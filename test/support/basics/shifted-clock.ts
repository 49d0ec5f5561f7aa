// Loaded before a program (`--import`): shifts its clock by `TEST_CLOCK_AHEAD_MS`, which may be negative. At the signal SIGUSR2 the
// clock jumps by `TEST_CLOCK_JUMP_MS`.
let aheadMs = Number(process.env.TEST_CLOCK_AHEAD_MS ?? 0);
const nowMs = Date.now;
Date.now = () => nowMs() + aheadMs;
process.on('SIGUSR2', () => {
  aheadMs += Number(process.env.TEST_CLOCK_JUMP_MS ?? 0);
});
