/** Starts a real browser for the pages. If it is missing, tests fail in CI and are skipped elsewhere. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { readServiceEngine } from '../store/engines.ts';

/** The headless shell is the same engine, without the parts that a window needs. */
const CANDIDATES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];
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

/** For one step of a page, and for the start. Playwright's half a minute is short where many browsers share a processor. */
const LIMIT_MS = 120_000;

/** A page in a context of its own. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(LIMIT_MS);
  return await context.newPage();
}

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
  return chromium.launch({ executablePath, args: FLAGS, timeout: LIMIT_MS });
}

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Rules of axe, and groups of them. */
export const ALL_RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
/** The rules among them that read colours. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];
/** Those that read where things are. The others judge what is shown, which is the same at 320 and 375 px: test/styles.test.ts. */
const PLACE_RULES = [...COLOUR_RULES, 'target-size', 'scrollable-region-focusable', 'css-orientation-lock'];

export interface View {
  readonly name: string;
  readonly width: number;
  readonly colorScheme: 'light' | 'dark';
  readonly rules: readonly string[];
}

/** Every page must pass on phones and on a desktop, in both colour schemes. The dark one changes colours alone: test/styles.test.ts. */
const VIEWS: readonly View[] = [
  { name: '320 px, light', width: 320, colorScheme: 'light', rules: ALL_RULES },
  { name: '320 px, dark', width: 320, colorScheme: 'dark', rules: COLOUR_RULES },
  { name: '375 px, light', width: 375, colorScheme: 'light', rules: PLACE_RULES },
  { name: 'desktop, light', width: 1440, colorScheme: 'light', rules: ALL_RULES },
  { name: 'desktop, dark', width: 1440, colorScheme: 'dark', rules: COLOUR_RULES },
];
/** The engine of the store changes neither marks, widths nor colours: on PostgreSQL, a desktop shows whether a page is whole. */
const VIEWS_ON_POSTGRES: readonly View[] = [{ name: 'desktop', width: 1440, colorScheme: 'light', rules: [] }];

/**
 * Returns the faults that axe finds in each view, and parts that overflow sideways (WCAG 1.4.10) or are cut. The pages' content
 * security policy blocks foreign scripts, so the page must have been opened in a context with `bypassCSP`.
 */
export async function findFlaws(page: Page, views = VIEWS): Promise<string[]> {
  const chosen = readServiceEngine() === 'sqlite' ? views : VIEWS_ON_POSTGRES;
  if (chosen.some(({ rules }) => rules.length > 0)) await page.addScriptTag({ path: axePath });
  const flaws: string[] = [];
  for (const view of chosen) {
    const found = await findFlawsInView(page, view);
    flaws.push(...found.map((flaw) => `${view.name}: ${flaw}`));
  }
  return flaws;
}

async function findFlawsInView(page: Page, { width, colorScheme, rules }: View): Promise<string[]> {
  await page.setViewportSize({ width, height: 800 });
  // Without animations, since colours would be too pale for a tenth of a second.
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  const found = rules.length === 0 ? [] : ((await page.evaluate(runAxe(rules))) as string[]);
  const isWide = await page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');
  if (isWide) found.push('the page scrolls sideways');
  for (const script of [FIND_CUT, FIND_CUT_FIELDS, FIND_TIGHT_LABELS, FIND_HIDDEN_VALUES, FIND_UNASKED])
    found.push(...((await page.evaluate(script)) as string[]));
  return found;
}

/** Texts that do not fit into what shows them, and cannot be scrolled to. */
const FIND_CUT = `[...document.querySelectorAll('body *')]
  .filter((element) => element.clientWidth > 1 && !element.matches('input, select, textarea, svg, svg *'))
  .filter((element) => ['hidden', 'clip'].includes(getComputedStyle(element).overflowX))
  .filter((element) => element.scrollWidth > element.clientWidth + 1)
  .map((element) => 'cut: ' + element.outerHTML.slice(0, 160))`;

/**
 * Fields that are narrower than what they show: dates, and choices and texts of up to 24 characters. Chromium says of a text how
 * wide it is; of a date and a choice, the width that it would have without a style for it.
 */
const FIND_CUT_FIELDS = `[...document.querySelectorAll('input:not([type=hidden], [type=checkbox], [type=radio]), select')]
  .filter((field) => field.clientWidth > 1)
  .filter((field) => {
    if (field.matches('input:not([type^=date], [type=time])')) return field.value.length <= 24 && field.scrollWidth > field.clientWidth + 1;
    const copy = field.cloneNode(true);
    copy.removeAttribute('id');
    for (const option of copy.querySelectorAll('option')) if (option.text.length > 24) option.remove();
    copy.style.cssText = 'position: absolute; visibility: hidden; width: auto; max-width: none';
    field.after(copy);
    const width = copy.getBoundingClientRect().width;
    copy.remove();
    return width > field.getBoundingClientRect().width + 1;
  })
  .map((field) => 'cut field: ' + field.outerHTML.slice(0, 160))`;

/** Finds labels below a chart that overlap. */
const FIND_TIGHT_LABELS = `[...document.querySelectorAll('.clocks')].flatMap((labels) => {
  const boxes = [...labels.children].map((label) => label.getBoundingClientRect()).filter(({ width }) => width > 0);
  const isTight = boxes.some(({ left }, at) => at > 0 && left - boxes[at - 1].right < 6);
  return isTight ? ['labels run together: ' + labels.innerText] : [];
})`;

/** Tables of two or three columns whose values can be seen only by scrolling. */
const FIND_HIDDEN_VALUES = `[...document.querySelectorAll('.scroll')]
  .filter((region) => region.querySelectorAll('thead th').length <= 3 && region.scrollWidth > region.clientWidth + 1)
  .map((region) => 'hidden values: ' + region.getAttribute('aria-label'))`;

/** Finds red buttons that act at once: without a question on the page, a field to confirm, or a link back beside them. */
const FIND_UNASKED = `[...document.querySelectorAll('form button.danger')]
  .filter((button) => button.closest('.ask') === null)
  .filter(({ form }) => form.querySelector('a, input:not([type=hidden])') === null)
  .map((button) => 'acts without a question: ' + button.outerHTML.slice(0, 160))`;

/** Leaves out descriptions of passed checks, which take axe longer than the checks. */
function runAxe(rules: readonly string[]): string {
  return `axe.run(document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ['violations'] })
    .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map((node) => id + ': ' + node.html.slice(0, 160) + ' ' + node.failureSummary)))`;
}
