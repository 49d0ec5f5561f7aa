/** A real browser for the pages. Missing, it is a failure where CI runs and a skip elsewhere. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CANDIDATES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

function findBrowser(): string | undefined {
  return CANDIDATES.find((path) => existsSync(path));
}

/** For `{ skip }`: the reason not to run here, or false. */
export function findReasonToSkipPages(): string | false {
  if (findBrowser() !== undefined || process.env.CI === 'true') return false;
  return 'no Chromium is installed (apt-get install chromium)';
}

export function launchBrowser(): Promise<Browser> {
  const executablePath = findBrowser();
  if (executablePath === undefined) throw new Error(`No Chromium is installed in ${CANDIDATES.join(', ')}`);
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Every page must pass at both widths and in both colour schemes. */
export const VIEWS: readonly (readonly [name: string, options: BrowserContextOptions])[] = [
  ['320 px, light', { viewport: { width: 320, height: 640 }, colorScheme: 'light' }],
  ['320 px, dark', { viewport: { width: 320, height: 640 }, colorScheme: 'dark' }],
  ['desktop, light', { viewport: { width: 1280, height: 860 }, colorScheme: 'light' }],
  ['desktop, dark', { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' }],
];

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/**
 * What axe finds wrong, with what overflows sideways (WCAG 1.4.10). The policy of the pages lets no foreign script in,
 * so the page must have been opened in a context with `bypassCSP`.
 */
export async function findFlaws(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: axePath });
  const flaws = (await page.evaluate(AXE_RUN)) as string[];
  const isWide = await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
  return isWide ? [...flaws, 'the page scrolls sideways'] : flaws;
}

const AXE_RUN = `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
  .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => id + ': ' + node.html.slice(0, 160) + ' ' + node.failureSummary)))`;
