/** Checks for `trivet doctor` the files of settings that the parts of this process read when they start. */
import type { Config } from '../../config/config.ts';
import { describeError } from '../../errors.ts';
import { readScrapeList } from '../../prediction/scraper/scrape-targets.ts';
import { readAuthorities } from '../../webhooks/delivery/send/delivery-authorities.ts';
import { type Check, fail, ok } from './check.ts';

export function checkAuthorities({ server: { parts }, webhooks: { caFile } }: Config): Check[] {
  if (caFile === undefined || !parts.includes('webhooks')) return [];
  const name = 'authorities';
  try {
    readAuthorities(caFile);
    return [ok(name, `"${caFile}" has certificates of authorities of receivers`)];
  } catch (error) {
    return [fail(name, describeError(error), 'Set WEBHOOK_CA_FILE to certificates of authorities in PEM form')];
  }
}

export async function checkServerList({ server: { parts }, prediction: { scrape } }: Config): Promise<Check[]> {
  if (scrape === undefined || !parts.includes('prediction')) return [];
  const name = 'scraped servers';
  try {
    const servers = await readScrapeList(scrape);
    return [ok(name, `PREDICTION_SCRAPE lists ${servers.length}`)];
  } catch (error) {
    return [fail(name, describeError(error), 'Set PREDICTION_SCRAPE to servers, or to a file that lists them')];
  }
}
