import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../../src/shared/config/api-keys.js';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import { expectClean, expectGoodLooks, openConsole } from '../../support/clients/console.js';
import { enterKey, keyOf } from '../../support/doors/named-keys.js';
import { type Service, startService } from '../../support/service/service.js';

describe('The page of a course', () => {
  let folder: TemporaryFolder;
  let service: Service;
  let browser: Browser;

  beforeEach(async () => {
    browser = await startBrowser();
    folder = await temporaryFolder();
    const path = join(folder.path, 'keys');
    const lines = [
      '@bio101 each=tokens:200000/week expires=2999-07-15',
      `prof:sha256:${digestOf(keyOf('prof'))}:admin=@bio101`,
      `bio101-ada:sha256:${digestOf(keyOf('ada'))}:group=bio101`,
    ];
    await writeFile(path, `${lines.join('\n')}\n`, { mode: 0o600 });
    const env = { MODEL_API_KEYS_FILE: path, MODEL_API_STATE_FOLDER: join(folder.path, 'state') };
    service = await startService({ env });
  });
  afterEach(async () => {
    await service.stop();
    await browser[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it('lets a teacher add, limit and remove people', async () => {
    const { page } = browser;
    await openConsole(browser, service, '/usage');
    await enterKey(page, keyOf('prof'));
    await page.getByRole('link', { name: 'bio101' }).click();
    await page.getByRole('row', { name: /^bio101-ada 0 0 \$0.00 those of the course by the operator/ }).waitFor();
    await page.getByLabel('Logins or e-mail addresses').fill('ben\ncleo');
    await page.getByLabel('Budget of tokens').fill('900000/week');
    await page.getByRole('button', { name: 'Make keys' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Budget of tokens').fill('5000/week');
    await page.getByRole('button', { name: 'Make keys' }).click();
    await page.getByRole('heading', { name: '2 new keys' }).waitFor();
    await page.getByRole('row', { name: /^bio101-cleo 0 0 \$0.00 tokens=5000\/week/ }).waitFor();
    await expectGoodLooks(page, 'course', ['narrow']);
    await expectGoodLooks(page, 'course');
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the sheet as CSV' }).click(),
    ]);
    expect(saved.suggestedFilename()).toBe('bio101-keys.csv');
    await page.getByRole('button', { name: 'I have saved it' }).click();

    await page.getByRole('button', { name: 'Limit bio101-ben' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('Budget of tokens').inputValue()).toBe('5000/week');
    await dialog.getByLabel('Budget of tokens').fill('1/week');
    await dialog.getByRole('button', { name: 'Limit', exact: true }).click();
    await page.getByRole('row', { name: /^bio101-ben 0 0 \$0.00 tokens=1\/week/ }).waitFor();
    await page.getByRole('button', { name: 'Remove bio101-ben' }).click();
    await expectGoodLooks(page, 'course-remove');
    await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('row', { name: /^bio101-ben 0 0 \$0.00 – has left/ }).waitFor();
    expectClean(browser, service, /status of 40[013]/);
  });
});
