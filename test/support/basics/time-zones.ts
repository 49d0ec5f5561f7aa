import { test } from 'node:test';

/** Runs a test in each of two time zones, as if it were that of the machine. */
export function testInZones(title: string, run: () => void): void {
  for (const zone of ['UTC', 'America/New_York'])
    test(`${title} where the zone of the machine is ${zone}`, () => {
      const before = process.env.TZ;
      process.env.TZ = zone;
      try {
        run();
      } finally {
        if (before === undefined) delete process.env.TZ;
        else process.env.TZ = before;
      }
    });
}
