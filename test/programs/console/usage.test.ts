import { readFile } from 'node:fs/promises';
import { type Browser, isFirefox, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { writeBudgetKey } from '../../support/doors/budget-key.js';
import { enterKey, forgetKey, headersOf, keyOf, writeNamedKeys } from '../../support/doors/named-keys.js';
import { startService } from '../../support/service/service.js';

/** Expression for the cumulative layout shift, computed as in Lighthouse. */
const layoutShift = `new Promise((resolve) => new PerformanceObserver((list, observer) => {
  observer.disconnect();
  resolve(list.getEntries().reduce((sum, { value = 0 }) => sum + value, 0));
}).observe({ type: 'layout-shift', buffered: true }) ?? setTimeout(resolve, 500, 0))`;

describe('The page Usage', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  const cellsOf = async (table: string) => {
    const rows = await browser.page.getByRole('table', { name: table }).getByRole('row').all();
    return Promise.all(rows.map((row) => row.locator('th, td').allInnerTexts()));
  };

  it('shows that there is no usage yet, and for which client', async () => {
    await using service = await startService();
    await openConsole(browser, service, '/usage');
    await browser.page.getByText('Nothing was used').waitFor();
    await browser.page.getByText('Your own usage.').waitFor();
    await expectGoodLooks(browser.page, 'usage-empty');
    expectClean(browser, service);
  });

  it('adds up the usage of all clients for an operator, and of one client for others', async () => {
    await using keys = await writeNamedKeys();
    await using service = await startService({ env: keys.env });
    const ask = (holder: 'alice' | 'bob', prompt: string) =>
      service.post('/ask', { prompt, model: 'echo' }, headersOf(holder));
    await ask('alice', 'one two three');
    await ask('alice', 'four');
    await ask('bob', 'five six');
    const { body } = await service.get('/usage', headersOf('operator'));
    const told = (body.usage as { tokens: { input: number } }[]).reduce((sum, { tokens }) => sum + tokens.input, 0);
    await openConsole(browser, service, '/usage');
    await enterKey(browser.page, keyOf('operator'));
    await browser.page.getByText('Usage of all clients.').waitFor();
    const [, first, second, all] = await cellsOf('Usage by client');
    expect([first?.[0], second?.[0], all?.[0]]).toEqual(['alice key', 'bob key', 'All']);
    expect([first?.[1], second?.[1], all?.[1]]).toEqual(['2', '1', '3']);
    expect(all?.[4]).toBe(String(told));
    await browser.page.getByRole('button', { name: 'Jobs' }).click();
    expect((await cellsOf('Usage by client'))[1]?.[0]).toBe('bob key');
    await expectGoodLooks(browser.page, 'usage-all');
    await browser.page.getByRole('link', { name: '30 days' }).click();
    await browser.page.getByText('Day by day').click();
    await browser.page.getByRole('table', { name: 'Usage by day' }).getByRole('row').nth(30).waitFor();
    expect(await cellsOf('Usage by day')).toHaveLength(31);
    await browser.page.getByLabel('What the columns show').selectOption('Tokens');
    await browser.page.getByRole('slider', { name: 'Tokens a day' }).focus();
    await browser.page.getByText(/tokens in, \d+ out$/).waitFor();
    await expectGoodLooks(browser.page, 'usage-days');
    await browser.page.getByLabel('Group by').selectOption('By client and model');
    await browser.page.getByRole('table', { name: 'Usage by client and model' }).waitFor();
    const [, most] = await cellsOf('Usage by client and model');
    expect(most?.slice(0, 3)).toEqual(['alice key', 'echo', '2']);
    await browser.page.getByRole('link', { name: '24 months' }).click();
    await browser.page.getByRole('slider', { name: 'Jobs a month' }).waitFor();
    await expectGoodLooks(browser.page, 'usage-months');
    const month = browser.page.getByLabel('Month', { exact: true });
    expect(await month.locator('option').first().innerText()).toBe('Choose a month');
    await month.selectOption({ index: 1 });
    await browser.page.getByText('Day by day').waitFor();
    const downloading = browser.page.waitForEvent('download');
    await browser.page.getByRole('button', { name: 'Save as CSV' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toMatch(/^usage-\d{4}-\d\d\.csv$/);
    const saved = await readFile(await download.path(), 'utf8');
    expect(saved).toMatch(/^month,client,kind,model,jobs,.*\n.*,alice,key,echo,2,/);
    await forgetKey(browser.page);
    await openConsole(browser, service, '/usage');
    await enterKey(browser.page, keyOf('bob'));
    await browser.page.getByText('Your own usage.').waitFor();
    expect(await browser.page.locator('main').innerText()).not.toContain('alice');
    expectClean(browser, service, /status of 40[13]/);
  }, 180_000); // many pages: 48 s at a load of 9

  it('shows how much of its budget a key has used', async () => {
    await using key = await writeBudgetKey('tokens=1000/day');
    await using service = await startService({ env: key.env });
    await service.post('/ask', { prompt: 'one two three', model: 'echo' }, key.headers);
    const { body } = await service.get('/usage', key.headers);
    const [budget] = body.budgets as { tokens: { used: number } }[];
    await openConsole(browser, service, '/usage');
    await enterKey(browser.page, key.key);
    await browser.page.getByRole('table', { name: 'Budgets of this day, week or month (UTC)' }).waitFor();
    expect((await cellsOf('Budgets of this day, week or month (UTC)'))[1]).toEqual([
      'ada',
      `${budget?.tokens.used} of 1,000 a day`,
      'no limit',
    ]);
    await browser.page.setViewportSize({ width: 412, height: 823 });
    await browser.page.reload();
    await browser.page.getByRole('table', { name: 'Budgets of this day, week or month (UTC)' }).waitFor();
    if (!isFirefox) expect(await browser.page.evaluate(layoutShift)).toBeLessThan(0.1);
    await expectGoodLooks(browser.page, 'usage-budgets');
    expectClean(browser, service, /status of 40[13]/);
  });
});
