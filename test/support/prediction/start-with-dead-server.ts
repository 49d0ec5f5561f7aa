/** The program, with a scraped server that is `live` and one that is `dead`. */
import { waitUntil } from '../basics/wait-until.ts';
import { type Program, startProgram } from '../programs/start-program.ts';

/** Resolves once the numbers of the live server, at this address, are read. */
export async function startWithDeadServer(liveUrl: string): Promise<Program> {
  const program = await startProgram({
    PARTS: 'prediction',
    PREDICTION_SCRAPE: `live=${liveUrl},dead=http://127.0.0.1:1/metrics`,
    PREDICTION_SCRAPE_INTERVAL_MS: '50',
  });
  await waitUntil(async () => {
    const metrics = await (await fetch(`${program.httpUrl}/metrics`)).text();
    return /trivet_prediction_scrapes_total\{outcome="ok"\} [1-9]/.test(metrics);
  });
  return program;
}
