import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { pdfOf } from '../../support/basics/pdf.js';
import { until } from '../../support/basics/until.js';
import { AskPage, pngBytes } from '../../support/clients/ask-page.js';
import { type Browser, isFirefox, itInChromium, startBrowser } from '../../support/clients/browser.js';
import {
  expectClean,
  expectGoodLooks,
  openConsole,
  untilCount,
  untilEvaluates,
  untilValue,
} from '../../support/clients/console.js';
import { untilJobs, untilTreeGone } from '../../support/jobs/jobs.js';
import { type Service, script, startService, startWithProgram } from '../../support/service/service.js';

const markdown = `# A heading

Text with **bold**, \`code\`, a [link](https://a.example/) and <b>no</b> <img src="https://evil.example/x" onerror="alert(1)">.

1. One
   - nested
   - [x] done

> A quote

\`\`\`js
const answer = await fetch('https://a.example/a/long/line/that/goes/on/and/on/and/on/and/on');
\`\`\`

| Name | Count |
|:-----|------:|
| alpha | 12 |

![a picture](https://evil.example/picture.png)
`;

const schema = '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}';

/** Letters of formulas that the console's font lacks: they are drawn like those of another font. */
const missingLetters = `{
  const pen = document.createElement('canvas').getContext('2d');
  const width = (font, letter) => {
    pen.font = '100px ' + font;
    return pen.measureText(letter).width;
  };
  [...'𝒙𝜶𝚨𝖲𝚖𝟣'].filter((letter) => width('"Noto Sans Math", serif', letter) === width('serif', letter))
}`;

describe('The page Ask', () => {
  let browser: Browser;
  let service: Service;
  let ask: AskPage;

  beforeAll(async () => {
    browser = await startBrowser();
    await browser.page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    ask = new AskPage(browser.page);
  });
  afterEach(() => browser.page.unrouteAll());
  afterAll(() => browser[Symbol.asyncDispose]());

  describe('with the demo model', () => {
    beforeAll(async () => {
      service = await startService();
    });
    afterAll(() => service.stop());
    beforeEach(() => openConsole(browser, service, '/ask'));
    afterEach(() => expectClean(browser, service));

    it('answers, and continues the conversation, also after a reload', async () => {
      await untilEvaluates(ask.page, 'document.title', 'Ask · prompt-relay');
      await expectGoodLooks(ask.page, 'ask-empty');
      expect(await ask.ask('Hello, my name is Ada')).toMatch(/Ada[\s\S]*eliza · \d+ tokens in · \d+ out · [\d.]+ m?s/);
      await ask.page.reload();
      await ask.page.getByText(/^eliza · \d+ tokens in · \d+ out$/).waitFor();
      expect(await ask.ask('What is my name?')).toContain('Ada');
      expect(await ask.turns.count()).toBe(2);
      await ask.button('New').click();
      await ask.turns.first().waitFor({ state: 'detached' });
      expect(await ask.ask('What is my name?')).not.toContain('Ada');
    });

    it('shows a conversation of another program, with its system text, and continues it', async () => {
      const { body } = await service.post('/chat', { message: 'My name is Ada', system: 'Be brief.' });
      await openConsole(browser, service, `/ask?conversation=${body.conversation_id}`);
      expect(await ask.answer()).toMatch(/eliza · \d+ tokens in · \d+ out/);
      expect(await ask.answer()).toContain(body.response);
      expect(await ask.page.locator('.system').innerText()).toContain('System text');
      expect(await ask.ask('What is my name?')).toContain('Ada');
      const { body: whole } = await service.get(`/chat/${body.conversation_id}`);
      expect(whole.message_count).toBe(4);
    });

    it('renders Markdown, loads no resource that an answer names, and copies code', async () => {
      await ask.page.getByLabel('Model', { exact: true }).selectOption('echo');
      const text = await ask.ask(markdown);
      expect(text).toContain('<b>no</b>');
      expect(await ask.lastAnswer.locator('table td').allInnerTexts()).toEqual(['alpha', '12']);
      expect(await ask.lastAnswer.locator('img').count()).toBe(0);
      const link = ask.lastAnswer.getByRole('link', { name: 'link' });
      expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
      await ask.lastAnswer.locator('.code').getByRole('button', { name: 'Copy' }).click();
      await ask.lastAnswer.getByText('Copied').waitFor();
      expect(await ask.page.evaluate('navigator.clipboard.readText()')).toMatch(/^const answer = .*;$/);
      await expectGoodLooks(ask.page, 'ask-markdown');
    });

    it('renders formulas and highlights code, and neither can run anything', async () => {
      await ask.page.getByLabel('Model', { exact: true }).selectOption('echo');
      await ask.ask(`Well: $x^2$ and \\(\\frac12\\)

$$\\int_0^1 x\\,dx$$

$$\\begin{aligned}f(x) &= (x+1)^2 \\\\ &= x^2 + 2x + 1\\end{aligned}$$

$$\\href{javascript:alert(1)}{x}$$

$$\\includegraphics{https://evil.example/x.png}$$

$$\\def\\a{\\a\\a}\\a$$

$$\\text{<img src="https://evil.example/y.png" onerror="alert(1)">}$$

$$\\rule{10000em}{10000em}$$

$$f'(x)$$

$$\\overrightarrow{ABCDEF}$$

$$\\mathscr{L}$$

\`\`\`python
def f(x): return "<script>alert(1)</script>"
\`\`\`
`);
      await ask.lastAnswer.locator('math').nth(4).waitFor();
      const alignment =
        "[...document.querySelectorAll('math mtd')].map((cell) => getComputedStyle(cell).textAlign.replace(/^-\\w+-/, ''))";
      await until(async () => String(await ask.page.evaluate(alignment)) === 'right,left,right,left', 'aligned cells');
      await ask.lastAnswer.locator('.hljs-keyword', { hasText: 'def' }).waitFor();
      expect(await ask.lastAnswer.locator('math a, img, script, [href]').count()).toBe(0);
      const familyOf = (part: string) =>
        ask.page.evaluate(`getComputedStyle(document.querySelector('${part}')).fontFamily`);
      expect(await familyOf('math .mathscr')).toMatch(/^"Noto Sans Math"/);
      expect(await familyOf('math .arrow')).toMatch(/^"Cambria Math"/); // a font with arrows of any length
      expect(await ask.page.evaluate(missingLetters)).toEqual([]);
      const fonts = '[...document.fonts].map(({ status }) => status).join()';
      await untilEvaluates(ask.page, fonts, isFirefox ? 'loaded,unloaded' : 'loaded,loaded'); // Firefox has good primes
      const text = await ask.lastAnswer.innerText();
      for (const source of ['\\href{javascript', '\\includegraphics', '\\def\\a']) expect(text).toContain(source);
      expect(text).toContain('"<script>alert(1)</script>"');
      const size = await ask.page.evaluate("getComputedStyle(document.querySelector('.code pre code')).fontSize");
      expect(size).toBe('13px');
      await expectGoodLooks(ask.page, 'ask-math');
    });

    it('accepts a schema, shows the value, and reports an invalid schema', async () => {
      await ask.button('Options').click();
      const field = ask.page.getByLabel('Answer format (JSON Schema)');
      await field.fill('{"type":');
      await ask.message.fill('Who am I?');
      await ask.page.getByText('This is not JSON').first().waitFor();
      await expectGoodLooks(ask.page, 'ask-options');
      await field.fill(schema);
      await ask.page.getByLabel('System text').fill('Be brief.');
      expect(await ask.ask('My name is Ada')).toMatch(/json[\s\S]*\{\s+"name": ".+"\s+\}/);
      await ask.button('Options (2)').waitFor();
    });

    it('explains next to Send why a message cannot be sent, and links to the fault', async () => {
      const reason = ask.page.locator('.composer .why');
      await ask.button('Send').click();
      expect(await reason.innerText()).toBe('Write a message first.');
      await ask.page.waitForFunction('document.activeElement.getAttribute("aria-label") === "Message"');
      await ask.message.fill('Who am I?');
      await reason.waitFor({ state: 'detached' });
      await ask.button('Options').click();
      await ask.page.getByLabel('Answer format (JSON Schema)').fill('{"type":');
      await ask.button('Options (1)').click();
      await ask.page.getByLabel('Answer format (JSON Schema)').waitFor({ state: 'detached' });
      expect(await reason.innerText()).toMatch(/^The JSON Schema cannot be used\. This is not JSON: /);
      await expectGoodLooks(ask.page, 'ask-bad-schema');
      await ask.message.press('Enter');
      const field = ask.page.getByLabel('Answer format (JSON Schema)');
      await ask.page.locator('[data-field=schema]:focus').waitFor(); // an effect focuses the field once it is shown
      await ask.button('Ask in the background').click();
      expect([await ask.message.inputValue(), await ask.turns.count()]).toEqual(['Who am I?', 0]);
      await field.fill('');
      await reason.waitFor({ state: 'detached' });
      await ask.button('Send').click();
      await ask.answer();
    });

    it('keeps a draft across a reload until it is sent', async () => {
      await ask.message.fill('A long question');
      await ask.button('Options').click();
      await ask.page.getByLabel('System text').fill('Be brief.');
      await ask.page
        .locator('form input[type=file]')
        .setInputFiles([{ name: 'file.png', mimeType: 'image/png', buffer: pngBytes }]);
      await ask.page.getByAltText('file.png').waitFor();
      await ask.page.reload();
      await ask.page.getByAltText('file.png').waitFor();
      await untilValue(ask.message, 'A long question');
      await ask.button('Options (1)').waitFor();
      await ask.button('Send').click();
      await ask.answer();
      await ask.page.reload();
      await ask.turns.first().waitFor();
      await untilValue(ask.message, '');
      await untilCount(ask.page.getByAltText('file.png'), 0);
    });

    it('accepts images, PDFs and texts as files, by paste and by drop, and no other files', async () => {
      const give = (kind: 'paste' | 'drop') =>
        ask.page.evaluate(`{
          const files = new DataTransfer();
          const bytes = Uint8Array.from(atob('${pngBytes.toString('base64')}'), (byte) => byte.charCodeAt(0));
          files.items.add(new File([bytes], '${kind}.png', { type: 'image/png' }));
          const event = new Event('${kind}', { bubbles: true, cancelable: true }); // Firefox makes no ClipboardEvent with files
          Object.assign(event, { clipboardData: files, dataTransfer: files });
          document.querySelector('[aria-label="Message"]').dispatchEvent(event);
        }`);
      await ask.page.locator('form input[type=file]').setInputFiles([
        { name: 'file.png', mimeType: 'image/png', buffer: pngBytes },
        { name: 'text.png', mimeType: 'image/png', buffer: Buffer.from('text') },
      ]);
      await ask.page.getByText('text.png is not a PNG, JPEG, GIF or WebP image.').waitFor();
      for (const kind of ['paste', 'drop'] as const) {
        await give(kind);
        await ask.page.getByAltText(`${kind}.png`).waitFor();
      }
      await ask.page.locator('form input[type=file]').setInputFiles([
        { name: 'a.pdf', mimeType: 'application/pdf', buffer: pdfOf({ text: 'Invoice' }) },
        { name: 'b.csv', mimeType: 'text/csv', buffer: Buffer.from('grüße') },
        { name: 'c.txt', mimeType: 'text/plain', buffer: Buffer.from('gone') },
        { name: 'd.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0xff, 0]) },
      ]);
      await ask.page.getByText('d.bin is neither an image nor a PDF or a text.').waitFor();
      await expectGoodLooks(ask.page, 'ask-images');
      await ask.button('Remove paste.png').click();
      await ask.button('Remove c.txt').focus();
      await ask.page.keyboard.press('Enter');
      await ask.page.getByText('c.txt').waitFor({ state: 'detached' });
      expect(await ask.ask('What is this?')).toMatch(/2 images|image.*image/s);
      expect(await ask.turns.last().locator('.asked img').count()).toBe(2);
      expect(await ask.turns.last().locator('.asked .document').allInnerTexts()).toEqual([
        expect.stringMatching(/^a\.pdf\s*\d{3} B$/),
        expect.stringMatching(/^b\.csv\s*\d B$/),
      ]);
    });

    it('shows the request as code', async () => {
      await ask.message.fill("What's this?");
      await ask.button(/^Code$/).click();
      const dialog = ask.page.getByRole('dialog');
      expect(await dialog.innerText()).toContain(`OpenAI(base_url="${service.url}/v1"`);
      await dialog.getByRole('button', { name: 'curl' }).click();
      expect(await dialog.innerText()).toContain(`curl -sS '${service.url}/chat'`);
      for (const language of ['Python', 'JavaScript']) {
        await dialog.getByRole('button', { name: language }).click();
        expect(await dialog.locator('code').innerText()).toContain("What's this?");
      }
      await expectGoodLooks(ask.page, 'ask-code');
      await ask.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })"); // like plain HTTP
      await dialog.getByRole('button', { name: 'Copy' }).click();
      await dialog.getByText('Copied').waitFor();
      await ask.page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await ask.message.fill('');
      await ask.message.press('Control+V');
      await untilValue(ask.message, /^const answer = await fetch/);
    });

    it('can be used with the keyboard only', async () => {
      const { keyboard } = ask.page;
      const hasFocus = (label: string) => untilEvaluates(ask.page, 'document.activeElement.ariaLabel', label);
      await hasFocus('Message');
      await keyboard.type('Hello');
      await keyboard.press('Shift+Enter');
      await keyboard.type('my name is Ada');
      await keyboard.press('Enter');
      expect(await ask.answer()).toContain('Ada');
      await hasFocus('Message');
      await untilValue(ask.message, '');
      expect(await ask.turns.locator('.asked').innerText()).toContain('Hello\nmy name is Ada');
      await keyboard.press('Tab');
      await hasFocus('Model');
      await keyboard.press('Tab');
      await keyboard.press('Enter');
      await ask.page.getByLabel('System text').waitFor();
      await ask.page.evaluate('document.activeElement.blur(); scrollTo(0, 0)');
      await ask.page.locator('.skip').focus();
      await keyboard.press('Enter');
      await untilEvaluates(ask.page, 'document.activeElement.tagName', 'MAIN');
      expect(await ask.page.evaluate('location.hash')).toMatch(/^#\/ask/);
    });
  });

  it.each(['Stop', 'Escape'])('stops an answer, and its process: %s', async (means) => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await openConsole(browser, service);
    await ask.send('wait');
    await ask.lastAnswer.getByText('begun: wait').waitFor();
    await ask.lastAnswer.getByText(/Answering · \d+ s/).waitFor();
    if (means === 'Stop') await ask.button('Stop').click();
    else await ask.page.keyboard.press('Escape');
    await ask.lastAnswer.getByText('Stopped.').waitFor();
    await untilTreeGone(service);
    await untilJobs(service, 0, 0);
    await ask.button('Send').waitFor();
    expect(await ask.ask('go')).toContain('begun: go done');
    expectClean(browser, service);
  });

  it('renders the start of an answer of two megabytes, and shows the rest as plain text', async () => {
    await using folder = await temporaryFolder();
    const program = join(folder.path, 'long.js');
    const block = '**Bold** words, [a link](https://a.example/) and *more*.\n\n- one item\n\n';
    await writeFile(
      program,
      `process.stdin.resume().on('end', () => console.log(${JSON.stringify(block)}.repeat(30000)))`,
    );
    await using service = await startWithProgram(`${process.execPath} ${program}`);
    await openConsole(browser, service);
    await ask.send('All of it, please');
    await ask.button('Show as plain text').waitFor();
    await ask.lastAnswer.getByRole('button', { name: 'Copy' }).last().waitFor();
    expect(await ask.lastAnswer.locator('*').count()).toBeLessThan(10_000);
    expect(await ask.lastAnswer.locator('strong').count()).toBeGreaterThan(500);
    await ask.button('Show as plain text').click();
    await ask.lastAnswer.locator('.piece').nth(90).waitFor({ state: 'attached' });
    const text = String(await ask.lastAnswer.locator('.piece').last().textContent());
    expect(text.trimEnd().endsWith('- one item')).toBe(true);
    expectClean(browser, service);
  });

  it('continues an answer while another conversation is open', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await openConsole(browser, service);
    expect(await ask.ask('go')).toContain('begun: go done');
    await ask.send('wait');
    await ask.lastAnswer
      .getByText(/begun:/)
      .first()
      .waitFor();
    await ask.button('New').click();
    await ask.turns.first().waitFor({ state: 'detached' });
    await ask.button('Send').waitFor();
    await untilJobs(service, 1, 0);
    await ask.page.getByRole('navigation', { name: 'Conversations' }).getByRole('link').first().click();
    await ask.lastAnswer.getByText(/Answering · \d+ s/).waitFor();
    await untilCount(ask.turns, 2);
    await ask.button('Stop').click();
    await ask.lastAnswer.getByText('Stopped.').waitFor();
    await untilJobs(service, 0, 0);
    expectClean(browser, service);
  });

  it('keeps a stopped question and its partial answer across a reload', async () => {
    await using service = await startWithProgram(script('begins-and-waits.pl'));
    await openConsole(browser, service);
    for (const question of ['wait for me', 'wait again']) {
      await ask.send(question);
      await ask.lastAnswer
        .getByText(/begun:/)
        .first()
        .waitFor();
      await ask.button('Stop').click();
      await ask.lastAnswer.getByText('Stopped.').waitFor();
      await ask.page.reload();
      await ask.lastAnswer.getByText('This answer was interrupted and is not saved.').waitFor();
      await ask.turns.last().getByText(question, { exact: true }).waitFor();
      await ask.lastAnswer
        .getByText(/begun:/)
        .first()
        .waitFor();
      await untilJobs(service, 0, 0);
      if (question === 'wait again') break;
      expect(await ask.ask('go')).toContain('begun: go done'); // the next message is a turn of a stored conversation
      await ask.conversationId();
    }
    await untilCount(ask.turns, 3); // the page loads the stored turns
    const texts = await ask.turns.locator('.asked').allInnerTexts();
    expect(texts.map((text) => text.replace(/^You\s*/, ''))).toEqual(['wait for me', 'go', 'wait again']);
    await expectGoodLooks(ask.page, 'ask-reloaded-stopped');
    await ask.button('Retry').last().click();
    await ask.lastAnswer
      .getByText(/begun:/)
      .first()
      .waitFor();
    await ask.button('Stop').click();
    await ask.button('New').click();
    await ask.page.reload();
    await ask.page.getByText('Ask the model').waitFor();
    await untilCount(ask.turns, 0);
    expectClean(browser, service);
  });

  it('offers images and effort only for a model that supports them', async () => {
    const clis = `main=demo,plain=command:${script('begins-and-waits.pl')}`;
    await using service = await startService({ env: { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis } });
    await service.log('readiness_checked', ({ cli }) => cli === 'plain');
    const { models } = (await service.get('/models')).body as { models: { id: string; capabilities: object }[] };
    expect(models.map(({ id, capabilities }) => [id, capabilities])).toMatchObject([
      ['main/eliza', { images: true, effort: false }],
      ['main/echo', { images: true, effort: false }],
      ['plain/begins-and-waits.pl', { images: false, effort: false }],
    ]);
    await openConsole(browser, service);
    await ask.button('File').waitFor();
    await ask.page
      .locator('form input[type=file]')
      .setInputFiles([{ name: 'file.png', mimeType: 'image/png', buffer: pngBytes }]);
    await ask.message.fill('What is this?');
    await ask.page.getByLabel('Model', { exact: true }).selectOption('plain/begins-and-waits.pl');
    await ask.page.getByText(/^The model .* takes no images\. Remove them, or choose another model\.$/).waitFor();
    await ask.button('Options').click();
    expect(await ask.page.getByLabel('Effort').count()).toBe(0);
    await expectGoodLooks(ask.page, 'ask-no-images');
    await ask.button('Send').click();
    expect(await ask.turns.count()).toBe(0);
    await ask.button('Remove file.png').click();
    expect(await ask.ask('What is this?')).toContain('What is this?');
    expectClean(browser, service);
  });

  itInChromium()('sends an effort only to a model that supports it', async () => {
    await using service = await startService();
    const model = (id: string, effort: boolean) => ({
      id,
      name: id,
      default: effort,
      capabilities: { images: true, effort },
    });
    const list = { count: 2, models: [model('eliza', true), model('echo', false)] };
    await ask.page.route('**/models', (route) => route.fulfill({ json: list }));
    const sent = async () => {
      const [request] = await Promise.all([ask.page.waitForRequest('**/chat'), ask.send('Hello')]);
      await ask.lastAnswer.locator('.row').first().waitFor();
      return request.postDataJSON() as { effort?: string };
    };
    await openConsole(browser, service);
    await ask.button('Options').click();
    await ask.page.getByLabel('Effort').selectOption('high');
    expect((await sent()).effort).toBe('high');
    await ask.button('Stop').waitFor({ state: 'detached' });
    await ask.page.getByLabel('Model', { exact: true }).selectOption('echo');
    await ask.button(/^Options$/).click(); // no option counts
    expect(await ask.page.getByLabel('Effort').count()).toBe(0);
    expect((await sent()).effort).toBeUndefined();
    await ask.page.unroute('**/models');
  });

  it('shows the queue position and the waiting time', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'go');
    const env = { MODEL_API_MAX_CONCURRENT: '1' };
    await using service = await startWithProgram(script('waits-for-file.pl', file), env);
    const first = service.post('/ask', { prompt: 'first' });
    await untilJobs(service, 1, 0);
    await openConsole(browser, service);
    await ask.send('second');
    await ask.lastAnswer.getByText(/Number 1 in the queue · [1-9]\d* s/).waitFor();
    await expectGoodLooks(ask.page, 'ask-queued');
    await writeFile(file, '');
    expect(await ask.answer()).toMatch(/second[\s\S]* in the queue/);
    expect((await first).status).toBe(200);
    expectClean(browser, service);
  });

  it('counts down to the next attempt while the queue is full', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'go');
    const env = { MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '1', MODEL_API_MAX_JOBS: '0' };
    await using service = await startWithProgram(script('waits-for-file.pl', file), env);
    const others = ['first', 'second'].map((prompt) => service.post('/ask', { prompt }));
    await untilJobs(service, 1, 1);
    await openConsole(browser, service);
    await ask.send('third');
    await ask.lastAnswer.getByText(/The queue is full\. Retrying in \d+ s/).waitFor();
    await expectGoodLooks(ask.page, 'ask-full');
    await ask.button('Stop').click();
    await ask.lastAnswer.getByText('Stopped.').waitFor();
    await writeFile(file, '');
    await Promise.all(others);
    expectClean(browser, service, /status of 429/);
  });

  it('explains a failure, with the request id, and retries', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'works');
    const program = join(folder.path, 'program.pl');
    await writeFile(program, `#!/usr/bin/perl\nmy $text = <STDIN>; -e '${file}' or exit 3; print "Well: $text";`, {
      mode: 0o755,
    });
    await using service = await startWithProgram(program);
    await openConsole(browser, service);
    await ask.send('Hello');
    const notice = ask.page.getByRole('alert').filter({ hasText: 'The model did not answer' });
    const { request_id: id } = await service.log(
      'http_request_completed',
      ({ method, path }) => method === 'POST' && path === '/chat',
    );
    await notice.getByText(String(id)).waitFor();
    await expectGoodLooks(ask.page, 'ask-failed');
    await writeFile(file, '');
    await ask.button('Retry').click();
    expect(await ask.answer()).toContain('Well: Hello');
    expect(await ask.turns.count()).toBe(1);
    expectClean(browser, service);
  });

  it('continues a conversation even if reading conversations is disabled', async () => {
    await using service = await startService({ env: { MODEL_API_READ_BACK: 'false' } });
    await openConsole(browser, service);
    await ask.ask('Hello, my name is Ada');
    await ask.page.reload();
    await ask.page.getByText('MODEL_API_READ_BACK').waitFor();
    expect(await ask.ask('What is my name?')).toContain('Ada');
    expectClean(browser, service, /status of 403/);
  });

  it('offers a new conversation if the service has lost this one', async () => {
    await using service = await startService();
    await openConsole(browser, service);
    await ask.ask('My name is Ada');
    const id = await ask.conversationId();
    expect((await service.delete(`/chat/${id}`)).status).toBe(200);
    await ask.send('What is my name?');
    await ask.button('Ask in a new conversation').click();
    expect(await ask.answer()).not.toContain('Ada');
    expectClean(browser, service, /status of 40[04]/);
  });
});

it('The screenshots are ignored by git', async () => {
  expect(await readFile(join(__dirname, '../../../../.gitignore'), 'utf8')).toMatch(/^reports\/$/m);
});
