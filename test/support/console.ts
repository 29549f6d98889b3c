import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { type Browser, isFirefox } from './browser.js';
import type { Service } from './service.js';
import { root } from './sources.js';

const limitMs = 15_000;

/** Forgets what the tab remembers of the page, but for its key. */
const forget = `Object.keys(sessionStorage).filter((name) => !name.endsWith('-key'))
  .forEach((name) => sessionStorage.removeItem(name))`;

/** Shows the console anew, at a place of its own: `/ask`. What was asked, complained of and remembered before is forgotten. */
export async function openConsole(
  { page, requests, complaints }: Browser,
  service: Pick<Service, 'url'>,
  place = '',
): Promise<void> {
  page.setDefaultTimeout(limitMs);
  await page.goto(`${service.url}/version`); // of the same origin, and without the console
  await page.evaluate(forget);
  requests.length = 0;
  complaints.length = 0;
  await page.goto(`${service.url}/console/#${place}`);
  await page.locator('main h1').first().waitFor({ state: 'attached' });
}

/** Nothing was asked of anyone else, and nothing was against the page's own policy. `expected` are complaints of the browser about answers. */
export function expectClean({ requests, complaints }: Browser, service: Service, expected?: RegExp): void {
  expect(complaints.filter((complaint) => expected === undefined || !expected.test(complaint))).toEqual([]);
  expect(requests.filter(({ origin }) => origin !== service.url).map(String)).toEqual([]);
}

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** What axe finds wrong with the page as it is shown now, in a line each. */
async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** What does not fit, or lies over something else: the page, its tabs, tables in cards, the names at the axis of a chart. */
const layoutFaults = `{
  const isCut = (element) => element.scrollWidth > element.clientWidth;
  const areas = (elements) => [...elements].map((element) => element.getBoundingClientRect());
  const overlap = (chart) => areas(chart.querySelectorAll('text[text-anchor=middle]'))
    .some(({ right }, index, all) => index + 1 < all.length && right >= all[index + 1].left);
  const all = (selector, isWrong) => [...document.querySelectorAll(selector)].filter(isWrong).map(() => selector);
  [
    ...(document.documentElement.scrollWidth > innerWidth ? ['page'] : []),
    ...all('.top nav', isCut), ...all('.card > .table', isCut), ...all('.tools', isCut), ...all('.chart', overlap),
  ]
}`;

const pictures = join(root, 'reports', 'console');
const sizes = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } } as const;
type Size = keyof typeof sizes;

/**
 * Looks at the page wide and narrow: nothing may be cut off. In Chromium, also light and dark: a picture of each goes to
 * reports/console, and axe must find nothing. The page is left wide, if it is looked at wide.
 */
export async function expectGoodLooks(page: Page, name: string, looks: readonly Size[] = ['wide', 'narrow']) {
  await mkdir(pictures, { recursive: true });
  for (const size of looks) {
    await page.setViewportSize(sizes[size]);
    expect([name, size, await page.evaluate(layoutFaults)]).toEqual([name, size, []]);
    if (isFirefox) continue; // colours and roles are the same there
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await violationsOf(page)).toEqual([]);
      await page.screenshot({ path: join(pictures, `${name}-${size}-${colorScheme}.png`) });
    }
  }
  if (looks.includes('wide')) await page.setViewportSize(sizes.wide);
}
