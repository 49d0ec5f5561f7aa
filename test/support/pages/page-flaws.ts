/** The flaws of a page in each language: on a phone and on a desktop, light and dark, and English in the middle of Chinese. */
import type { Page } from 'playwright-core';
import { checkOpenedPages, recordOpened } from '../rules/opened-pages.ts';
import { ALL_RULES, findFlaws, findReasonToSkipPages, type View } from './browser.ts';

// Without a browser all tests of pages are skipped.
if (findReasonToSkipPages() === false) checkOpenedPages();

/** Only in light: no style depends on the language, so the colours are those of the English page (test/styles.test.ts). */
const VIEWS: readonly View[] = [
  { name: 'Chinese, 375 px, light', width: 375, colorScheme: 'light', rules: ALL_RULES },
  { name: 'Chinese, 1440 px, light', width: 1440, colorScheme: 'light', rules: ALL_RULES },
];

/** Names and units, which are the same in Chinese. */
const NAMES = new Set(
  `Trivet Webhook Webhooks OAuth API HTTP URL ID PKCE TTFT TPOT MAPE UTC GMT ms Token Pod KV CSV JSON lines SHA curl DNS
   TLS Issue SSH Basic Standard CPU IP OWNER NAME http https GitHub GitLab Gitee GitCode Gitea Slack DingTalk MiB
   git PREDICTION SCRAPE L Gone OpenAPI MdAPE ISO Z GET POST PUT PATCH DELETE aggregate prefill decode`.split(/\s+/),
);
/** Addresses, commands, and names of headers and scopes are written alike in every language. */
const WRITTEN_ALIKE = /https?:\/\/[^\s，。）]+|\btrivet(?: [a-z-]+)+|\b[a-z]+(?:[-:][a-z]+)+/g;
/** `p90`, `5xx`, `prefix_cache_score`, paths and numbers with units. */
const IS_SYMBOL = /\d|_|^[a-z]$/;

/** For a page: where several browsers share a processor, one takes up to a minute. */
export const PAGE_LIMIT_MS = 300_000;
/** A test of many pages, each of which has its own limit. */
export const ALL_PAGES = { timeout: 3_600_000 };

export const PAGE_LANGUAGES = ['en', 'zh-CN'] as const;

/**
 * The page as it is shown, then opened again in Chinese. `content`: the words of names and texts that people, servers and models
 * brought. The page must have been opened in a context with `bypassCSP`.
 */
export async function findPageFlaws(page: Page, content: readonly string[] = []): Promise<string[]> {
  return [...(await findFlaws(page)), ...(await findFlawsInChinese(page, content))];
}

/** The same in Chinese alone: what takes long is divided into a test for each language. */
export async function findFlawsInChinese(page: Page, content: readonly string[] = []): Promise<string[]> {
  const url = page.url();
  await speakTo(page, 'zh-CN', url);
  await page.goto(url);
  const flaws = await findShownFlaws(page, { language: 'zh-CN', content });
  await page.context().clearCookies({ name: COOKIE });
  return flaws;
}

const COOKIE = 'trivet_language';

export async function speakTo(page: Page, language: (typeof PAGE_LANGUAGES)[number], url: string): Promise<void> {
  await page.context().addCookies([{ name: COOKIE, value: language, url: new URL(url).origin }]);
}

/** Of a page that is shown once, or that answers a form: its test leads to it in each of `PAGE_LANGUAGES`. */
export async function findShownFlaws(
  page: Page,
  {
    language,
    content = [],
  }: { readonly language: (typeof PAGE_LANGUAGES)[number]; readonly content?: readonly string[] },
): Promise<string[]> {
  recordOpened(page.url());
  const shown = await page.evaluate('document.documentElement.lang');
  const wrong = shown === language ? [] : [`the page is in ${String(shown)} instead of ${language}`];
  if (language === 'en') return [...wrong, ...(await findFlaws(page))];
  return [...wrong, ...(await findFlaws(page, VIEWS)), ...(await findEnglish(page, new Set(content)))];
}

async function findEnglish(page: Page, content: ReadonlySet<string>): Promise<string[]> {
  const texts = (await page.evaluate(READ_TEXTS)) as string[];
  return texts.flatMap((text) => {
    const words = text.replaceAll(WRITTEN_ALIKE, ' ').match(/[\p{Script=Latin}\d_]+/gu) ?? [];
    const unknown = words.filter((word) => !NAMES.has(word) && !IS_SYMBOL.test(word) && !content.has(word));
    return unknown.length === 0 ? [] : [`English: "${unknown.join(' ')}" in "${text.trim().slice(0, 120)}"`];
  });
}

/** What is read on the page or read out, without code, addresses and what says that it is English. */
const READ_TEXTS = `(() => {
  const skipped = 'code, pre, script, noscript, style, .url, .who, [lang=en], option[value*="/"], input, textarea';
  const texts = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(skipped)) texts.push(walker.currentNode.data);
  for (const element of document.querySelectorAll('[aria-label], [title], [alt], [placeholder]'))
    if (!element.closest(skipped))
      for (const name of ['aria-label', 'title', 'alt', 'placeholder']) texts.push(element.getAttribute(name) ?? '');
  texts.push(...Object.values(document.body.dataset));
  return texts.filter((text) => text.trim() !== '');
})()`;
