import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { until } from '../basics/until.js';
import { root } from '../documents/sources.js';
import type { Service } from '../service/service.js';
import { type Browser, isFirefox } from './browser.js';

const limitMs = 30_000;

/** Removes the tab's stored state, except its API key. */
const forget = `Object.keys(sessionStorage).filter((name) => !name.endsWith('-key'))
  .forEach((name) => sessionStorage.removeItem(name))`;

/** Opens the console at a path such as `/ask`, with stored state and recorded requests and complaints cleared. */
export async function openConsole(
  { page, requests, complaints }: Browser,
  service: Pick<Service, 'url'>,
  place = '',
): Promise<void> {
  page.setDefaultTimeout(limitMs);
  await page.goto(`${service.url}/version`); // same origin, without the console
  await page.evaluate(forget);
  requests.length = 0;
  complaints.length = 0;
  await page.goto(`${service.url}/console/#${place}`);
  await page.locator('main h1').first().waitFor({ state: 'attached' });
}

/** Resolves when the page evaluates an expression to this text, or to one that matches. */
export function untilEvaluates(page: Page, expression: string, wanted: string | RegExp): Promise<boolean> {
  return until(async () => {
    const found = String(await page.evaluate(expression));
    return typeof wanted === 'string' ? found === wanted : wanted.test(found);
  }, `${expression} to be ${wanted}`);
}

/** Resolves when a field has this value, or one that matches. */
export function untilValue(field: Locator, wanted: string | RegExp): Promise<boolean> {
  return until(async () => {
    const value = await field.inputValue();
    return typeof wanted === 'string' ? value === wanted : wanted.test(value);
  }, `the value ${wanted}`);
}

/** Resolves when this many elements are found. */
export function untilCount(found: Locator, count: number): Promise<boolean> {
  return until(async () => (await found.count()) === count, `${count} of ${found}`);
}

/**
 * Expects no request to another server and no breach of the content security policy. `expected` matches allowed
 * complaints about answers.
 */
export function expectClean({ requests, complaints }: Browser, service: Service, expected?: RegExp): void {
  expect(complaints.filter((complaint) => expected === undefined || !expected.test(complaint))).toEqual([]);
  expect(requests.filter(({ origin }) => origin !== service.url).map(String)).toEqual([]);
}

interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** Returns the problems that axe finds on the page, a line each. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

/** Finds clipped or overlapping parts: the page, its tabs, tables in cards, names at the axis of a chart. */
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
/** Of two sizes each has one scheme, because the colours do not depend on the size. */
const coloursAt = { wide: ['light'], narrow: ['dark'] } as const;

/**
 * Checks the page at each size for clipped parts. In Chromium, also light and dark: saves pictures to reports/console,
 * and expects no problem from axe. The page ends wide if `wide` is among the sizes.
 */
export async function expectGoodLooks(page: Page, name: string, looks: readonly Size[] = ['wide', 'narrow']) {
  await mkdir(pictures, { recursive: true });
  for (const size of looks) {
    await page.setViewportSize(sizes[size]);
    expect([name, size, await page.evaluate(layoutFaults)]).toEqual([name, size, []]);
    if (isFirefox) continue; // same colours and roles there
    for (const colorScheme of looks.length === 1 ? (['light', 'dark'] as const) : coloursAt[size]) {
      await page.emulateMedia({ colorScheme });
      expect(await violationsOf(page)).toEqual([]);
      await page.screenshot({ path: join(pictures, `${name}-${size}-${colorScheme}.png`) });
    }
  }
  if (looks.includes('wide')) await page.setViewportSize(sizes.wide);
}
