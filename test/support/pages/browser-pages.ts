/** Pages in a real browser, as the tests of every area's pages use them. */
import { after, before, type TestContext } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchBrowser, openPage } from './browser.ts';
import { PASSWORD } from './page-service.ts';

export interface TestBrowser {
  /** Opens a page in a new browser context, until the test ends. */
  openPage(t: TestContext, options?: BrowserContextOptions): Promise<Page>;
}

/** One browser for the tests of the `describe` that calls this. */
export function useBrowser(): TestBrowser {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  return {
    async openPage(t, options) {
      const page = await openPage(browser, options);
      t.after(() => page.context().close());
      return page;
    },
  };
}

export async function signIn(page: Page, url: string, password = PASSWORD): Promise<void> {
  await page.goto(`${url}/sign-in`);
  await fillSignIn(page, password);
}

export async function fillSignIn(page: Page, password = PASSWORD): Promise<void> {
  // Finds fields by their names, which are the same in every language.
  await page.fill('input[name=login]', 'ada');
  await page.fill('input[name=password]', password);
  await page.click('form[action="/sign-in"] button:not([type])');
}

/** Saves pictures of the page, wide and narrow, light and dark, into the folder that `TRIVET_SHOTS` names; none without it. */
export async function savePictures(page: Page, name: string): Promise<void> {
  const folder = process.env.TRIVET_SHOTS;
  if (folder === undefined) return;
  for (const width of [375, 1440])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png`, fullPage: true });
    }
}

export async function readText(page: Page, selector = 'main'): Promise<string> {
  return page.innerText(selector);
}
