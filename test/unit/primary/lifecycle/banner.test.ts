import { Banner, bannerLines } from '../../../../src/primary/lifecycle/banner.js';
import { paintFor } from '../../../../src/shared/text/paint.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const facts = { version: '1.2.3', adapter: 'claude', needsKey: false };
const ready = { status: 'ready', version: '2.1.328', error: null } as const;
const url = 'http://127.0.0.1:5051';
const urls = { url, rows: [['console', `${url}/console/`]] as const };
const paint = paintFor(false);

function bannerWithClock() {
  const clock = new FakeClock();
  const shown: string[][] = [];
  return { clock, shown, banner: new Banner(facts, clock, paint, (lines) => void shown.push([...lines])) };
}

describe('The banner', () => {
  it('has four lines: URL, console, model CLI with its version, how to send a request', async () => {
    expect(bannerLines(facts, urls, ready, paint)).toEqual([
      '',
      '  prompt-relay 1.2.3  http://127.0.0.1:5051',
      '  console             http://127.0.0.1:5051/console/',
      '  model CLI           claude 2.1.328, ready',
      `  ask it              curl ${url}/ask -H 'Content-Type: application/json' -d '{"prompt":"Hello"}'`,
      '',
    ]);
  });

  it('names the required key', async () => {
    const lines = bannerLines({ ...facts, needsKey: true }, urls, ready, paint);
    expect(lines.join('\n')).toContain('-H "X-API-Key: $MODEL_API_KEY"');
  });

  it('has a line for the port of a feature', () => {
    const both = { url, rows: [...urls.rows, ['Ollama’s clients', 'http://127.0.0.1:11434'] as const] };
    expect(bannerLines(facts, both, ready, paint)[3]).toBe('  Ollama’s clients    http://127.0.0.1:11434');
  });

  it('explains why the model CLI is not ready, in one line without terminal control sequences', async () => {
    const failed = { status: 'not_ready', version: null, error: 'log in\n\u001b[2J' } as const;
    expect(bannerLines(facts, urls, failed, paint)[3]).toBe(
      '  model CLI           claude, not ready: log in\\x0a\\x1b[2J',
    );
  });

  it('waits for the first check, and is shown once', async () => {
    const { banner, shown, clock } = bannerWithClock();
    banner.showAddresses(url, urls.rows);
    expect(shown).toEqual([]);
    banner.showCheck(ready);
    banner.showCheck(ready);
    await clock.advance(10_000);
    expect(shown).toEqual([bannerLines(facts, urls, ready, paint)]);
  });

  it('is shown as soon as the service listens if the check was faster', async () => {
    const { banner, shown } = bannerWithClock();
    banner.showCheck(ready);
    expect(shown).toEqual([]);
    banner.showAddresses(url, urls.rows);
    expect(shown).toEqual([bannerLines(facts, urls, ready, paint)]);
  });

  it('reports that the check is running if it takes long', async () => {
    const { banner, shown, clock } = bannerWithClock();
    banner.showAddresses(url, urls.rows);
    await clock.advance(2000);
    expect(shown.flat()).toContain('  model CLI           claude, checking …');
    banner.showCheck(ready);
    expect(shown).toHaveLength(1);
  });
});
