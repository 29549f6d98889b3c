import {
  createLogger,
  describeError,
  type LogDestination,
  type LogEvent,
  logEvents,
} from '../../../../src/shared/log/logger.js';

class Lines implements LogDestination {
  readonly written: string[] = [];
  flushes = 0;

  write(line: string): void {
    this.written.push(line);
  }

  async flush(): Promise<boolean> {
    this.flushes++;
    return true;
  }

  get records(): Record<string, unknown>[] {
    return this.written.map((line) => JSON.parse(line) as Record<string, unknown>);
  }
}

function logTo(lines: Lines, level = 'debug') {
  return createLogger(level, 'primary', lines);
}

describe('A log record', () => {
  it('is one line of JSON with time, level, role, pid, event and its fields', () => {
    const lines = new Lines();
    logTo(lines).warn('worker_gone', { worker: 3, code: null, signal: 'SIGKILL' });
    expect(lines.written[0]).toMatch(/^\{[^\n]*\}\n$/);
    expect(lines.records).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        level: 'warn',
        role: 'primary',
        pid: process.pid,
        event: 'worker_gone',
        worker: 3,
        code: null,
        signal: 'SIGKILL',
      },
    ]);
  });

  it('stays on one line whatever its fields contain', () => {
    const lines = new Lines();
    const error = 'a\nb\r\n{"event":"x"}\u2028\0\ud800';
    logTo(lines).error('internal_error', { error });
    expect(lines.written[0]?.indexOf('\n')).toBe((lines.written[0]?.length ?? 0) - 1);
    expect(lines.records[0]?.error).toBe(error);
  });

  it.each([
    ['ASCII', 'x'],
    ['emoji', '🚀'],
    ['Chinese', '漢'],
    ['control characters', '\u0001'],
    ['quotes', '"'],
    ['lone surrogates', '\ud800'],
  ])('is under 4 KB however long its fields are: %s', (_, character) => {
    const lines = new Lines();
    const text = character.repeat(20_000);
    logTo(lines).error('internal_error', { error: text });
    logTo(lines).error('internal_error', { error: text, path: text, request_id: text, signal: 'SIGTERM' });
    const sizes = lines.written.map((line) => Buffer.byteLength(line));
    expect(Math.max(...sizes)).toBeLessThan(4096);
    expect(Math.min(...sizes)).toBeGreaterThan(1000); // truncated to the available space
    expect(lines.records[1]).toMatchObject({ event: 'internal_error', signal: 'SIGTERM' });
  });

  it('is written if its level is high enough', () => {
    const lines = new Lines();
    const log = logTo(lines, 'warn');
    log.debug('service_start');
    log.info('service_ready');
    log.warn('worker_gone');
    log.error('internal_error');
    expect(lines.records.map(({ level }) => level)).toEqual(['warn', 'error']);
    logTo(lines, 'silent').error('internal_error');
    expect(lines.written).toHaveLength(2);
  });

  it('has one of the listed events', () => {
    // @ts-expect-error no such event
    const event: LogEvent = 'something_else';
    expect(logEvents).not.toHaveProperty(event);
    for (const [name, meaning] of Object.entries(logEvents)) {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)+$/);
      expect(meaning).toMatch(/^\S.*\S$/);
    }
  });

  it('is written when the log is flushed', async () => {
    const lines = new Lines();
    expect(await logTo(lines).flush()).toBe(true);
    expect(lines.flushes).toBe(1);
  });
});

describe('The description of a thrown value', () => {
  it('has the name, the message and the position of an error', () => {
    expect(describeError(new TypeError('odd'))).toMatch(/^TypeError: odd\n\s+at .*logger\.test/);
  });

  it.each([
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [42, '42'],
  ])('is its text if it is not an error: %p', (thrown, words) => {
    expect(describeError(thrown)).toBe(words);
  });

  it('has a maximum length', () => {
    expect(describeError('x'.repeat(100_000)).length).toBeLessThan(4096);
  });
});
