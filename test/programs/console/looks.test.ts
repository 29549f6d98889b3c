import { AskPage } from '../../support/clients/ask-page.js';
import { type Browser, startBrowser } from '../../support/clients/browser.js';
import {
  expectClean,
  expectGoodLooks,
  openConsole,
  untilEvaluates,
  violationsOf,
} from '../../support/clients/console.js';
import { type Service, startService } from '../../support/service/service.js';

/** An answer that is longer than any window, with a table that is wider than a phone. */
const longAnswer = [
  ...['## Begin', ''],
  ...[`|${'a long title|'.repeat(9)}`, `|${'-|'.repeat(9)}`, `|${'value|'.repeat(9)}`, ''],
  ...['#### Details[^1]', '', 'line\n\n'.repeat(60)],
  '[^1]: From a *book*',
].join('\n');

const enlarged = { width: 640, height: 400 }; // a window of 1280 by 800 at a zoom of 200 %

describe('The console', () => {
  let browser: Browser;
  let service: Service;

  beforeAll(async () => {
    [browser, service] = await Promise.all([startBrowser(), startService()]);
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await service.stop();
  });
  beforeEach(async () => {
    await browser.page.setViewportSize({ width: 1280, height: 800 });
    await browser.page.emulateMedia({ colorScheme: 'light', media: 'screen' });
  });

  async function openAnswer(): Promise<void> {
    const { body } = await service.post('/chat', { message: longAnswer, model: 'echo' });
    await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
    await browser.page.locator('.answer table').waitFor();
  }

  /** Whether the reader sees a button with this name, and no other element covers it. */
  const isInReach = (name: string) => `{
    const button = [...document.querySelectorAll('.desk > .row button')].find(({ textContent }) => textContent === '${name}');
    const { left, top } = button.getBoundingClientRect();
    document.elementFromPoint(left + 5, top + 5) === button
  }`;

  it('keeps the buttons for conversations in reach on a phone, and names no keys', async () => {
    const { page } = browser;
    await page.setViewportSize({ width: 360, height: 740 });
    await openConsole(browser, service, '/ask');
    await page.getByText('can be pasted or dropped').waitFor();
    expect(await page.getByText('Enter sends').isVisible()).toBe(false);
    await openAnswer();
    for (const top of [0, 400, 100_000]) {
      await page.evaluate(`scrollTo(0, ${top})`);
      await untilEvaluates(page, isInReach('Conversations'), 'true');
      await untilEvaluates(page, isInReach('New conversation'), 'true');
    }
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByRole('heading', { name: 'Ask the model' }).waitFor();
    expectClean(browser, service);
  });

  it('shows a shadow where a table continues beyond the edge', async () => {
    const { page } = browser;
    await page.setViewportSize({ width: 360, height: 740 });
    await openAnswer();
    const table = page.locator('.answer .table');
    await table.scrollIntoViewIfNeeded();
    const edgeOf = async (side: 'left' | 'right') => {
      const box = (await table.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
      const x = side === 'left' ? box.x + 2 : box.x + box.width - 4;
      return page.screenshot({ clip: { x, y: box.y + 20, width: 2, height: 4 } });
    };
    const [plain, shadow] = [await edgeOf('left'), await edgeOf('right')];
    expect(shadow.equals(plain)).toBe(false);
    await table.evaluate('document.querySelector(".answer .table").scrollLeft = 1e6');
    expect((await edgeOf('right')).equals(plain)).toBe(true);
    expect((await edgeOf('left')).equals(plain)).toBe(false);
    await expectGoodLooks(page, 'wide-table', ['narrow']);
  });

  it('begins each page at its top when it is enlarged', async () => {
    const { page } = browser;
    await page.setViewportSize(enlarged);
    await openConsole(browser, service, '/ask');
    await page.getByRole('heading', { name: 'Ask the model' }).waitFor();
    expect(await page.evaluate('scrollY')).toBe(0);
    await openAnswer();
    await untilEvaluates(page, 'scrollY > 300', 'true'); // an answer is read at its end
    await page.evaluate('scrollTo(0, 200)');
    await untilEvaluates(page, 'scrollY', '200');
    for (const name of ['Now', 'Usage', 'Jobs', 'Set-up']) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.getByRole('heading', { name, level: 1 }).waitFor();
      await untilEvaluates(page, 'scrollY', '0');
    }
    expectClean(browser, service);
  });

  it('has the colours that the user chooses, also after a reload, but prints in light ones', async () => {
    const { page } = browser;
    const paper = 'getComputedStyle(document.body).backgroundColor';
    await openConsole(browser, service, '/now');
    const light = String(await page.evaluate(paper));
    const choice = page.getByLabel('Colours');
    await choice.selectOption('dark');
    await untilEvaluates(page, paper, 'rgb(22, 23, 26)');
    await page.reload();
    await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
    expect(await page.evaluate(paper)).toBe('rgb(22, 23, 26)');
    await page.emulateMedia({ media: 'print' });
    expect(await page.evaluate(paper)).toBe(light);
    await page.emulateMedia({ media: 'screen' });
    await choice.selectOption('as the system');
    await untilEvaluates(page, paper, light);
    await page.emulateMedia({ colorScheme: 'dark' });
    await untilEvaluates(page, paper, 'rgb(22, 23, 26)');
    expectClean(browser, service);
  });

  it('focuses the message after New conversation', async () => {
    const ask = new AskPage(browser.page);
    await openAnswer();
    await ask.button('New conversation').first().click();
    await untilEvaluates(browser.page, 'document.activeElement.dataset.field', 'text');
    expectClean(browser, service);
  });

  it('shows footnotes, which the keyboard can follow, headings of the right level, and short times in rows', async () => {
    const { page } = browser;
    await openAnswer();
    const levels =
      'Array.from(document.querySelectorAll(".answer :is(h3, h4, h5, h6)"), ({ tagName }) => tagName).join()';
    expect(await page.evaluate(levels)).toBe('H3,H4');
    expect(await violationsOf(page)).toEqual([]);
    const mark = page.getByRole('button', { name: 'Note 1', exact: true });
    expect((await mark.boundingBox())?.width).toBeLessThan(10); // no gap around the mark
    await mark.press('Enter');
    await untilEvaluates(page, 'document.activeElement.textContent', /From a book/);
    await page.getByRole('button', { name: 'Back to the place of note 1' }).press('Enter');
    await untilEvaluates(page, 'document.activeElement.ariaLabel', 'Note 1');
    const row = page.getByRole('navigation', { name: 'Conversations' }).locator('li small').first();
    expect(await row.innerText()).toMatch(/^\d\d:\d\d · 2 messages$/);
    expectClean(browser, service);
  });

  it('marks the words of a search in a title of any length, and shows titles without marks of Markdown', async () => {
    const { page } = browser;
    const { body } = await service.post('/chat', { message: '**Tides** and `moons`', model: 'echo' });
    const { body: other } = await service.post('/chat', { message: 'Hello', model: 'echo' });
    const title = `${'a long title '.repeat(12)}perigee`;
    await fetch(`${service.url}/chat/${other.conversation_id}`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ title }),
    });
    await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
    const list = page.getByRole('navigation', { name: 'Conversations' });
    await list.getByText('Tides and moons', { exact: true }).waitFor();
    await untilEvaluates(page, 'document.title', 'Tides and moons · prompt-relay');
    await page.getByLabel('Search conversations').fill('perigee');
    await list.locator('mark').waitFor();
    const [entry, mark] = [await list.locator('li').boundingBox(), await list.locator('mark').boundingBox()];
    expect((mark?.x ?? 999) + (mark?.width ?? 999)).toBeLessThan((entry?.x ?? 0) + (entry?.width ?? 0));
    await list.locator('li').hover();
    const buttons = await list.locator('.acts').boundingBox();
    expect((mark?.y ?? 999) + (mark?.height ?? 999)).toBeLessThanOrEqual(buttons?.y ?? 0); // they cover no title
    expectClean(browser, service);
  });

  it('shows documents on a phone with whole names of variables, and long lines of code with a shadow', async () => {
    const { page } = browser;
    await page.setViewportSize({ width: 360, height: 740 });
    await openConsole(browser, service, '/docs?name=configuration');
    const name = page.locator('.document td code', { hasText: 'MODEL_API_AGENT_PORT' }).first();
    await name.waitFor();
    expect((await name.boundingBox())?.height).toBeLessThan(30); // one line
    await expectGoodLooks(page, 'document-narrow', ['narrow']);
    const { body } = await service.post('/chat', { message: `\`\`\`\n${'long '.repeat(80)}\n\`\`\``, model: 'echo' });
    await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
    const code = page.locator('.answer .code pre');
    const box = (await code.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    const edge = (x: number) => page.screenshot({ clip: { x, y: box.y + 2, width: 2, height: 4 } });
    expectClean(browser, service);
    expect((await edge(box.x + box.width - 4)).equals(await edge(box.x + 2))).toBe(false);
  });

  it('has colours of charts that differ from the surface, and a footer on one line', async () => {
    const { page } = browser;
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await openConsole(browser, service, '/now');
      await page.locator('.swatch.soft').waitFor();
      const colour = (selector: string, property: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${property}`);
      const surface = await colour('.card', 'backgroundColor');
      for (const [selector, property] of [
        ['.swatch.soft', 'backgroundColor'],
        ['.fill', 'borderTopColor'],
      ] as const) {
        const contrast = contrastOf(String(surface), String(await colour(selector, property)));
        expect([colorScheme, selector, contrast >= 3]).toEqual([colorScheme, selector, true]);
      }
    }
    const tops = `Array.from(document.querySelectorAll('footer > *'), (part) => {
      const range = document.createRange();
      range.selectNodeContents(part.firstChild);
      return Math.round(range.getBoundingClientRect().top);
    })`;
    const found = (await page.evaluate(tops)) as number[];
    expect(Math.max(...found) - Math.min(...found)).toBeLessThanOrEqual(1);
  });
});

/** Returns the contrast of two colours such as `rgb(1, 2, 3)`, as WCAG defines it. */
function contrastOf(...colours: readonly string[]): number {
  const [dark = 0, light = 0] = colours.map(luminance).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = (colour.match(/\d+/g) ?? []).map((part) => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
