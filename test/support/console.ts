import type { Browser } from './browser.js';
import type { Service } from './service.js';

const limitMs = 15_000;

/** Shows the console at a place of its own: `/ask`. */
export async function openConsole({ page }: Browser, service: Service, place = ''): Promise<void> {
  page.setDefaultTimeout(limitMs);
  await page.goto(`${service.url}/console/#${place}`);
  await page.locator('main h1').first().waitFor({ state: 'attached' });
}

/** Nothing was asked of anyone else, and nothing was against the page's own policy. */
export function expectClean({ requests, complaints }: Browser, service: Service): void {
  expect(complaints).toEqual([]);
  expect(requests.filter(({ origin }) => origin !== service.url).map(String)).toEqual([]);
}
