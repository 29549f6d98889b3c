import { consolePart } from '../../support/clients/console-parts.js';

const start = Date.parse('2026-03-01T12:00:00.000Z');
const at = (seconds: number) => new Date(start + 1000 * seconds).toISOString();

describe('The age function', () => {
  const times = consolePart<{ ageText(ms: number): string }>('base/format.mjs');

  it.each([
    [-5000, '0 s'],
    [999, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [65_900, '1 min 5 s'],
  ])('formats %d ms as %s', async (ms, text) => {
    expect((await times).ageText(ms)).toBe(text);
  });
});

describe('The server clock', () => {
  interface ServerTimeOf {
    readonly ServerTime: new () => { aheadMs(told: object, nowMs: number): number };
  }
  const parts = consolePart<ServerTimeOf>('now/status-follower.mjs');
  const running = (seconds: number) => ({ slots: { max: 1, running: [{ started_at: at(seconds) }] } });

  it('has no difference by default', async () => {
    const { ServerTime } = await parts;
    expect(new ServerTime().aheadMs({ last_hour: [{ at: at(-40) }] }, start)).toBe(0);
    expect(new ServerTime().aheadMs({}, start)).toBe(0);
  });

  it('is ahead if a time is in the future, from then on', async () => {
    const { ServerTime } = await parts;
    const time = new ServerTime();
    expect(time.aheadMs(running(300), start)).toBe(300_000);
    expect(time.aheadMs(running(300), start + 20_000)).toBe(300_000);
    expect(time.aheadMs(running(322), start + 20_000)).toBe(302_000);
  });

  it('is behind if the current minute started too long ago', async () => {
    const { ServerTime } = await parts;
    expect(new ServerTime().aheadMs({ last_hour: [{ at: at(-330) }], ...running(-300) }, start)).toBe(-300_000);
  });
});

describe('The last hour', () => {
  interface Figures {
    hourFigures(minutes: readonly object[]): Readonly<Record<string, number>>;
    minutesBefore(minutes: readonly object[]): number[];
    dayPlaces(steps: readonly object[], startedAt: string, nowMs: number): { at: number; figures: object | null }[];
  }
  const parts = consolePart<Figures>('now/last-hour.mjs');
  const nothing = { at: at(0), requests: 0, errors: 0, jobs: 0, failed_jobs: 0, refused: 0 };
  const minute = (values: object) => ({ ...nothing, ...values });

  it('is summed up', async () => {
    const { hourFigures } = await parts;
    const minutes = [
      minute({ requests: 3, errors: 1, jobs: 2, failed_jobs: 1, job_ms: { p50: 40, p95: 90 } }),
      minute({ requests: 5, refused: 4, job_ms: null }),
      minute({ requests: 1, jobs: 1, job_ms: { p50: 60, p95: 70 } }),
    ];
    expect(hourFigures(minutes)).toEqual({
      ...{ requests: 9, errors: 1, jobs: 3, failedJobs: 1, refused: 4 },
      ...{ maxRequests: 5, maxWrong: 4, maxP50: 60, maxP95: 90 },
    });
    expect(hourFigures([])).toMatchObject({ requests: 0, maxP95: 0 });
  });

  it('starts before the service did', async () => {
    const { minutesBefore } = await parts;
    const missing = minutesBefore(Array.from({ length: 58 }, (_, index) => minute({ at: at(60 * index) })));
    expect(missing).toEqual([start - 120_000, start - 60_000]);
    expect(minutesBefore(Array.from({ length: 60 }, () => minute({})))).toEqual([]);
    expect(minutesBefore([])).toEqual([]);
  });

  it('of the last day has a place for each five minutes, with no figures before the start of the service', async () => {
    const { dayPlaces } = await parts;
    const stepMs = 300_000;
    const open = Math.floor(start / stepMs) * stepMs;
    const step = minute({ at: new Date(open - stepMs).toISOString(), jobs: 3 });
    const places = dayPlaces([step], new Date(open - 3 * stepMs + 1000).toISOString(), start);
    expect(places).toHaveLength(288);
    expect(places[0]).toEqual({ at: open - 288 * stepMs, figures: null });
    expect(places.slice(-4).map(({ figures }) => figures)).toMatchObject([null, { jobs: 0 }, { jobs: 0 }, { jobs: 3 }]);
  });
});

describe('The state of the service', () => {
  interface Reasons {
    standingOf(status: object): readonly [tone: string, label: string];
    reasonText(reason: object, nowMs: number): string;
    pressureTexts(queue: object, nowMs: number): string[];
    renewalText(fault: object, nowMs: number): string;
  }
  const parts = consolePart<Reasons>('now/notices.mjs');
  const well = { full_since: null, refused_last_5_minutes: 0 };
  const clock = (text: string) => text.replace(/\d\d:\d\d:\d\d/, 'TIME'); // depends on the time zone of the reader

  it.each([
    ['ok', {}, ['good', 'Healthy']],
    ['ok', { refused_last_5_minutes: 1 }, ['warn', 'Requests refused']],
    ['ok', { refused_last_5_minutes: 1, full_since: at(-20) }, ['warn', 'Queue full']],
    ['degraded', { full_since: at(-20) }, ['bad', 'Degraded']],
    ['draining', { full_since: at(-20) }, ['warn', 'Draining']],
  ])('is one word if the status is %s, and the queue is %j', async (status, queue, standing) => {
    const { standingOf } = await parts;
    expect(standingOf({ service: { status }, queue: { ...well, ...queue } })).toEqual(standing);
  });

  it('lists its reasons in sentences, with the time at which jobs start again', async () => {
    const { reasonText } = await parts;
    const unready = reasonText({ message: 'the model CLI codex is not ready: no' }, start);
    const used = clock(reasonText({ message: 'the quota is used up', until: at(60) }, start));
    expect(unready).toBe('The model CLI codex is not ready: no.');
    expect(used).toBe('The quota is used up. No job is started before TIME.');
  });

  it('shows why no process is renewed, and when the last pause ends', async () => {
    const { renewalText } = await parts;
    const fault = { cli: 'claude', message: 'no process is renewed: memory is short', until: null };
    expect(renewalText(fault, start)).toBe('claude: no process is renewed: memory is short.');
    const paused = renewalText({ ...fault, account: 'team', until: at(60) }, start);
    expect(clock(paused)).toBe('claude@team: no process is renewed: memory is short. The last pause ends at TIME.');
  });

  it('shows since when the queue is full, and how many jobs were refused', async () => {
    const { pressureTexts } = await parts;
    expect(pressureTexts(well, start)).toEqual([]);
    const texts = pressureTexts({ full_since: at(-34), refused_last_5_minutes: 1200 }, start);
    expect(texts.map(clock)).toEqual([
      'The queue has been full since TIME.',
      '1,200 requests were refused in the last 5 minutes.',
    ]);
    const one = pressureTexts({ ...well, refused_last_5_minutes: 1 }, start);
    expect(one).toEqual(['1 request was refused in the last 5 minutes.']);
  });
});

describe('The latest checks of several CLIs', () => {
  it('are one per CLI, by name', async () => {
    const { lastOfEach } = await consolePart<{ lastOfEach(checks: readonly object[]): object[] }>('now/readiness.mjs');
    const check = (cli: string, status: string) => ({ cli, status });
    const checks = [check('b', 'ready'), check('a', 'ready'), check('b', 'not_ready')];
    expect(lastOfEach(checks)).toEqual([check('a', 'ready'), check('b', 'not_ready')]);
  });
});
