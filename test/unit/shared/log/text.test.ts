import { createLogger, type LogDestination, logEvents } from '../../../../src/shared/log/logger.js';
import { logIn } from '../../../../src/shared/log/text.js';

/** Returns the output of a log in this style. */
function written(style: 'json' | 'plain' | 'coloured', tell: (log: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  const output: LogDestination = { write: (line) => void lines.push(line), flush: async () => true };
  tell(createLogger('debug', 'primary', logIn(style, output)));
  return lines;
}

const request = { request_id: 'a', method: 'POST', path: '/ask', status_code: 200, duration_ms: 1240.4 };

describe('The human-readable log', () => {
  it('has one line per request: time, method, path, status, milliseconds, client, outcome', () => {
    const [line] = written('plain', (log) =>
      log.info('http_request_completed', { ...request, client: 'user ada', outcome: 'ok' }),
    );
    expect(line).toMatch(/^\d\d:\d\d:\d\d {2}POST {2}\/ask {18,} 200 {4}1240 ms {2}user ada {2}ok\n$/);
  });

  it('shows the code of an error without a job', () => {
    const failed = { ...request, status_code: 403, error: 'forbidden' };
    expect(written('plain', (log) => log.info('http_request_completed', failed))[0]).toMatch(/ 403 .* forbidden\n$/);
  });

  it('has colours only if they are enabled', () => {
    const tell = (log: ReturnType<typeof createLogger>) => log.info('http_request_completed', request);
    expect(written('coloured', tell)[0]).toContain('\u001b[32m200\u001b[39m');
    expect(written('plain', tell)[0]).not.toContain('\u001b');
    expect(JSON.parse(written('json', tell)[0] as string)).toMatchObject(request);
  });

  it.each([
    ['an escape sequence', '/\u001b[2Jx', '/\\x1b[2Jx'],
    ['one that begins with a single character', '/\u009b2J', '/\\x9b2J'],
    ['a line of its own', '/\r\n12:00:00  POST /ask', '/ | 12:00:00  POST /ask'],
    ['a reversal of the direction', '/\u202ecod.exe', '/\\u{202e}cod.exe'],
    ['half a character', '/\ud800', '/\\u{d800}'],
    ['a separator of lines', '/\u2028x', '/\\u{2028}x'],
  ])('escapes a path that contains %s', (_, path, shown) => {
    const [line = ''] = written('plain', (log) => log.info('http_request_completed', { ...request, path }));
    expect(line).toContain(shown);
    expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\u2028]/u);
  });

  it('has lines that a pipe accepts in one piece, each with a line feed', () => {
    for (const odd of ['\u200b', '漢', '🚀', 'x']) {
      const [line = ''] = written('coloured', (log) => log.error('internal_error', { error: odd.repeat(2000) }));
      expect(Buffer.byteLength(line)).toBeLessThan(4096);
      expect(line.endsWith('\n')).toBe(true);
    }
  });

  it('has one line for every event, whatever its fields', () => {
    const silent = ['service_ready'];
    for (const event of Object.keys(logEvents) as (keyof typeof logEvents)[]) {
      const fields = { error: 'e', worker: 1, code: 2, reason: 'r', model: 'm', client: 'c', method: 'GET', path: '/' };
      const lines = written('plain', (log) => log.warn(event, { ...fields, status_code: 200, duration_ms: 1 }));
      expect(lines).toHaveLength(silent.includes(event) ? 0 : 1);
      expect(lines.join().length).toBeLessThan(200);
    }
  });

  it('shows the result of a periodic readiness check only if it has changed', () => {
    const found = (status: string, trigger: string) => ({ status, trigger, check_ms: 4, error: null });
    const lines = written('plain', (log) => {
      log.info('readiness_checked', found('ready', 'start'));
      log.info('readiness_checked', found('ready', 'interval'));
      log.info('readiness_checked', { ...found('not_ready', 'interval'), error: 'logged out' });
      log.info('readiness_checked', found('ready', 'interval'));
      log.info('readiness_checked', found('ready', 'forced'));
    });
    expect(lines.map((line) => line.slice(10, -1))).toEqual([
      'The model CLI is ready (checked in 4 ms).',
      'The model CLI is not ready: logged out',
      'The model CLI is ready (checked in 4 ms).',
      'The model CLI is ready (checked in 4 ms).',
    ]);
  });
});
